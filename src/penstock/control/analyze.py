"""Analyze: learn the rates at which events enter and reach the operators, and forecast them."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from penstock.forecast.base import Forecast, Forecaster, HasQuantiles, NotReady, checked_horizon
from penstock.forecast.registry import forecaster_for
from penstock.forecast.shared import SharedForecasts
from penstock.metrics.snapshot import Snapshot
from penstock.policy.base import Careful, PlansAhead, Policy, inside
from penstock.workload import DAY_S

log = logging.getLogger(__name__)

MOST_MISSED = 1000  # intervals that are made up for after a stall; beyond that days may be out of step
SHORTEST_STEP_S = 1.0  # forecasters are asked no more often, however often the loop acts
PAST = 600  # steps that are kept of each series, for a forecaster that takes over
_COMPLETE = 0.75  # of a step must have passed
AHEAD = "auto"  # the forecaster of a policy that plans ahead and is given none


class Analyzer:
    """Keeps one forecaster for each source and gives their forecasts of λ_G, `horizon` steps ahead.

    Forecasters learn at equal steps, of td, or of `step_s` where that is longer: what is seen in between, in short
    intervals or in those that were cut, is gathered, and the last forecast holds.

    With `operators` it also keeps one for the input of every operator, and with `level` gives that quantile too, of the
    forecasters that know it. An interval whose number is incomplete is learnt as missing, and so are intervals that
    nobody looked at, so that days stay in step. A forecaster that fails is left out, and the log says why.

    >>> from penstock.forecast.last_value import LastValue
    >>> snapshot = Snapshot(time_s=2, interval_s=2, td_s=2, source_input={"tweets": 100}, operators={})
    >>> Analyzer("last_value", lambda series: LastValue()).analyze(snapshot).rates
    {'tweets': (50.0,)}
    """

    def __init__(
        self,
        name: str,
        make: Callable[[str], Forecaster],
        *,
        horizon: int = 1,
        operators: bool = False,
        level: float | None = None,
        step_s: float = 0.0,
    ) -> None:
        self.name = name
        self.step_s = step_s
        self.horizon = checked_horizon(horizon)
        self.operators = operators
        self.level = level
        self._make = make
        self._forecasters: dict[str, Forecaster] = {}
        self._past: dict[str, deque[float]] = {}  # what each has learnt last
        self._last_s: float | None = None
        self._gathered: dict[str, tuple[float, float]] = {}  # events and seconds since the last step
        self._forecast = Forecast(name, {})
        self._failing: dict[str, str] = {}  # what the log has been told of

    def analyze(self, snapshot: Snapshot) -> Forecast:
        """Learn from the snapshot, then forecast; or gather, as long as no step is complete."""
        step_s = max(self.step_s, snapshot.td_s)
        self._gather(snapshot)
        if self._last_s is not None and self._length_s(snapshot) < _COMPLETE * step_s:
            return self._forecast
        gathered, self._gathered = self._gathered, {}
        missed = [math.nan] * self._missed(snapshot, step_s)
        self._forecast = self._foreseen(gathered, missed)
        return self._forecast

    def follow(self, earlier: Analyzer) -> None:
        """Take over from another: learn what it has seen last, where its steps are as long."""
        if earlier.step_s == self.step_s:
            self._last_s, self._gathered = earlier._last_s, dict(earlier._gathered)
            self._past = {series: deque(rates, PAST) for series, rates in earlier._past.items()}

    def recall(self, rates: Mapping[str, Sequence[float]]) -> None:
        """Take in what came before, by series and step: a forecaster learns it before anything else."""
        self._past |= {series: deque(several, PAST) for series, several in rates.items()}

    def _length_s(self, snapshot: Snapshot) -> float:
        """How much of a step has passed: what was seen of it, or by the clock."""
        seen_s = max((seconds for _, seconds in self._gathered.values()), default=math.inf)
        return max(seen_s, snapshot.time_s - (self._last_s or 0.0))

    def _gather(self, snapshot: Snapshot) -> None:
        for series, count in self._counts(snapshot).items():
            trusted = series not in snapshot.incomplete and snapshot.interval_s > 0
            events, seconds = self._gathered.get(series, (0.0, 0.0))
            self._gathered[series] = events + (count if trusted else math.nan), seconds + snapshot.interval_s

    def _foreseen(self, gathered: Mapping[str, tuple[float, float]], missed: Sequence[float]) -> Forecast:
        """The forecasters' words, once they have learnt."""
        rates: dict[str, tuple[float, ...]] = {}
        high: dict[str, tuple[float, ...]] = {}
        waiting: dict[str, str] = {}
        for series, (events, seconds) in gathered.items():
            try:
                forecaster = self._learnt(series, [*missed, events / seconds if seconds > 0 else math.nan])
                rates[series] = tuple(forecaster.forecast(self.horizon).tolist())
                if above := self._quantile(forecaster):
                    high[series] = above
            except NotReady as why:
                waiting[series] = str(why)
            except Exception as error:  # a model's own fault; the other series have theirs
                waiting[series] = self._failed(series, f"{type(error).__name__}: {error}")
        return Forecast(self.name, rates, waiting, high)

    def _learnt(self, series: str, rates: Sequence[float]) -> Forecaster:
        past = self._past.setdefault(series, deque(maxlen=PAST))
        if series not in self._forecasters:
            self._forecasters[series] = self._make(series)
            rates = [*past, *rates]
            past.clear()
        for rate in rates:
            self._forecasters[series].learn(rate)
        past.extend(rates)
        return self._forecasters[series]

    def _quantile(self, forecaster: Forecaster) -> tuple[float, ...] | None:
        if self.level is None or not isinstance(forecaster, HasQuantiles):
            return None
        try:
            return tuple(forecaster.quantiles(self.horizon, [self.level])[0].tolist())
        except NotReady:
            return None

    def _missed(self, snapshot: Snapshot, step_s: float) -> int:
        """Steps since the last of which there is nothing."""
        last_s, self._last_s = self._last_s, snapshot.time_s
        return 0 if last_s is None else missed_intervals(last_s, snapshot.time_s, step_s)

    def _failed(self, series: str, reason: str) -> str:
        if self._failing.get(series) != reason:
            self._failing[series] = reason
            log.warning("forecast of '%s' by %s failed: %s; planned by its last rate", series, self.name, reason)
        return f"failed: {reason}"

    def _counts(self, snapshot: Snapshot) -> Mapping[str, int]:
        if not self.operators:
            return snapshot.source_input
        return {**snapshot.source_input, **{name: load.received for name, load in snapshot.operators.items()}}


