"""What a regression sees of a series at one of its rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from penstock.forecast.base import Rates

STEPS = 18  # rows ahead that have a regression of their own
NEAR = 12  # lags that come first among the columns; the others come last
_AHEAD = np.array((0, 1, 2, 3, 4, 6, 9, 12, 15, 18))  # steps at which past seasons are looked at closely
_REST = np.array((5, 7, 8, 10, 11, 13, 14, 16, 17))  # and those at which only their mean is
_FORGOTTEN = 0.02  # a past season of less weight is left out
_GAINS = (0.15, 0.3)  # of the latest season in the mean one: of days, of weeks


@dataclass(frozen=True, slots=True)
class Features:
    """Columns of row t, all but the first relative to x(t):

        x(t)      lags x(t−i)      means of the last w rows      harmonics of the time of day
        for each season s and step j:  x(t+j−s)  and the mean of x(t+j−s), x(t+j−2s), … with falling weights

    >>> features = Features(lags=2)
    >>> features.matrix(np.array([1.0, 2.0, 4.0, 7.0]), 0, range(2, 4)).tolist()
    [[4.0, -2.0, -3.0], [7.0, -3.0, -5.0]]
    """

    lags: int
    means: tuple[int, ...] = ()
    seasons: tuple[int, ...] = ()
    harmonics: int = 0

    def within(self, rows: int) -> Features:
        """Those of them for which so many rows are enough: two seasons, four times the lags and the means."""
        return replace(
            self,
            lags=max(1, min(self.lags, rows // 4)),
            means=tuple(width for width in self.means if 4 * width <= rows),
            seasons=tuple(season for season in self.seasons if season > 3 and 2 * season + STEPS <= rows),
        )

    @property
    def reach(self) -> int:
        """The first row that has all of them."""
        return max(self.lags, *self.means, *(season + 1 for season in self.seasons), 1)

    @property
    def far(self) -> int:
        """The columns at the end that hold lags beyond the near ones, and past seasons at less close a look."""
        return max(0, self.lags - NEAR) + sum(int((season > _REST + 2).sum()) for season in self.seasons)

    def matrix(self, values: Rates, first: int, rows: range) -> Rates:
        """The columns of these rows; `first` is the number of the first value since the start."""
        at = np.arange(rows.start, rows.stop)
        now = values[at][:, None]
        lags = values[at[:, None] - np.arange(1, self.lags + 1)] - now
        means = [_mean_of_last(values, at, width)[:, None] - now for width in self.means]
        past = [_past_seasons(values, at, season, gain) for season, gain in zip(self.seasons, _GAINS, strict=False)]
        close = [column - now for columns in past for column in columns[:2]]
        waves = [_waves(first + at, self.seasons[0], self.harmonics)] if self.seasons else []
        rest = [columns[2] - now for columns in past]
        return np.concatenate([now, lags[:, :NEAR], *means, *close, *waves, lags[:, NEAR:], *rest], axis=1)


def _mean_of_last(values: Rates, at: NDArray[np.int64], width: int) -> Rates:
    low = max(0, int(at[0]) - width + 1)
    sums = np.concatenate(([0.0], np.cumsum(values[low : at[-1] + 1])))
    means: Rates = (sums[at + 1 - low] - sums[at + 1 - width - low]) / width
    return means


def _past_seasons(values: Rates, at: NDArray[np.int64], season: int, gain: float) -> tuple[Rates, Rates, Rates]:
    """x(t+j−s), and the mean of that row in all past seasons; then that mean at the other steps."""
    close, rest = _AHEAD[season > _AHEAD + 2], _REST[season > _REST + 2]
    furthest = max(*close, *rest)  # of either kind, as the season's length has it
    mean = _mean_season(values, np.arange(at[0], at[-1] + furthest + 1), season, gain)
    places = (at - at[0])[:, None]
    return values[at[:, None] + close - season], mean[places + close], mean[places + rest]


def _mean_season(values: Rates, rows: NDArray[np.int64], season: int, gain: float) -> Rates:
    """The mean of these rows in past seasons, each averaged with its two neighbours, the latest weighing most."""
    smooth = values.copy()
    smooth[1:-1] = (values[:-2] + values[1:-1] + values[2:]) / 3
    total, weights, weight = np.zeros(len(rows)), np.zeros(len(rows)), 1.0
    for back in range(season, int(rows[-1]) + 1, season):
        skip = max(0, back - int(rows[0]))  # rows that have no season so far back
        total[skip:] += weight * smooth[rows[skip:] - back]
        weights[skip:] += weight
        weight *= 1 - gain
        if weight < _FORGOTTEN:
            break
    return np.asarray(total / weights)


def _waves(times: NDArray[np.int64], season: int, harmonics: int) -> Rates:
    turns = 2 * np.pi * (times % season)[:, None] / season * np.arange(1, harmonics + 1)
    return np.concatenate([np.sin(turns), np.cos(turns)], axis=1)
