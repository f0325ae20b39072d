"""What several tests of the engine make: topologies, an operator that takes many events, roles and routings."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from penstock.engine.driver.credential import make_credential
from penstock.engine.protocol.messages import Notice, OperatorRouting, Report, Routing
from penstock.engine.protocol.progress import Phase, Progress, ShiftState
from penstock.engine.worker.role import Role
from penstock.metrics.counters import ReplicaCounters
from penstock.topology import Context, Topology
from tests.waiting import LONG_S

POOL = 4  # of the operators of these topologies
CREDENTIAL = make_credential()  # of a run whose connections are encrypted


def app(run: Any, *, outputs: tuple[str, ...] = ("out",), **operator: Any) -> Topology:
    """The operator `op` in front of an end that reads all its streams."""
    topology = Topology("app", pool=POOL)
    op = topology.operator("op", run, inputs=topology.source("events"), outputs=outputs, **operator)
    topology.operator("end", len, inputs=[op[stream] for stream in outputs])
    return topology


def sink(run: Any, **operator: Any) -> Topology:
    topology = Topology("app", pool=POOL)
    topology.operator("op", run, inputs=topology.source("events"), **operator)
    return topology


def with_letters(topology: Topology) -> Topology:
    """The same with `rejects`, which reads all dead letters."""
    topology.dead_letters(len, name="rejects")
    return topology


def parts(left: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What left for `end`, and the dead letters, by id."""
    out: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for row in left.bundles:
        out[row.header.partition >= POOL].update(zip(row.ids, row.events, strict=True))
    return out


def by_id(left: Any) -> dict[str, Any]:
    return {one: event for row in left.bundles for one, event in zip(row.ids, row.events, strict=True)}


class SparkBatch:
    """The input of a real-time batch: it has no rows, and ends when Spark says so."""

    def __init__(self, *, broken: bool = False) -> None:
        self._over = threading.Event()
        self._broken = broken

    def __iter__(self) -> Iterator[Any]:
        assert self._over.wait(LONG_S)
        if self._broken:
            raise EOFError("Spark is gone")
        yield from ()

    def end(self) -> None:
        self._over.set()


class InBulk:
    """Doubles numbers, many at a time; keeps the sizes of its calls."""

    calls: list[tuple[str, ...]] = []  # noqa: RUF012 - shared with the copy that is shipped

    def open(self, context: Context) -> None:
        self.context = context
        InBulk.calls = []

    def process(self, event: int) -> int:
        raise AssertionError("process_many goes before process")

    def process_many(self, events: list[int]) -> list[Any]:
        InBulk.calls.append(self.context.event_ids)
        if -1 in events:
            raise ValueError("minus one")
        return [None if event == 0 else [event, event] if event == 1 else 2 * event for event in events]


def role(operator: str = "clean", **counters: Any) -> Role:
    return Role(Report(0, 0, operator, 0, ReplicaCounters(**counters)), lambda _: None)


def routing(version: int) -> Routing:
    return Routing(version, {"clean": OperatorRouting((0, version))})


LONG_AGO = 1000.0


def progress(
    version: int,
    phase: Phase = Phase.SENDING,
    *,
    shift: int = 0,
    barrier: int = 0,
    epoch_s: float | None = LONG_AGO,
    **changes: Any,
) -> Progress:
    """One shift at work, in that phase, with that barrier to be sent."""
    return Progress(version, {shift: ShiftState(phase, barrier)}, epoch_s, **changes)


class Published(list[Notice]):
    """What was published, in order."""

    def publish(self, message: Notice) -> None:
        self.append(message)
