"""A family of rules for what to be ready for: how much headroom over the largest rate of how long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]

FAR_S = 1800.0  # the longest that a rule looks back
_LONGEST_S = 320.0  # of the windows, or eight steps
_WINDOWS = 7
_HEADROOMS = (1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.35, 2.75, 3.25, 4.0, 5.0, 6.0)
_FLOORS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)


def resampled(rates: Sequence[float], step_s: float, new_s: float) -> list[float]:
    """Mean rates of steps of another length; the last of them end together, and what is left at the beginning goes.

    >>> resampled([9.0, 1.0, 3.0, 5.0, 7.0], 1.0, 2.0), resampled([1.0, 3.0], 2.0, 1.0)
    ([2.0, 6.0], [1.0, 1.0, 3.0, 3.0])
    """
    length_s = len(rates) * step_s
    steps = int(length_s / new_s * (1 + 1e-9))
    events = np.concatenate(([0.0], np.cumsum(rates) * step_s))
    edges_s = length_s - new_s * np.arange(steps, -1, -1)
    found: list[float] = (np.diff(np.interp(edges_s, np.arange(len(events)) * step_s, events)) / new_s).tolist()
    return found


class LatelySeen:
    """Rates with their times, of the last half hour or as far as is said, in arrays of a fixed size.

    >>> seen = LatelySeen(step_s=5.0)
    >>> for time_s, rate in ((5, 80.0), (10, 120.0), (15, 90.0)):
    ...     seen.add(time_s, rate)
    >>> seen.largest(15, np.array([5.0, 10.0])).tolist()
    [90.0, 120.0]
    """

    def __init__(self, step_s: float, far_s: float = FAR_S) -> None:
        size = int(far_s / step_s) + 2  # cut intervals push the oldest out, which are the least of a loss
        self._ages_s = np.full(size, np.inf)  # at the time of the newest, which comes first
        self._rates = np.zeros(size)
        self._time_s = -np.inf

    def add(self, time_s: float, rate: float) -> None:
        """Take in a rate; a clock that goes back makes nothing younger."""
        self._ages_s += max(0.0, time_s - self._time_s) if self._time_s > -np.inf else 0.0
        self._time_s = time_s
        for kept in (self._ages_s, self._rates):
            kept[1:] = kept[:-1]
        self._ages_s[0], self._rates[0] = 0.0, rate

    def largest(self, time_s: float, windows_s: Array) -> Array:
        """The largest rate of the last so many seconds, for each of these; 0 where nothing was seen."""
        passed_s = max(0.0, time_s - self._time_s)
        within = np.searchsorted(self._ages_s, windows_s * (1 - 1e-6) - passed_s)
        highest = np.maximum.accumulate(self._rates)
        largest: Array = np.where(within > 0, highest[within - 1], 0.0)
        return largest

    def mean(self, time_s: float, window_s: float) -> float:
        """The mean of the rates of the last so many seconds; 0 where nothing was seen."""
        within = int(np.searchsorted(self._ages_s, window_s * (1 - 1e-6) - max(0.0, time_s - self._time_s)))
        return float(self._rates[:within].mean()) if within else 0.0


class Rules:
    """All combinations of a headroom h, a window k and a floor φ, in arrays; the cheapest kind comes first.

        size = max(h · the largest rate of the last k seconds, φ · the largest of the last half hour)

    Windows grow from one step to about five minutes. The first rule has no headroom, no floor and a window of one step:
    that is `psps`.

    >>> rules = Rules(step_s=5.0)
    >>> len(rules), rules.windows_s.round().tolist()
    (546, [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0])
    >>> rules.text(0), rules.text(232)
    ('the last rate', '1.75 × the largest rate of 40 s, at least 0.75 of the largest of half an hour')
    """

    def __init__(self, step_s: float) -> None:
        self.windows_s = np.geomspace(step_s, max(_LONGEST_S, 8 * step_s), _WINDOWS)
        headroom, window, floor = np.meshgrid(_HEADROOMS, np.arange(_WINDOWS), _FLOORS, indexing="ij")
        self._headroom, self._window, self._floor = headroom.ravel(), window.ravel(), floor.ravel()

    def __len__(self) -> int:
        return len(self._headroom)

    def sizes(self, seen: LatelySeen, time_s: float, rate: float) -> Array:
        """What each rule wants to be ready for, in events per second, where `rate` is the last."""
        largest = np.maximum(seen.largest(time_s, np.append(self.windows_s, FAR_S)), rate)
        sizes: Array = np.maximum(self._headroom * largest[self._window], self._floor * largest[-1])
        return sizes

    def text(self, rule: int) -> str:
        """A rule in words."""
        headroom, window, floor = self._headroom[rule], int(self._window[rule]), self._floor[rule]
        what = "the last rate" if window == 0 else f"the largest rate of {self.windows_s[window]:.3g} s"
        times = what if headroom == 1.0 else f"{headroom:g} × {what}"
        return times if floor == 0.0 else f"{times}, at least {floor:g} of the largest of half an hour"
