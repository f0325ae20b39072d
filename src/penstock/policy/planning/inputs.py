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
        self._last = last_rates(snapshot)
        known = forecast.rates if forecast else {}
        if self.predict == "operators":
            ahead, silent = _ahead(self._last, known, self.horizon)
            return self._joined(ahead), _note("operator", silent)
        self._from, self._edges = self._sources.learn(snapshot), self._shares.learn(snapshot)
        ahead, silent = _ahead(self._from, known, self.horizon)
        return self._joined(self._reaching(ahead)), _note("source", silent)

    def seldom_exceeded(self, forecast: Forecast | None) -> Rates:
        """The same of the forecast's high rates, right after `expect`; empty where it has none.

        >>> from penstock.testing.loads import load, snapshot
        >>> comes = Forecast("auto", {"clean": (100.0,)}, high={"clean": (130.0,)})
        >>> inputs = Inputs("operators", 2)
        >>> rates = inputs.expect(snapshot({"in": 90}, [load("clean", {"in": 80})]), comes)
        >>> inputs.seldom_exceeded(comes)
        {'clean': (80.0, 130.0, 130.0)}
        """
        if forecast is None or not forecast.high:
            return {}
        known = {**forecast.rates, **forecast.high}
        if self.predict == "operators":
            return self._joined(_ahead(self._last, known, self.horizon)[0])
        return self._joined(self._reaching(_ahead(self._from, known, self.horizon)[0]))

    def _reaching(self, sources: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
        """What of the sources' rates reaches each operator."""
        steps = [
            propagate({name: rates[t] for name, rates in sources.items()}, self._edges) for t in range(self.horizon)
        ]
        return {name: [step[name] for step in steps] for name in self._last}

    def _joined(self, ahead: Mapping[str, Sequence[float]]) -> Rates:
        return {name: (rate, *ahead[name]) for name, rate in self._last.items()}


def last_rates(snapshot: Snapshot) -> dict[str, float]:
    """Events per second that reached each operator; 0 where the interval has no length."""
    length_s = snapshot.interval_s
    return {name: load.received / length_s if length_s > 0 else 0.0 for name, load in snapshot.operators.items()}


def _ahead(
    last: Mapping[str, float], expected: Mapping[str, Sequence[float]], horizon: int
) -> tuple[dict[str, list[float]], list[str]]:
    """What is expected of each series, its end held where it is too short, the last rate where it is not known."""
    found, silent = {}, []
    for name, rate in last.items():
        known = _usable(expected.get(name, ()))
        if not known:
            silent.append(name)
        padded = [*known, *[(known or [rate])[-1]] * horizon]
        found[name] = padded[:horizon]
    return found, silent


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
