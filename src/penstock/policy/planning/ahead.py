"""The common part of the policies that plan a timetable for each operator over a forecast."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from penstock.common.checks import choice, whole
from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import Snapshot
from penstock.policy.base import Plan, Target
from penstock.policy.planning.inputs import PREDICT, Inputs
from penstock.policy.planning.needs import Need, Sizing, unplanned
from penstock.policy.planning.planners import Counts, held
from penstock.policy.planning.words import reason_of


@dataclass(frozen=True, slots=True)
class Draft:
    """A timetable, the plain one it improves on, and what it saves against that."""

    timetable: Counts
    plain: Counts
    saved: float = 0.0


@dataclass(eq=False, kw_only=True)
class Ahead(ABC):
    """Plans every operator for itself, `horizon` intervals ahead, and carries out the first step.

    `horizon`: intervals of a timetable. `predict`: `operators`, the forecast of each operator's own input, as in the
    paper; or `sources`, that of the sources times the shares. `catch_up`: intervals over which a backlog is worked
    off. `utilisation`: the share of a replica's time that is planned for.
    """

    name: ClassVar[str]

    horizon: int = 12
    predict: str = "operators"
    catch_up: int = 1
    utilisation: float = 1.0

    def __post_init__(self) -> None:
        whole(f"policy '{self.name}'", "horizon", self.horizon, least=1)
        choice(f"policy '{self.name}'", "predict", self.predict, PREDICT)
        self._sizing = Sizing(policy=self.name, catch_up=self.catch_up, utilisation=self.utilisation)
        self._inputs = Inputs(self.predict, self.horizon)

    @abstractmethod
    def draft(self, need: Need, start: int) -> Draft:
        """The timetable for a need, where `start` replicas run."""

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """A target and a timetable for every operator; no timetable where nothing can be planned."""
        rates, notes = self._inputs.expect(snapshot, forecast)
        high = self._inputs.seldom_exceeded(forecast)
        targets: dict[str, Target] = {}
        timetables: dict[str, tuple[int, ...]] = {}
        for name, load in snapshot.operators.items():
            if held := unplanned(load, snapshot):
                targets[name] = held
            else:
                need = self._sizing.need(load, rates[name], snapshot.td_s, high.get(name, ()))
                targets[name], timetables[name] = self._planned(need, load.replicas, snapshot.td_s)
        return Plan(targets, notes, timetables)

    def _planned(self, need: Need, start: int, td_s: float) -> tuple[Target, tuple[int, ...]]:
        draft = self.draft(need, start)
        reason = reason_of(need, draft.timetable, draft.plain, start, draft.saved)
        timetable = draft.timetable if need.careful is None else held(draft.timetable, need.careful, start)
        if timetable[0] > draft.timetable[0]:
            reason += f"; keeps {timetable[0]}, as {need.high[1]:.4g}/s may come"
        first, *_ = counts = tuple(timetable.tolist())
        return Target(first, reason, (need.rates[1] + need.waiting) * td_s), counts
