"""Analyze: learn the rates at which events enter and reach the operators, and forecast them."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence

from penstock.forecast.base import Forecast, Forecaster, HasQuantiles, NotReady, checked_horizon
from penstock.forecast.registry import forecaster_for
from penstock.metrics.snapshot import Snapshot
from penstock.policy.base import Careful, PlansAhead, Policy, inside
from penstock.workload import DAY_S

log = logging.getLogger(__name__)

MOST_MISSED = 1000  # intervals that are made up for after a stall; beyond that days may be out of step
AHEAD = "auto"  # the forecaster of a policy that plans ahead and is given none


class Analyzer:
    """Keeps one forecaster for each source and gives their forecasts of λ_G, `horizon` intervals ahead.

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
    ) -> None:
        self.name = name
        self.horizon = checked_horizon(horizon)
        self.operators = operators
        self.level = level
        self._make = make
        self._forecasters: dict[str, Forecaster] = {}
        self._last_s: float | None = None
        self._failing: dict[str, str] = {}  # what the log has been told of

    def analyze(self, snapshot: Snapshot) -> Forecast:
        """Learn from the snapshot, then forecast."""
        rates: dict[str, tuple[float, ...]] = {}
        high: dict[str, tuple[float, ...]] = {}
        waiting: dict[str, str] = {}
        missed = [math.nan] * self._missed(snapshot)
        for series, count in self._counts(snapshot).items():
            trusted = series not in snapshot.incomplete and snapshot.interval_s > 0
            rate = count / snapshot.interval_s if trusted else math.nan
            try:
                forecaster = self._learnt(series, [*missed, rate])
                rates[series] = tuple(forecaster.forecast(self.horizon).tolist())
                if above := self._quantile(forecaster):
                    high[series] = above
            except NotReady as why:
                waiting[series] = str(why)
            except Exception as error:  # a model's own fault; the other series have theirs
                waiting[series] = self._failed(series, f"{type(error).__name__}: {error}")
        return Forecast(self.name, rates, waiting, high)

    def _learnt(self, series: str, rates: Sequence[float]) -> Forecaster:
        if series not in self._forecasters:
            self._forecasters[series] = self._make(series)
        for rate in rates:
            self._forecasters[series].learn(rate)
        return self._forecasters[series]

    def _quantile(self, forecaster: Forecaster) -> tuple[float, ...] | None:
        if self.level is None or not isinstance(forecaster, HasQuantiles):
            return None
        try:
            return tuple(forecaster.quantiles(self.horizon, [self.level])[0].tolist())
        except NotReady:
            return None

    def _missed(self, snapshot: Snapshot) -> int:
        """Intervals since the last snapshot of which there is none."""
        last_s, self._last_s = self._last_s, snapshot.time_s
        return 0 if last_s is None else missed_intervals(last_s, snapshot.time_s, snapshot.td_s)

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


def analyzer_for(
    policy: Policy, forecaster: str | None, td_s: float, day_s: float = DAY_S, run: str | None = None
) -> Analyzer | None:
    """The analyzer that suits the policy: one that plans ahead gets as many intervals as it asks for.

    None where no forecaster is named and the policy needs none. `day_s` is the length of a day as it is played, `run`
    the name of the run in the store.
    """
    ahead = next((one for one in inside(policy) if isinstance(one, PlansAhead)), None)
    if forecaster is None and ahead is None:
        return None
    spec = forecaster or AHEAD
    return Analyzer(
        spec,
        lambda series: forecaster_for(spec, interval_s=td_s, day_s=day_s, series=series, run=run),
        horizon=ahead.horizon if ahead else 1,
        operators=ahead is not None,
        level=ahead.level if isinstance(ahead, Careful) else None,
    )
