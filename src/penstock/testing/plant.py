"""A small deterministic plant: operators with queues, in whole events, moved on by a clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.errors import InputError
from penstock.metrics.counters import OperatorCounters, ReplicaCounters, RunCounters
from penstock.metrics.snapshot import Declared
from penstock.metrics.utilisation import Utilisation
from penstock.testing.clock import ManualClock


@dataclass(frozen=True, slots=True)
class FakeOperator:
    """One operator of the plant; `inputs` has what it gets of each event that a predecessor processed."""

    name: str
    inputs: Mapping[str, float]  # θ_i^p, by operator or source
    execution_time_s: float
    pool: int = 64


@dataclass(slots=True)
class _State:
    """One operator while it runs. Fractions of events and of capacity are carried over to the next advance."""

    active: tuple[int, ...] = (0,)
    backlog: int = 0
    carried: dict[str, float] = field(default_factory=dict)
    spare: float = 0.0
    replicas: dict[int, ReplicaCounters] = field(default_factory=dict)


class FakePlant:
    """Counts and acts as a run does, without events: each advance lets all operators work once, in order.

    In an interval an operator processes what its active replicas have time for, ⌊replicas · seconds / et⌋, of its
    backlog and of what came; the successors get their share of it in the same advance. Events are whole and none
    is lost: received = processed + backlog. It stands in for the engine (monitor and actuator) in tests of the loop.

    >>> clock = ManualClock()
    >>> plant = FakePlant([FakeOperator("clean", {"in": 1.0}, 0.1)], clock)
    >>> plant.rates["in"] = 25.0
    >>> clock.advance(1.0)
    >>> plant.counters().operators["clean"].backlog
    15
    """

    def __init__(self, operators: Iterable[FakeOperator], clock: ManualClock) -> None:
        self.operators = {operator.name: operator for operator in operators}
        senders = {name for operator in self.operators.values() for name in operator.inputs}
        self.rates = dict.fromkeys(sorted(senders - self.operators.keys()), 0.0)  # per second, by source
        self.published: dict[str, Utilisation] = {}
        self._clock = clock
        self._entered = dict.fromkeys(self.rates, 0)
        self._carried = dict.fromkeys(self.rates, 0.0)
        self._states = {
            name: _State(replicas={replica: ReplicaCounters() for replica in range(operator.pool)})
            for name, operator in self.operators.items()
        }
        clock.listen(self._advance)

    def declared(self, *, execution_times: bool = True) -> dict[str, Declared]:
        """What a topology would declare of these operators."""
        return {
            name: Declared(tuple(one.inputs), one.execution_time_s if execution_times else None, one.inputs)
            for name, one in self.operators.items()
        }

    def counters(self) -> RunCounters:
        """The counters now; the plant changes no counters it has handed out."""
        operators = {}
        for name, state in self._states.items():
            copies = {number: _copy(replica) for number, replica in state.replicas.items()}
            operators[name] = OperatorCounters(copies, state.active, self.operators[name].pool, state.backlog)
        return RunCounters(self._clock.now(), dict(self._entered), operators)

    def set_replicas(self, operator: str, replicas: tuple[int, ...]) -> None:
        """Activate exactly these."""
        pool = self.operators[operator].pool
        if not replicas or not all(0 <= replica < pool for replica in replicas):
            raise InputError(f"operator '{operator}': replicas must be some of 0..{pool - 1}; got {replicas}")
        self._states[operator].active = replicas

    def publish_utilisation(self, utilisation: Mapping[str, Utilisation]) -> None:
        """Keep what was published last."""
        self.published = dict(utilisation)

    def queue(self, operator: str, events: int) -> None:
        """Put events into an operator's backlog, as if an earlier interval had left them."""
        self._states[operator].backlog += events

    @property
    def active(self) -> dict[str, int]:
        """The number of active replicas by operator."""
        return {name: len(state.active) for name, state in self._states.items()}

    def _advance(self, seconds: float) -> None:
        sent: dict[str, int] = {}
        for source, rate in self.rates.items():
            whole, self._carried[source] = _whole(self._carried[source] + rate * seconds)
            self._entered[source] += whole
            sent[source] = whole
        for name, operator in self.operators.items():
            sent[name] = self._work(operator, self._states[name], sent, seconds)

    def _work(self, operator: FakeOperator, state: _State, sent: Mapping[str, int], seconds: float) -> int:
        """Let one operator receive and process; how many it processed."""
        for sender, share in operator.inputs.items():
            exact = state.carried.get(sender, 0.0) + sent[sender] * share
            whole, state.carried[sender] = _whole(exact)
            _add(state.replicas[state.active[0]].received, sender, whole)
            state.backlog += whole
        capacity, spare = _whole(state.spare + len(state.active) * seconds / operator.execution_time_s)
        done = min(capacity, state.backlog)
        state.spare = spare if done == capacity else 0.0  # idle time is gone
        state.backlog -= done
        each, more = divmod(done, len(state.active))
        for place, number in enumerate(state.active):
            share_done = each + (place < more)
            state.replicas[number].processed += share_done
            state.replicas[number].busy_s += share_done * operator.execution_time_s
        return done


def _whole(exact: float) -> tuple[int, float]:
    """The whole events of an amount, and what is left over; a hair below a whole one is whole."""
    whole = int(exact + 1e-9)
    return whole, max(0.0, exact - whole)


def _add(counts: dict[str, int], name: str, count: int) -> None:
    counts[name] = counts.get(name, 0) + count


def _copy(counters: ReplicaCounters) -> ReplicaCounters:
    copy = ReplicaCounters()
    copy.add(counters)
    return copy
