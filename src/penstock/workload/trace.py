"""Traces: how many events per second a stream brings, on a regular grid of steps.

>>> day = Trace("day", step_s=10.0, rates=[2.0, 0.0, 4.0])
>>> day.duration_s, day.mean, day.peak, day.events
(30.0, 2.0, 4.0, 60.0)
>>> day.time_of([0, 19, 20, 59]).round(6).tolist()  # event 20 waits for the end of the silent step
[0.0, 9.5, 20.0, 29.75]
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from penstock.common.checks import at_least, positive
from penstock.errors import InputError
from penstock.workload._rules import FloatArray, step_ratio, steps_in

DAY_S = 86_400.0
MAX_RATE = 1e15  # beyond it a double no longer counts single events
_SNAP = 1e-9  # what is rounding, not meaning, in a ratio of two times
_ON_GRID = 1e-6  # of a step: so near to an edge is on it


@dataclass(frozen=True)
class TraceSummary:
    """A trace in nine numbers; what cannot be computed (a ratio to a mean of 0, say) is NaN."""

    rows: int
    step_s: float
    duration_s: float
    min: float
    mean: float
    max: float
    peak_to_mean: float
    cv: float
    autocorrelation: float


@dataclass(frozen=True, eq=False)
class Trace:
    """Mean events per second in each step of `step_s` seconds, from time 0; never changed, only derived from.

    Steps that are `missing` were not measured; their rates lie on a line between those beside them, so that the trace
    can be played.
    """

    name: str
    step_s: float
    rates: FloatArray
    missing: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        thing = f"trace '{self.name}'"
        rates = np.array(self.rates, dtype=np.float64)
        rates.setflags(write=False)
        object.__setattr__(self, "rates", rates)
        object.__setattr__(self, "step_s", positive(thing, "step_s", self.step_s))
        if rates.ndim != 1 or rates.size == 0:
            raise InputError(f"{thing}: rates must be a row of at least 1; got shape {rates.shape}")
        broken = broken_rate(rates)
        if broken:
            raise InputError(f"{thing} step {broken[0]}: {broken[1]}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        same_grid = (self.name, self.step_s, self.missing) == (other.name, other.step_s, other.missing)
        return same_grid and np.array_equal(self.rates, other.rates)

    def __hash__(self) -> int:
        return hash((self.name, self.step_s, self.rates.tobytes()))

    @property
    def measured(self) -> FloatArray:
        """The rates, NaN where one is missing: what forecasters learn.

        >>> Trace("t", 1.0, [1.0, 2.0, 3.0], missing=(1,)).measured.tolist()
        [1.0, nan, 3.0]
        """
        found = self.rates.copy()
        found[list(self.missing)] = np.nan
        return found

    @property
    def note(self) -> str:
        """What has to be said of its gaps; empty where it has none.

        >>> Trace("t", 1.0, [1.0, 2.0, 3.0], missing=(1,)).note
        '1 of 3 steps is missing, and interpolated'
        """
        count = len(self.missing)
        are = "is" if count == 1 else "are"
        return f"{count:,} of {len(self.rates):,} steps {are} missing, and interpolated" if count else ""

    @property
    def duration_s(self) -> float:
        """Seconds from the start of the first step to the end of the last."""
        return len(self.rates) * self.step_s

    @property
    def mean(self) -> float:
        """Mean rate."""
        return float(self.rates.mean())

    @property
    def peak(self) -> float:
        """Greatest rate of a step."""
        return float(self.rates.max())

    @property
    def events(self) -> float:
        """All events: Σ rate · step_s."""
        return float(self._due[-1])

    @cached_property
    def _edges(self) -> FloatArray:
        return np.asarray(np.arange(len(self.rates) + 1) * self.step_s, dtype=np.float64)

    @cached_property
    def _due(self) -> FloatArray:
        """Events due by each edge."""
        due = np.zeros(len(self.rates) + 1)
        np.cumsum(self.rates, out=due[1:])
        due *= self.step_s
        return due

    @cached_property
    def _inverse(self) -> tuple[FloatArray, FloatArray]:
        """Events and times between which `time_of` is linear: each busy step's start, and its end before silence."""
        busy = np.flatnonzero(np.diff(self._due) > 0)
        last = busy[~np.isin(busy + 1, busy)]
        ends = self._edges[last + 1]
        order = np.argsort(np.concatenate((busy, last + 0.5)))
        # Just short of the end, in events and in time: what is due there is the first event after the silence.
        events = np.concatenate((self._due[busy], np.nextafter(self._due[last + 1], 0.0)))
        times = np.concatenate((self._edges[busy], ends - 4 * np.spacing(ends)))
        return events[order], times[order]

    def rate_at(self, t: float) -> float:
        """The rate at t seconds; 0 before the start and from the end on."""
        if not 0 <= t < self._edges[-1]:
            return 0.0
        return float(self.rates[np.searchsorted(self._edges, t, side="right") - 1])

    def cumulated(self, t: npt.ArrayLike) -> FloatArray:
        """Events due up to t seconds: N(t) = ∫ rate, linear inside each step, flat outside the trace."""
        return np.asarray(np.interp(np.asarray(t, dtype=np.float64), self._edges, self._due))

    def time_of(self, n: npt.ArrayLike) -> FloatArray:
        """When event n (from 0) is due: the last t with N(t) <= n, so never in a silent step; inf past the end."""
        wanted = np.asarray(n, dtype=np.float64)
        if not np.all(wanted >= 0):
            raise InputError(f"trace '{self.name}': event numbers must not be negative; got {wanted.min()}")
        if self.events == 0:
            return np.full(wanted.shape, np.inf)
        return np.asarray(np.interp(wanted, *self._inverse, right=np.inf))

    def scaled(self, mean_rate: float) -> Trace:
        """The same shape with another mean: rate · mean_rate / mean.

        >>> Trace("t", 1.0, [1.0, 3.0]).scaled(mean_rate=10.0).rates.tolist()
        [5.0, 15.0]
        """
        thing = f"trace '{self.name}'"
        target = positive(thing, "mean_rate", mean_rate)
        if self.peak == 0:
            raise InputError(f"{thing}: a trace to rescale must have events; got none in {len(self.rates)} steps")
        shape = self.rates / self.peak
        return replace(self, rates=shape * (target / shape.mean()))

    def compressed(self, speedup: float) -> Trace:
        """The same rates, with time running `speedup` times as fast: step_s / speedup, events / speedup."""
        return replace(self, step_s=self.step_s / positive(f"trace '{self.name}'", "speedup", speedup))

    def resampled(self, step_s: float) -> Trace:
        """The same events on another grid; a last step that the trace fills in part is averaged over its whole.

        >>> Trace("t", 1.0, [1.0, 3.0, 5.0]).resampled(step_s=2.0).rates.tolist()
        [2.0, 2.5]
        """
        steps = step_ratio(f"trace '{self.name}'", self.duration_s, step_s)
        return self._binned(0.0, step_s, max(1, math.ceil(steps - _SNAP)))

    def window(self, start_s: float, end_s: float) -> Trace:
        """The part from start_s to end_s, moved to time 0.

        Bounds between two edges are kept exactly: the step is fitted to the length, and the events are those due in it.
        """
        thing, whole_s = f"trace '{self.name}'", self.duration_s
        start, end = at_least(thing, "start_s", start_s), positive(thing, "end_s", end_s)
        if not start < end <= whole_s * (1 + _SNAP):
            raise InputError(f"{thing}: a window must have start_s < end_s <= {whole_s:g}; got {start:g} to {end:g}")
        first, last = round(start / self.step_s), round(end / self.step_s)
        off_grid = max(abs(start / self.step_s - first), abs(end / self.step_s - last))
        if off_grid <= _ON_GRID and last > first:
            missing = tuple(step - first for step in self.missing if first <= step < last)
            return replace(self, rates=self.rates[first:last], missing=missing)
        steps = max(1, round((end - start) / self.step_s))
        return self._binned(start, (end - start) / steps, steps)

    def limited(self, duration_s: float) -> Trace:
        """The first `duration_s` seconds; the whole trace if it is shorter."""
        limit = positive(f"trace '{self.name}'", "duration_s", duration_s)
        return self if limit >= self.duration_s else self.window(0.0, limit)

    def describe(self) -> TraceSummary:
        """Size, bounds and variability; autocorrelation r₁ = Σ(xₜ−x̄)(xₜ₊₁−x̄) / Σ(xₜ−x̄)²."""
        off = self.rates - self.mean
        spread = float(off @ off)
        return TraceSummary(
            rows=len(self.rates),
            step_s=self.step_s,
            duration_s=self.duration_s,
            min=float(self.rates.min()),
            mean=self.mean,
            max=self.peak,
            peak_to_mean=self.peak / self.mean if self.mean else math.nan,
            cv=float(self.rates.std()) / self.mean if self.mean else math.nan,
            autocorrelation=float(off[:-1] @ off[1:]) / spread if spread else math.nan,
        )

    def _binned(self, start_s: float, step_s: float, steps: int) -> Trace:
        """The events due in each of `steps` bins of step_s from start_s, as rates."""
        due = self.cumulated(start_s + step_s * np.arange(steps + 1))
        return Trace(self.name, step_s, np.maximum(np.diff(due), 0.0) / step_s)