def missed_intervals(last_s: float, now_s: float, td_s: float) -> int:
    """How many whole intervals were missed between two looks that should be td apart; none where the clock went back.

    >>> missed_intervals(10.0, 12.1, 2.0), missed_intervals(10.0, 20.0, 2.0), missed_intervals(10.0, 3.0, 2.0)
    (0, 4, 0)
    """
    steps = (now_s - last_s) / td_s
    return min(round(steps) - 1, MOST_MISSED) if 1 < steps < math.inf else 0


def asks(policy: Policy) -> tuple[int, float | None]:
    """How many intervals ahead a policy wants to know of, and which quantile beside the mean; None for none."""
    ahead = _ahead(policy)
    return (ahead.horizon if ahead else 1), (ahead.level if isinstance(ahead, Careful) else None)


def _ahead(policy: Policy) -> PlansAhead | None:
    return next((one for one in inside(policy) if isinstance(one, PlansAhead)), None)


def analyzer_for(
    policy: Policy,
    forecaster: str | None,
    td_s: float,
    day_s: float = DAY_S,
    run: str | None = None,
    *,
    shared: SharedForecasts | None = None,
) -> Analyzer | None:
    """The analyzer that suits the policy: one that plans ahead gets as many intervals as it asks for.

    None where no forecaster is named and the policy needs none. `day_s` is the length of a day as it is played, `run`
    the name of the run in the store. `shared`: where forecasts are kept that others make of the same series.
    """
    ahead, (horizon, level) = _ahead(policy), asks(policy)
    if forecaster is None and ahead is None:
        return None
    spec, step_s = forecaster or AHEAD, max(td_s, SHORTEST_STEP_S)

    def made(series: str) -> Forecaster:
        return forecaster_for(spec, interval_s=step_s, day_s=day_s, series=series, run=run)

    def followed(series: str) -> Forecaster:
        return shared.follow((spec, step_s, day_s, series), lambda: made(series)) if shared else made(series)

    return Analyzer(
        spec,
        followed,
        horizon=horizon,
        operators=ahead is not None,
        level=level,
        step_s=step_s,
    )
