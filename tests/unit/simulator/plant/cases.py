"""Random cases for both simulators: a topology, its input, and what is done to it at the ends of intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from hypothesis import strategies as st

from penstock.apps.waiting import Waiting
from penstock.metrics.utilisation import Utilisation
from penstock.simulator.kernels.arrays import Floats
from penstock.simulator.plant.model import Facts, build_model
from penstock.simulator.plant.plant import SimulatedPlant
from penstock.simulator.scenario import Plant
from penstock.topology import Stream, To, Topology

from .reference import Reference

INTERVAL_S = 1.0
GROUPINGS = ("shuffle", "fields", "load_balancing", "least_work", "pull")
KEYS = 7


def chance(*of: object) -> float:
    """A number from 0 to 1 that depends on these things alone; no two of them, nor sums of some, are alike."""
    return int.from_bytes(blake2b(repr(of).encode(), digest_size=6).digest()) / 2**48


@dataclass(frozen=True)
class Gives:
    """Gives each stream at most so many events for an event, and each of them a name of its own."""

    operator: str
    most: dict[str, int]

    def __call__(self, event: str) -> list[To]:
        return [
            To(stream, f"{event} {self.operator}.{stream}{part}")
            for stream, most in self.most.items()
            for part in range(int((most + 1) * chance(self.operator, stream, event)))
        ]


@dataclass(frozen=True)
class Takes:
    """Service times between 0.2 and 1.8 of their mean, another one for every event."""

    operator: str
    mean_ms: float

    def __call__(self, event: str) -> float:
        return self.mean_ms * (0.2 + 1.6 * chance(self.operator, event))


def key(event: str) -> int:
    return int(KEYS * chance(event))


class Given:
    """Arrivals at given times."""

    def __init__(self, times: Floats) -> None:
        self._times = times
        self._next = 0
        self.end_s = float(times[-1]) if len(times) else 0.0

    def horizon(self, count: int) -> float:
        at = self._next + count
        return float(self._times[at]) if at < len(self._times) else np.inf

    def pull(self, until_s: float) -> Floats:
        start, self._next = self._next, int(np.searchsorted(self._times, until_s, side="right"))
        return self._times[start : self._next]


@dataclass(frozen=True)
class Change:
    """What is done at the end of one interval."""

    replicas: dict[str, tuple[int, ...]]
    used: dict[str, Utilisation]

    def make(self, plant: SimulatedPlant | Reference) -> None:
        for name, active in self.replicas.items():
            plant.set_replicas(name, active)
        plant.publish_utilisation(self.used)
        plant.settle_changes()


TARGET_S = 0.1


@dataclass(frozen=True, repr=False)
class Case:
    """All that a simulation needs; the first change is how it begins."""

    topology: Topology
    times: dict[str, Floats]
    options: Plant
    changes: tuple[Change, ...]

    def __repr__(self) -> str:
        operators = [
            f"{one.name}: {' '.join(map(str, one.inputs))} → {one.run}, {one.grouping}, pool {one.pool}"
            for one in self.topology.operators.values()
        ]
        entering = [f"{source}: {times.tolist()}" for source, times in self.times.items()]
        return "\n".join([*operators, *entering, f"{self.options}", *map(str, self.changes)])

    @property
    def last_s(self) -> float:
        """The end of the last interval with a change, or of the input."""
        return max([len(self.changes) * INTERVAL_S, *(float(times[-1]) for times in self.times.values())])

    def payloads(self, source: str) -> list[str]:
        return [f"{source}{number}" for number in range(len(self.times[source]))]

    def plant(self, *, regional: bool = False) -> SimulatedPlant:
        payloads = {name: self.payloads(name) for name in self.times}
        facts = Facts(payloads=payloads, overhead_s=self.options.overhead_s, run_functions=True)
        arrivals = {name: Given(times) for name, times in self.times.items()}
        model = build_model(self.topology, facts)
        return self._begun(SimulatedPlant(model, arrivals, self.options, target_s=TARGET_S, regional=regional))

    def reference(self) -> Reference:
        sources = {name: (times.tolist(), self.payloads(name)) for name, times in self.times.items()}
        mean_s = {name: one.model.mean_s for name, one in self.plant().operators.items()}
        return self._begun(Reference(self.topology, sources, self.options, mean_s=mean_s))

    def _begun(self, plant: Any) -> Any:
        for name, active in self.changes[0].replicas.items():
            plant.set_replicas(name, active)
        plant.publish_utilisation(self.changes[0].used)
        plant.begin()
        return plant


def chain(groupings: Sequence[str], pool: int = 4, mean_ms: float = 10.0) -> Topology:
    """An operator for each grouping, one after the other; an event becomes none, one or two."""
    topology = Topology("chain", pool=pool)
    last = Stream(topology.source("s").name)
    for number, grouping in enumerate(groupings):
        name = f"o{number}"
        operator = topology.operator(
            name,
            Waiting(Gives(name, {"out": 2}), Takes(name, mean_ms)),
            inputs=last,
            grouping=grouping,
            key=key if grouping == "fields" else None,
            execution_time_ms=mean_ms,
        )
        last = operator["out"]
    return topology


def poisson(rate: float, count: int, seed: int) -> Floats:
    """Arrival times at random: no two things ever happen at the same time."""
    return np.cumsum(np.random.default_rng(seed).exponential(1 / rate, count))


@st.composite
def topologies(draw) -> Topology:
    """One to five operators in any order of streams: chains, splits, joins, filters, events that become several."""
    topology = Topology("random")
    free = [Stream(topology.source(name).name) for name in ("s", "r")[: draw(st.integers(1, 2))]]
    unread = list(free)
    size = draw(st.integers(1, 5))
    for number in range(size):
        name = f"o{number}"
        inputs = draw(st.lists(st.sampled_from(free), min_size=1, max_size=2, unique=True))
        if number == size - 1:
            inputs = list(dict.fromkeys([*inputs, *unread]))
        outputs = ("out", "side") if number < size - 1 and draw(st.booleans()) else ("out",)
        most = {stream: draw(st.integers(1, 3)) for stream in outputs}
        grouping = draw(st.sampled_from(GROUPINGS))
        mean_ms = draw(st.sampled_from((1.0, 10.0, 30.0)))
        operator = topology.operator(
            name,
            Waiting(Gives(name, most), Takes(name, mean_ms)),
            inputs=inputs,
            outputs=outputs,
            pool=draw(st.integers(1, 4)),
            grouping=grouping,
            key=key if grouping == "fields" else None,
            execution_time_ms=mean_ms,
        )
        free += [operator[stream] for stream in outputs]
        unread = [one for one in unread if one not in inputs] + [operator[one] for one in outputs if one == "side"]
    return topology


@st.composite
def changes(draw, topology: Topology) -> Change:
    """New replicas for some operators, and new utilisations for some."""
    operators = topology.operators.values()
    replicas, used = {}, {}
    for one in operators:
        numbers = st.lists(st.integers(0, one.pool - 1), min_size=1, unique=True)
        if draw(st.booleans()):
            replicas[one.name] = tuple(sorted(draw(numbers)))
        if draw(st.booleans()):
            by_replica = {number: draw(st.sampled_from((0.0, 0.1, 0.35, 1.0))) for number in range(one.pool)}
            used[one.name] = Utilisation(by_replica, draw(st.sampled_from((0.0, 0.03, 0.4))))
    return Change(replicas, used)


@st.composite
def options(draw, **fixed: Any) -> Plant:
    """Bounds and delays; none of them a whole part of an interval, so that nothing falls on its end."""
    chosen = Plant(
        t_out_s=draw(st.sampled_from((None, None, 0.2, 0.9))),
        q_size=draw(st.sampled_from((None, None, 1, 5, 20))),
        hop_s=draw(st.sampled_from((0.0, 0.0021, 0.31))),
        activation_delay_s=draw(st.sampled_from((0.0, 0.053, 1.37))),
        actuation=draw(st.sampled_from(("pool", "pool", "restart", "restart-lossy"))),
        restart_s=draw(st.sampled_from((0.27, 1.59))),
    )
    return replace(chosen, **fixed)


@st.composite
def cases(draw, **fixed: Any) -> Case:
    """A topology with up to 150 events a source, over up to five intervals."""
    topology = draw(topologies())
    seed, times = draw(st.integers(0, 10**6)), {}
    for place, source in enumerate(topology.sources):
        count, rate = draw(st.integers(2, 150)), draw(st.sampled_from((20.0, 60.0, 200.0)))
        times[source] = poisson(rate, count, seed + place)
    made = [draw(changes(topology)) for _ in range(draw(st.integers(1, 5)))]
    return Case(topology, times, draw(options(**fixed)), tuple(made))
