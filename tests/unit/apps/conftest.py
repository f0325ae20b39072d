"""A tiny interpreter: a topology run in memory, an operator at a time, in topological order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
import pytest

from penstock.apps import APPS, AppOptions
from penstock.grouping.fields import key_of
from penstock.topology import Stream, To, Topology
from penstock.topology.state_type import new_state


@dataclass
class ListSink:
    """A sink that keeps what it gets."""

    name: str
    service_ms: float
    rows: list[Any] = field(default_factory=list)

    def process(self, event: Any) -> None:
        self.rows.append(event)


@dataclass(frozen=True)
class OneReplica:
    """The context of an operator's only replica."""

    operator: str
    replica: int = 0


@dataclass
class Run:
    """What came of a run: events received by operator, emitted by stream, stored by sink."""

    received: Counter[str] = field(default_factory=Counter)
    emitted: Counter[str] = field(default_factory=Counter)
    stored: dict[str, list[Any]] = field(default_factory=dict)

    def selectivity(self, operator: str, stream: str = "out") -> float:
        return self.emitted[f"{operator}.{stream}"] / self.received[operator]


def outputs_of(output: Any) -> Iterable[Any]:
    if output is None:
        return ()
    return (output,) if isinstance(output, Mapping | To) else output


def run_topology(topology: Topology, events: list[Any]) -> Run:
    """Feed the events to one copy of each operator, as shipped to a worker."""
    topology.check()
    run, queues = Run(), {name: [] for name in topology.operators}
    for source in topology.sources:
        for reader in topology.receivers(Stream(source)):
            queues[reader] += events
    for name in topology.in_order():
        operator = cloudpickle.loads(cloudpickle.dumps(topology[name].run))
        if hasattr(operator, "open"):
            operator.open(OneReplica(name))
        process = getattr(operator, "process", operator)
        values: dict[Any, Any] = {}
        for event in queues[name]:
            run.received[name] += 1
            if (keyed := topology[name].state) is None:
                output_of_it = process(event)
            else:
                key = key_of(topology[name].key, event)
                output_of_it = process(event, values.setdefault(key, new_state(operator, keyed.kind)()))
            for output in outputs_of(output_of_it):
                sent = output if isinstance(output, To) else To("out", output)
                run.emitted[f"{name}.{sent.stream}"] += 1
                for reader in topology.receivers(Stream(name, sent.stream)):
                    queues[reader].append(sent.event)
        if isinstance(operator, ListSink):
            run.stored[name] = operator.rows
    return run


@pytest.fixture
def run_in_memory() -> Callable[[Topology, list[Any]], Run]:
    return run_topology


@pytest.fixture
def build() -> Callable[..., Topology]:
    """`build("twitter", pool=2)`: the app's topology with list sinks, without waiting unless `service_ms` is given."""

    def built(app: str, **options: Any) -> Topology:
        names = APPS[app].build(AppOptions(sink=ListSink)).operators
        options.setdefault("service_ms", dict.fromkeys(names, 0.0))
        return APPS[app].build(AppOptions(sink=ListSink, **options))

    return built
