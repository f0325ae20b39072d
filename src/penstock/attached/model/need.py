"""From slots to executors: as many as the queries need, asked for so early that they are there in time."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.control.analyze import Analyzer
from penstock.control.managers.ledger import SlotLedger
from penstock.control.managers.region_manager import Spare, Wish, WorkerProposal
from penstock.errors import InputError
from penstock.forecast.base import Forecast
from penstock.infra.worker import Worker, WorkerSize, WorkerState
from penstock.metrics.snapshot import Snapshot
from penstock.policy.base import Plan, Policy
from penstock.policy.psps import Psps

UNKNOWN_JOIN_S = 10.0  # until the first executor has come while it was watched
LONGEST_LEAD_S = 600.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many executors there may be.

    >>> Bounds.parse("1..8"), Bounds.parse("4"), Bounds.parse(4)
    (Bounds(least=1, most=8), Bounds(least=4, most=4), Bounds(least=4, most=4))
    >>> Bounds.parse("8..1")
    Traceback (most recent call last):
    penstock.errors.InputError: executors must be a number or least..most, from 1 on; got '8..1'
    """

    least: int
    most: int

    @classmethod
    def parse(cls, text: str | int) -> Bounds:
        """From `4` or `1..8`."""
        found = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", str(text))
        least, most = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if not 1 <= least <= most:
            raise InputError(f"executors must be a number or least..most, from 1 on; got {text!r}")
        return cls(least, most)

    def executors(self, slots: int, each: int) -> int:
        """Those that have so many slots, within the bounds.

        >>> Bounds(1, 8).executors(slots=9, each=4), Bounds(2, 8).executors(0, 4), Bounds(1, 2).executors(9, 4)
        (3, 2, 2)
        """
        return min(self.most, max(self.least, math.ceil(slots / max(1, each))))


class ByNeed:
    """A Region Manager whose workers are executors: proposes as many as the slots need that are wanted now.

    Those that have not come yet are the first not to come; of the others `order` says who leaves first.
    """

    def __init__(
        self, region: str, bounds: Bounds, wanted: Callable[[], int], order: Callable[[Sequence[str]], Sequence[str]]
    ) -> None:
        self.region = region
        self.bounds = bounds
        self._wanted = wanted
        self._order = order

    def propose(
        self,
        ledger: SlotLedger,
        used: Mapping[str, float],  # noqa: ARG002 - slots are shared by Spark, none is of one executor
        sizes: Sequence[WorkerSize],
        spared: Collection[str] = (),
        spare: Spare | None = None,  # noqa: ARG002 - it is told what is wanted
    ) -> tuple[WorkerProposal, ...]:
        """Executors to start, or to let go."""
        there = [one for one in ledger.workers if one.state is not WorkerState.DRAINING]
        slots, each = self._wanted(), sizes[0].capacity
        need = self.bounds.executors(slots, each)
        bounds = f"{self.bounds.least} to {self.bounds.most}"
        reason = f"slots that are wanted: {slots}; executors for these, with {each} each: {need}, of {bounds}"
        if len(there) < need:
            start = WorkerProposal(wish=Wish.START, region=self.region, size=sizes[0], reason=reason)
            return (start,) * (need - len(there))
        going = [one for one in self._first(there) if one not in spared][: len(there) - need]
        return tuple(WorkerProposal(wish=Wish.STOP, region=self.region, worker=one, reason=reason) for one in going)

    def _first(self, there: Sequence[Worker]) -> list[str]:
        coming = [one.name for one in there if one.state is WorkerState.STARTING]
        return [*reversed(coming), *self._order([one.name for one in there if one.name not in coming])]


class Leading:
    """Has an analyzer look as far ahead as an executor takes to come, and one step more, and gives the most of that.

    Else an executor would be asked for when it is needed, and come too late.
    """

    def __init__(self, analyzer: Analyzer, lead_s: Callable[[], float]) -> None:
        self._analyzer = analyzer
        self._lead_s = lead_s

    def analyze(self, snapshot: Snapshot) -> Forecast:
        """The forecast; its first step is the most of those until an executor that is asked for now has worked."""
        step_s, lead_s = max(self._analyzer.step_s, snapshot.td_s), self._lead_s()
        steps = 1 + math.ceil(min(LONGEST_LEAD_S, max(0.0, lead_s)) / step_s)
        self._analyzer.horizon = max(self._analyzer.horizon, steps)
        forecast = self._analyzer.analyze(snapshot)
        rates = {series: (max(ahead[:steps]), *ahead[1:]) for series, ahead in forecast.rates.items() if ahead}
        return replace(forecast, rates=rates)


class KeepUp:
    """A guard: nothing is scaled in below what the present input and what waits need, whatever the policy foresees."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._needed = Psps()

    def __repr__(self) -> str:
        return f"KeepUp({self.policy!r})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """The wrapped policy's plan, with as many as are needed now, or as there are if these are fewer."""
        plan, needed = self.policy.plan(snapshot, forecast), self._needed.plan(snapshot).replicas
        targets = dict(plan.targets)
        for name, target in plan.targets.items():
            now = snapshot.operators[name].replicas
            floor = min(now, needed.get(name, now))
            if target.replicas < floor:
                targets[name] = target.limited(floor, f"what comes and waits needs {needed[name]}")
        return replace(plan, targets=targets)
