"""What if: a run as it stood at the end of an interval, played on in the simulator with one or another plan.

>>> one = Standing(execution_time_s=0.1, pool=4, replicas=1, backlog=100, shares={"in": 1.0})
>>> state = StateAtHand({"work": one}, {"in": (5.0, 5.0)}, td_s=5.0, target_s=2.0)
>>> played_on(state, {"work": 1}).late, played_on(state, {"work": 4}).late
(122, 92)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from penstock.simulator.plant.arrivals import Arrivals, Even
from penstock.simulator.plant.model import build_model
from penstock.simulator.plant.plant import SimulatedPlant
from penstock.simulator.scenario import Plant
from penstock.topology import Topology
from penstock.topology.operator import DEFAULT_STREAM
from penstock.workload import Trace

UNKNOWN_S = 0.001  # an execution time that nobody knows
_AT_ONCE_S = 0.001  # in which what waits arrives
_LEAST_S = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One operator at the end of an interval; `shares` has what it gets of each event of a predecessor."""

    execution_time_s: float | None
    pool: int
    replicas: int
    backlog: int
    shares: Mapping[str, float]  # by operator or source; every reader of a source gets all of its events


@dataclass(frozen=True, slots=True)
class StateAtHand:
    """A run at the end of an interval, and what enters from then on: rates by source, one for each interval."""

    operators: Mapping[str, Standing]
    rates: Mapping[str, tuple[float, ...]]
    td_s: float
    target_s: float
    grouping: str = "shuffle"

    @property
    def seconds(self) -> float:
        """How long it is known what enters."""
        return self.td_s * min((len(one) for one in self.rates.values()), default=0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a plan came to in that time. What waited at its beginning counts as new then."""

    events: int
    late: int
    replica_seconds: float
    backlog: int

    @property
    def late_share(self) -> float:
        """Of all events that waited or came."""
        return self.late / self.events if self.events else 0.0


def played_on(state: StateAtHand, replicas: Mapping[str, int]) -> Outcome:
    """Let the run go on with so many replicas, all the time.

    What waits has been sent to the replicas that were active; more replicas help it only where events are bound late.
    """
    state, replicas = _plainly(state, replicas)
    topology, waiting = _topology(state)
    arrivals: dict[str, Arrivals] = {name: _even(rates, state.td_s) for name, rates in state.rates.items()}
    arrivals |= {name: _even((count / _AT_ONCE_S,), _AT_ONCE_S) for name, count in waiting.items()}
    plant = SimulatedPlant(build_model(topology), arrivals, Plant(), target_s=state.target_s)
    _set(plant, {name: one.replicas for name, one in state.operators.items()})
    plant.advance(_AT_ONCE_S)
    _set(plant, replicas)
    plant.advance(state.seconds)
    late = plant.late + plant.failed + plant.unfinished_late()
    return Outcome(plant.events, late, plant.replica_seconds, plant.backlog)


def _plainly(state: StateAtHand, replicas: Mapping[str, int]) -> tuple[StateAtHand, dict[str, int]]:
    """The same under names that a topology takes, as who wrote a store may have called things otherwise.

    A source of which nothing is known is one from which nothing comes.
    """
    names = {name: f"operator_{number}" for number, name in enumerate(state.operators)}
    senders = [*state.rates, *(sender for one in state.operators.values() for sender in one.shares)]
    for sender in senders:
        names.setdefault(sender, f"source_{len(names)}")
    operators = {
        names[name]: replace(one, shares={names[sender]: share for sender, share in one.shares.items()})
        for name, one in state.operators.items()
    }
    nothing = (0.0,) * round(state.seconds / state.td_s)
    rates = {names[name]: state.rates.get(name, nothing) for name in names if name not in state.operators}
    read = {sender for one in operators.values() for sender in one.shares}
    known = replace(state, operators=operators, rates={name: one for name, one in rates.items() if name in read})
    return known, {names[name]: count for name, count in replicas.items()}


def _topology(state: StateAtHand) -> tuple[Topology, dict[str, int]]:
    """The operators, each with a stream for every reader, and a source more for what waits at it."""
    topology, waiting = Topology("what if"), dict[str, int]()
    for name in state.rates:
        topology.source(name)
    readers: dict[str, list[str]] = {name: [] for name in state.operators}
    for name, one in state.operators.items():
        for sender in one.shares.keys() & readers.keys():
            readers[sender].append(name)
    for number, (name, one) in enumerate(state.operators.items()):
        inputs = [f"{sender}.to_{name}" if sender in readers else sender for sender in one.shares]
        if one.backlog:
            waiting[f"waiting_{number}"] = one.backlog
            inputs.append(topology.source(f"waiting_{number}").name)
        topology.operator(
            name,
            _nothing,
            inputs=inputs,
            outputs=[f"to_{reader}" for reader in readers[name]] or DEFAULT_STREAM,
            selectivity={f"to_{reader}": state.operators[reader].shares[name] for reader in readers[name]},
            pool=one.pool,
            execution_time_ms=1000 * max(_LEAST_S, UNKNOWN_S if one.execution_time_s is None else one.execution_time_s),
            grouping=state.grouping,
        )
    return topology, waiting


def _even(rates: tuple[float, ...], step_s: float) -> Even:
    return Even(Trace("ahead", step_s, np.array(rates, float)))


def _set(plant: SimulatedPlant, replicas: Mapping[str, int]) -> None:
    for name, count in replicas.items():
        plant.set_replicas(name, tuple(range(count)))
    plant.begin()


def _nothing(event: object) -> None:  # noqa: ARG001
    return None
