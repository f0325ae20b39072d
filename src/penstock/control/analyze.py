"""Analyze: learn the rates at which events enter and reach the operators, and forecast them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from penstock.forecast.base import Forecast, Forecaster, HasQuantiles, NotReady, checked_horizon
from penstock.forecast.registry import forecaster_for
from penstock.metrics.snapshot import Snapshot
from penstock.policy.base import Careful, PlansAhead, Policy, inside

DAY_S = 86_400.0
AHEAD = "auto"  # the forecaster of a policy that plans ahead and is given none


class Analyzer:
    """Keeps one forecaster for each source and gives their forecasts of λ_G, `horizon` intervals ahead.

    With `operators` it also keeps one for the input of every operator, and with `level` gives that quantile too, of the
    forecasters that know it. An interval whose number is incomplete is learnt as missing.

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

    def analyze(self, snapshot: Snapshot) -> Forecast:
        """Learn from the snapshot, then forecast."""
        rates: dict[str, tuple[float, ...]] = {}
        high: dict[str, tuple[float, ...]] = {}
        waiting: dict[str, str] = {}
        for series, count in self._counts(snapshot).items():
            if series not in self._forecasters:
                self._forecasters[series] = self._make(series)
            forecaster = self._forecasters[series]
            trusted = series not in snapshot.incomplete and snapshot.interval_s > 0
            forecaster.learn(count / snapshot.interval_s if trusted else math.nan)
            try:
                rates[series] = tuple(forecaster.forecast(self.horizon).tolist())
            except NotReady as why:
                waiting[series] = str(why)
                continue
            if self.level is not None and isinstance(forecaster, HasQuantiles):
                high[series] = tuple(forecaster.quantiles(self.horizon, [self.level])[0].tolist())
        return Forecast(self.name, rates, waiting, high)

    def _counts(self, snapshot: Snapshot) -> Mapping[str, int]:
        if not self.operators:
            return snapshot.source_input
        return {**snapshot.source_input, **{name: load.received for name, load in snapshot.operators.items()}}


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
