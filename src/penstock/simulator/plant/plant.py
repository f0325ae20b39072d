"""The simulated plant: a topology at work, moved on in time, that counts and acts as a run on Spark does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from penstock.errors import InputError
from penstock.metrics.counters import RunCounters
from penstock.metrics.latency import LatencyHistogram
from penstock.metrics.utilisation import Utilisation
from penstock.simulator.kernels.arrays import BUCKETS, Events, Floats, Tally, Tracking, empty_events
from penstock.simulator.kernels.move import merge
from penstock.simulator.kernels.settle import enter
from penstock.simulator.plant.arrivals import Arrivals
from penstock.simulator.plant.model import Edge, Model, OperatorModel
from penstock.simulator.plant.online import REPORT_S
from penstock.simulator.plant.operator import SimulatedOperator
from penstock.simulator.plant.pull import PullOperator
from penstock.simulator.plant.regional import RegionalOperator
from penstock.simulator.plant.rows import with_latency
from penstock.simulator.plant.stateful import StatefulOperator
from penstock.simulator.scenario import Plant

CHUNK = 1 << 14  # source events moved through the topology at once
_FIRST_RING = 1 << 12


class SimulatedPlant:
    """Events are moved operator by operator, in topological order, a stretch of time at a stretch.

    That is exact: who gets an event is settled when it is sent (with `pull`, when a replica gets room), a replica works
    in order of arrival, and replicas change only between stretches.
    """

    def __init__(
        self,
        model: Model,
        arrivals: Mapping[str, Arrivals],
        plant: Plant,
        *,
        target_s: float = 2.0,
        regional: bool = False,
    ) -> None:
        if missing := [name for name in model.sources if name not in arrivals]:
            raise InputError(f"simulation: source {missing[0]!r} has no arrivals")
        self.now_s = 0.0
        self.target_s = target_s
        self._plant = plant
        self._model = model
        self._arrivals = arrivals
        self._entered = dict.fromkeys(model.sources, 0)
        self._total = 0  # source events so far
        self._tally = Tally(np.zeros(BUCKETS, np.int64), np.array([0.0, 0.0, target_s]), np.zeros(3, np.int64))
        self._tracking = _ring(_FIRST_RING, used=model.splits)
        plant.check_state(model.stateful)
        self.operators = {
            name: _kind_of(one, regional=regional)(one, plant, self._tracking, self._tally)
            for name, one in model.operators.items()
        }
        self._changed = False
        self._regions: dict[tuple[str, int], int] = {}
        self._seat(model.operators)

    @property
    def end_s(self) -> float:
        """From then on nothing enters."""
        return max(arrivals.end_s for arrivals in self._arrivals.values())

    @property
    def events(self) -> int:
        """Source events that entered."""
        return self._total

    @property
    def entered(self) -> dict[str, int]:
        """Events that entered, by source."""
        return self._entered

    @property
    def out(self) -> int:
        """Source events of which all has left."""
        return int(self._tally.counts[0])

    @property
    def failed(self) -> int:
        """Source events of which some part was dropped, and nothing is in flight."""
        return int(self._tally.counts[1])

    @property
    def in_flight(self) -> int:
        """Source events of which some part is in flight."""
        return self._total - self.out - self.failed

    @property
    def late(self) -> int:
        """Source events that left after more than the target."""
        return int(self._tally.counts[2])

    @property
    def latency_total_s(self) -> float:
        """Latencies of all source events that are out, added up."""
        return float(self._tally.times[0])

    @property
    def stateful(self) -> list[str]:
        """The operators that keep state."""
        return self._model.stateful

    @property
    def backlog(self) -> int:
        """Events that wait or are worked on, at all operators."""
        return sum(operator.backlog for operator in self.operators.values())

    @property
    def replica_seconds(self) -> float:
        """What the replicas cost so far: each costs while it is active or has events queued."""
        return math.fsum(float(operator.paid_s.sum()) for operator in self.operators.values())

    def active(self) -> dict[str, int]:
        """The number of active replicas by operator."""
        return {name: len(operator.active) for name, operator in self.operators.items()}

    def advance(self, until_s: float) -> None:
        """Let the time pass until then."""
        reports = [operator.online for operator in self.operators.values() if operator.online]
        while self.now_s < until_s:
            ahead = max(1, CHUNK // len(self._arrivals))
            report_s = REPORT_S * (math.floor(self.now_s / REPORT_S) + 1) if reports else np.inf
            step_s = min([until_s, report_s, *(arrivals.horizon(ahead) for arrivals in self._arrivals.values())])
            self._move(max(step_s, np.nextafter(self.now_s, np.inf)))
            if self.now_s >= report_s:
                for side in reports:
                    side.deliver()

    def _move(self, until_s: float) -> None:
        flowing, none = dict[Edge, Events](), empty_events(0)  # a source has no dead letters here
        for source, edges in self._model.sources.items():
            self._enter(source, edges, until_s, flowing)
        for operator in self.operators.values():
            operator.take(_merged([flowing.pop(edge, none) for edge in operator.model.inputs]))
            operator.give(until_s)
            operator.pay(self.now_s, until_s)
            for place, edge in enumerate(operator.model.outputs):
                flowing[edge] = operator.output(place)
        self.now_s = until_s

    def _enter(self, source: str, edges: Sequence[Edge], until_s: float, flowing: dict[Edge, Events]) -> None:
        times = self._arrivals[source].pull(until_s)
        count, first = len(times), self._entered[source]
        numbers = np.arange(self._total, self._total + count)
        values = (np.arange(first, first + count) % self._model.values[source]).astype(np.int32)
        self._entered[source] += count
        self._total += count
        if count and self._tracking.used[0]:
            self._widen()
            enter(self._tracking, numbers, len(edges))
        for edge in edges:
            flowing[edge] = Events(
                times, times, numbers, values + np.int32(edge.base), np.full(count, edge.row, np.int32)
            )

    def counters(self) -> RunCounters:
        """The counters now. The latency of source events is counted at the last operator, in its first replica."""
        counted = {name: operator.counters() for name, operator in self.operators.items()}
        last = next(reversed(counted))
        counted[last] = with_latency(counted[last], self.latency())
        return RunCounters(self.now_s, dict(self._entered), counted)

    def latency(self) -> LatencyHistogram:
        """End-to-end latency of the source events that are out."""
        seen = np.flatnonzero(self._tally.latency)
        buckets = dict(zip(seen.tolist(), self._tally.latency[seen].tolist(), strict=True))
        total_s, greatest_s, _ = self._tally.times.tolist()
        return LatencyHistogram(buckets, self.out, 1000 * total_s, 1000 * greatest_s)

    def set_replicas(self, operator: str, replicas: tuple[int, ...]) -> None:
        """From now on exactly these replicas get events."""
        self.operators[operator].activate(replicas, self.now_s)
        self._seat({operator})
        self._changed = True

    def place(self, regions: Mapping[tuple[str, int], int], delay_s: Floats) -> None:
        """From now on these replicas (and sources) sit in these regions; `delay_s` is from region to region.

        A replica that is not named stays where it was; one that never was anywhere is in region 0.
        """
        self._regions |= regions
        for operator in self.operators.values():
            if isinstance(operator, RegionalOperator):
                pools = [(operator.name, replica) for replica in range(operator.pool)]
                at = [[self._regions.get(one, 0) for one in several] for several in (operator.sending(), pools)]
                operator.place(delay_s[np.ix_(*at)])

    @property
    def balanced(self) -> tuple[str, ...]:
        """The operators with the load-balancing grouping: nobody looks at how used the replicas of others are."""
        return tuple(name for name, one in self.operators.items() if one.balances)

    def publish_utilisation(self, utilisation: Mapping[str, Utilisation]) -> None:
        """Tell all senders how used the replicas are."""
        for name, used in utilisation.items():
            self.operators[name].publish(used.by_replica, used.step)

    def begin(self) -> None:
        """What was set so far is how the simulation begins, and no change."""
        self._changed = False

    def settle_changes(self) -> bool:
        """Once all replicas are set, do what the actuation does on a change; says whether there was one."""
        changed, self._changed = self._changed, False
        if changed and self._plant.actuation != "pool":
            until_s = self.now_s + self._plant.restart_s
            for operator in self.operators.values():
                operator.restart(until_s, lossy=self._plant.actuation == "restart-lossy")
        return changed

    def unfinished_late(self) -> int:
        """Source events in flight that are older than the target already."""
        born_before_s = self.now_s - self.target_s
        late: set[int] = set()
        for operator in self.operators.values():
            late.update(operator.sources_born_before(born_before_s))
        return len(late)

    def _seat(self, changed: Mapping[str, object] | set[str]) -> None:
        """Number the senders of all operators that a changed operator sends to."""
        active: dict[str, Sequence[int]] = dict.fromkeys(self._model.sources, (0,))
        active |= {name: operator.active for name, operator in self.operators.items()}
        first = len(changed) == len(self.operators)
        for operator in self.operators.values():
            if first or any(sender in changed for sender in operator.model.senders):
                operator.seat(active)

    def _widen(self) -> None:
        """Make the ring long enough for all source events in flight."""
        oldest, old = int(self._tracking.base[0]), self._tracking
        if self._total - oldest <= len(old.parts):
            return
        ring = _ring(2 * (self._total - oldest), used=True)
        numbers = np.arange(oldest, int(old.base[1]))
        here, there = numbers % len(old.parts), numbers % len(ring.parts)
        ring.parts[there], ring.last[there], ring.failed[there] = old.parts[here], old.last[here], old.failed[here]
        ring.base[:] = old.base
        self._tracking = ring
        for operator in self.operators.values():
            operator.track(ring)


def _kind_of(model: OperatorModel, *, regional: bool) -> type[SimulatedOperator]:
    """What simulates an operator: with state, bound late, in regions, or all at one place."""
    if model.operator.state is not None:
        return StatefulOperator
    if model.operator.grouping == "pull":
        if regional:
            raise InputError(f"{model.operator}: grouping 'pull' knows no delays between regions")
        return PullOperator
    return RegionalOperator if regional else SimulatedOperator


def _ring(room: int, *, used: bool) -> Tracking:
    return Tracking(
        np.zeros(room, np.int32), np.zeros(room), np.zeros(room, np.int8), np.zeros(2, np.int64), np.array([int(used)])
    )


def _merged(parts: Sequence[Events]) -> Events:
    """Several rows of events as one, in order of time."""
    merged = parts[0]
    for part in parts[1:]:
        target = empty_events(len(merged.time) + len(part.time))
        merge(merged, part, target)
        merged = target
    return merged