def played(trace: Trace, mean_rate: float | None, speedup: float, duration_s: float | None) -> Trace:
    """The trace as it is played: rescaled, compressed, cut.

    >>> played(constant(5.0, duration_s=60.0), mean_rate=8.0, speedup=2.0, duration_s=10.0).events
    80.0
    """
    if mean_rate is not None:
        trace = trace.scaled(mean_rate)
    if speedup != 1.0:
        trace = trace.compressed(speedup)
    return trace if duration_s is None else trace.limited(min(duration_s, trace.duration_s))


def broken_rate(rates: FloatArray) -> tuple[int, str] | None:
    """Where the first rate is that no trace may have, and the rule it breaks."""
    for bad, rule in (
        (~np.isfinite(rates), "be a finite number"),
        (rates < 0, "not be negative"),
        (rates > MAX_RATE, f"be at most {MAX_RATE:g}"),
    ):
        if bad.any():
            at = int(bad.argmax())
            return at, f"rate must {rule}; got {float(rates[at])}"
    return None


def constant(rate: float, duration_s: float, *, step_s: float = 1.0, name: str = "constant") -> Trace:
    """The same rate all the time; the step is fitted so that a whole number of them fills the duration.

    >>> constant(5.0, duration_s=60.0).events
    300.0
    """
    steps = steps_in(f"trace '{name}'", duration_s, step_s)
    return Trace(name, duration_s / steps, np.full(steps, at_least(f"trace '{name}'", "rate", rate)))
