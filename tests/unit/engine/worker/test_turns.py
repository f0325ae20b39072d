"""Where the order of events counts, a replica of the next shift waits until the last one has finished."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.protocol.progress import Phase, Progress, ShiftState
from penstock.engine.worker.replica import OperatorReplica
from penstock.topology import Topology
from tests.waiting import LONG_S

from ..made import LONG_AGO, progress

Driver = Any
Tools = SimpleNamespace


def app(**grouping: Any) -> Topology:
    topology = Topology("app", pool=2)
    topology.operator("op", len, inputs=topology.source("events"), **grouping)
    return topology


def both(version: int) -> Progress:
    """The next shift sends, the last one finishes."""
    return Progress(version, {0: ShiftState(Phase.FINISHING, version), 1: ShiftState(Phase.SENDING)}, LONG_AGO)


def replica(driver: Driver, topology: Topology, *, shift: int) -> tuple[Any, OperatorReplica]:
    program = driver.program(topology, shift=shift, progress=both(1))
    return program, OperatorReplica(program, 1, "op", 0, shift * 10**9)


def test_events_wait_for_their_turn(driver: Driver, tools: Tools) -> None:
    over = threading.Event()

    def going_on() -> Iterator[Any]:
        yield tools.Batch([tools.bundle(["a", "b"])])
        over.wait(LONG_S)

    _, at_work = replica(driver, app(grouping="fields", key=str), shift=1)
    working = threading.Thread(target=lambda: list(at_work.run(going_on())))
    working.start()
    tools.until(lambda: at_work._counters.received == {"events": 2})
    working.join(0.1)
    assert at_work._counters.processed == 0
    driver.server.publish(progress(2, shift=1))
    tools.until(lambda: at_work._counters.processed == 2)
    over.set()
    working.join(LONG_S)


@pytest.mark.timeout(LONG_S)
def test_a_replica_that_waits_for_its_turn_ends_with_its_input(driver: Driver, tools: Tools) -> None:
    """When Spark was killed while a shift waited for the one before it, its Python processes stayed for ever."""
    _, at_work = replica(driver, app(grouping="fields", key=str), shift=1)
    assert list(at_work.run([tools.Batch([tools.bundle(["a"])])])) == []
    assert at_work._counters.processed == 0


def test_where_order_does_not_count_nobody_waits(driver: Driver, tools: Tools) -> None:
    _, at_work = replica(driver, app(), shift=1)
    list(at_work.run([tools.Batch([tools.bundle(["a", "b"])])]))
    assert at_work._counters.processed == 2


def test_a_replica_whose_batch_breaks_waits_no_longer(driver: Driver, tools: Tools) -> None:
    def breaking() -> Iterator[Any]:
        yield tools.Batch([tools.bundle(["a"])])
        raise EOFError("Spark is gone")

    _, at_work = replica(driver, app(grouping="fields", key=str), shift=1)
    with pytest.raises(EOFError, match="Spark is gone"):
        list(at_work.run(breaking()))
