"""What if: a run as it stood at the end of an interval, played on in the simulator with one or another plan.

>>> one = Standing(execution_time_s=0.1, pool=4, replicas=1, backlog=100, shares={"in": 1.0})
>>> state = StateAtHand({"work": one}, {"in": (5.0, 5.0)}, td_s=5.0, target_s=2.0)
>>> played_on(state, {"work": 1}).late, played_on(state, {"work": 4}).late
(122, 92)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from penstock.simulator.kernels.arrays import Floats
from penstock.simulator.plant.arrivals import Arrivals, Even
from penstock.simulator.plant.model import build_model
from penstock.simulator.plant.plant import SimulatedPlant
from penstock.simulator.scenario import Plant
from penstock.topology import Topology
from penstock.topology.operator import DEFAULT_STREAM
from penstock.workload import Trace

Value = TypeVar("Value")

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
class Earlier:
    """An interval that is over: what waited when it began, the replicas that were active, and what entered by source.

    Rates are per second.
    """

    rates: Mapping[str, float]
    replicas: Mapping[str, int]
    waited: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class StateAtHand:
    """A run at the end of an interval, and what enters from then on: rates by source, one for each interval.

    `past` are the intervals before, oldest first. They are played as well, so that what waits at the end has its age,
    and is with whom it was sent to. Where less waits than did, the rest is added; how old that is, nobody knows.
    """

    operators: Mapping[str, Standing]
    rates: Mapping[str, tuple[float, ...]]
    td_s: float
    target_s: float
    grouping: str = "shuffle"
    past: tuple[Earlier, ...] = ()

    @property
    def seconds(self) -> float:
        """How long it is known what enters."""
        return self.td_s * min((len(one) for one in self.rates.values()), default=0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a plan came to in that time. What waited at its beginning is as old as the past says; without one, new."""

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
    waiting = {name: _Waiting() for name in state.operators}
    arrivals: dict[str, Arrivals] = {name: _even(_all_rates(state, name), state.td_s) for name in state.rates}
    arrivals |= {_waiting(name): one for name, one in waiting.items()}
    plant = SimulatedPlant(build_model(_topology(state)), arrivals, Plant(), target_s=state.target_s)
    for place, one in enumerate(state.past):
        _stand(plant, waiting, one.replicas, one.waited)
        plant.advance((place + 1) * state.td_s)
    backlog = {name: one.backlog for name, one in state.operators.items()}
    gone = _stand(plant, waiting, {name: one.replicas for name, one in state.operators.items()}, backlog)
    late, cost = plant.late + plant.failed, plant.replica_seconds
    _set(plant, replicas)
    plant.advance(len(state.past) * state.td_s + state.seconds)
    late = plant.late + plant.failed + plant.unfinished_late() - late
    return Outcome(plant.events - gone, late, plant.replica_seconds - cost, plant.backlog)


def _stand(
    plant: SimulatedPlant, waiting: Mapping[str, _Waiting], replicas: Mapping[str, int], backlog: Mapping[str, int]
) -> int:
    """From now on these replicas are active, and at least so much waits; gives how many events were gone before.

    What waits elsewhere than it did is not added once more.
    """
    gone = plant.out + plant.failed
    _set(plant, replicas)
    missing = {name: max(0, count - plant.operators[name].backlog) for name, count in backlog.items()}
    part = max(0, sum(backlog.values()) - plant.backlog) / max(1, sum(missing.values()))
    for name, count in missing.items():
        waiting[name].add(plant.now_s, round(part * count))
    plant.advance(plant.now_s + _AT_ONCE_S)
    return gone


class _Waiting:
    """What waits at an operator from some time on: it arrives then, at once."""

    end_s = 0.0

    def __init__(self) -> None:
        self._times_s = np.empty(0)

    def add(self, time_s: float, count: int) -> None:
        """So many from this time on."""
        within_s = np.linspace(0.0, _AT_ONCE_S, max(0, count), endpoint=False)
        self._times_s = np.concatenate([self._times_s, time_s + within_s])

    def horizon(self, count: int) -> float:  # noqa: ARG002
        """Nothing arrives that was not added."""
        return np.inf

    def pull(self, until_s: float) -> Floats:
        """What was added."""
        due = self._times_s <= until_s
        found, self._times_s = self._times_s[due], self._times_s[~due]
        return found


def _all_rates(state: StateAtHand, source: str) -> tuple[float, ...]:
    return (*(one.rates.get(source, 0.0) for one in state.past), *state.rates[source])


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
    past = tuple(
        Earlier(_renamed(one.rates, names), _renamed(one.replicas, names), _renamed(one.waited, names))
        for one in state.past
    )
    rates = {name: one for name, one in rates.items() if name in read}
    known = replace(state, operators=operators, rates=rates, past=past)
    return known, {names[name]: count for name, count in replicas.items()}


def _renamed(values: Mapping[str, Value], names: Mapping[str, str]) -> dict[str, Value]:
    return {names[name]: value for name, value in values.items() if name in names}


def _topology(state: StateAtHand) -> Topology:
    """The operators, each with a stream for every reader, and a source more for what waits at it."""
    topology = Topology("what if")
    for name in state.rates:
        topology.source(name)
    readers: dict[str, list[str]] = {name: [] for name in state.operators}
    for name, one in state.operators.items():
        for sender in one.shares.keys() & readers.keys():
            readers[sender].append(name)
    for name, one in state.operators.items():
        inputs = [f"{sender}.to_{name}" if sender in readers else sender for sender in one.shares]
        inputs.append(topology.source(_waiting(name)).name)
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
    return topology


def _waiting(operator: str) -> str:
    return f"waiting_{operator}"


def _even(rates: tuple[float, ...], step_s: float) -> Even:
    return Even(Trace("ahead", step_s, np.array(rates, float)))


def _set(plant: SimulatedPlant, replicas: Mapping[str, int]) -> None:
    for name, count in replicas.items():
        plant.set_replicas(name, tuple(range(count)))
    plant.begin()


def _nothing(event: object) -> None:  # noqa: ARG001
    return None
