"""Analyze: learn the rate at which events enter, and forecast it."""

from __future__ import annotations

from collections.abc import Callable

from penstock.forecast.base import Forecast, Forecaster, checked_horizon
from penstock.metrics.snapshot import Snapshot


class Analyzer:
    """Keeps one forecaster for each source and gives their forecasts of λ_G, `horizon` intervals ahead.

    An interval in which a source's number is incomplete is not learnt from.

    >>> from penstock.forecast.last_value import LastValue
    >>> snapshot = Snapshot(time_s=2, interval_s=2, td_s=2, source_input={"tweets": 100}, operators={})
    >>> Analyzer("last_value", LastValue).analyze(snapshot).rates
    {'tweets': (50.0,)}
    """

    def __init__(self, name: str, make: Callable[[], Forecaster], *, horizon: int = 1) -> None:
        self.name = name
        self.horizon = checked_horizon(horizon)
        self._make = make
        self._forecasters: dict[str, Forecaster] = {}

    def analyze(self, snapshot: Snapshot) -> Forecast:
        """Learn from the snapshot, then forecast."""
        rates: dict[str, tuple[float, ...]] = {}
        waiting: dict[str, str] = {}
        for source, count in snapshot.source_input.items():
            forecaster = self._forecasters.setdefault(source, self._make())
            if source not in snapshot.incomplete:
                forecaster.learn(count / snapshot.interval_s)
            if forecaster.ready:
                rates[source] = tuple(float(rate) for rate in forecaster.forecast(self.horizon))
            else:
                waiting[source] = "has not learnt enough"
        return Forecast(self.name, rates, waiting)
