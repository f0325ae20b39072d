"""What every operator's input is expected to be over the next intervals, in events per second."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from penstock.forecast.base import Forecast
from penstock.metrics.shares import propagate
from penstock.metrics.snapshot import Snapshot
from penstock.policy.parts.expected import Shares, SourceRates

PREDICT = ("operators", "sources")

Rates: TypeAlias = Mapping[
    str, tuple[float, ...]
]  # by operator: of the interval that just ended, then of the next ones
Notes: TypeAlias = tuple[str, ...]


class Inputs:
    """Rates by operator: the last one, and those of the next `horizon` intervals.

    `predict` is whose forecast is used: `operators`, each one's own, or `sources`, times the shares θ_i. Where there is
    no forecast the last rate goes on, and a note says so.

    >>> from penstock.testing.loads import load, snapshot
    >>> seen = snapshot({"in": 90}, [load("clean", {"in": 80})])
    >>> Inputs("operators", 3).expect(seen, Forecast("drift", {"clean": (100.0, 120.0)}))
    ({'clean': (80.0, 100.0, 120.0, 120.0)}, ())
    >>> Inputs("sources", 2).expect(seen, Forecast("drift", {"in": (100.0, 120.0)}))
    ({'clean': (80.0, 100.0, 120.0)}, ())
    """

    def __init__(self, predict: str, horizon: int) -> None:
        self.predict = predict
        self.horizon = horizon
        self._sources = SourceRates()
        self._shares = Shares()

    def expect(self, snapshot: Snapshot, forecast: Forecast | None) -> tuple[Rates, Notes]:
        """Learn from the snapshot, then say what comes."""
        last = last_rates(snapshot)
        if self.predict == "operators":
            ahead, notes = _ahead("operator", last, forecast, self.horizon)
        else:
            sources, notes = _ahead("source", self._sources.learn(snapshot), forecast, self.horizon)
            edges = self._shares.learn(snapshot)
            steps = [propagate({name: rates[t] for name, rates in sources.items()}, edges) for t in range(self.horizon)]
            ahead = {name: [step[name] for step in steps] for name in last}
        return {name: (last[name], *ahead[name]) for name in last}, notes


def last_rates(snapshot: Snapshot) -> dict[str, float]:
    """Events per second that reached each operator; 0 where the interval has no length."""
    length_s = snapshot.interval_s
    return {name: load.received / length_s if length_s > 0 else 0.0 for name, load in snapshot.operators.items()}


def _ahead(
    kind: str, last: Mapping[str, float], forecast: Forecast | None, horizon: int
) -> tuple[dict[str, list[float]], Notes]:
    """The forecast of each series, its end held where it is too short, the last rate where there is none."""
    found, silent = {}, []
    for name, rate in last.items():
        known = _usable(forecast.rates.get(name, ()) if forecast else ())
        if not known:
            silent.append(name)
        padded = [*known, *[(known or [rate])[-1]] * horizon]
        found[name] = padded[:horizon]
    return found, _note(kind, silent)


def _usable(rates: Sequence[float]) -> list[float]:
    """The rates up to the first that is no number of at least 0."""
    wrong = next((place for place, rate in enumerate(rates) if not 0 <= rate < math.inf), len(rates))
    return list(rates[:wrong])


def _note(kind: str, silent: Sequence[str]) -> Notes:
    if not silent:
        return ()
    if len(silent) == 1:
        return (f"no forecast for {kind} '{silent[0]}' yet: its last rate goes on",)
    return (f"no forecast for {len(silent)} {kind}s yet, '{silent[0]}' the first: their last rates go on",)
