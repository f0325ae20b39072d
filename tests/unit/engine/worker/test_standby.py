"""A process of a standby: it gets ready, waits, and goes to work when its attempt is called, or ends with its input."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from penstock.engine.plan.program import Program
from penstock.engine.protocol.messages import OperatorRouting, Routing
from penstock.engine.protocol.progress import Call
from penstock.engine.worker import lifecycle
from penstock.engine.worker.lifecycle import opened
from penstock.engine.worker.standby import Waiting
from penstock.topology import Context, Topology
from tests.waiting import LONG_S

from ..made import SparkBatch, app, progress, sink

Driver = Any
Tools = SimpleNamespace
GENERATION = 6


class Opens:
    """An operator that says when it is opened."""

    opened: list[Context] = []  # noqa: RUF012 - shared with the copy that is shipped

    def open(self, context: Context) -> None:
        Opens.opened.append(context)

    def process(self, event: Any) -> Any:
        return event


class Stores(Opens):
    """The same, and it takes part in checkpoints."""

    def prepare(self, checkpoint: int) -> None: ...


class Standby:
    """One process, in a thread of its own."""

    def __init__(self, driver: Driver, topology: Topology, name: str = "op", **changes: Any) -> None:
        made: Program = driver.program(topology, **changes)
        self.program = replace(made, generation=GENERATION, standby=True, checkpoint=3)
        self.input = SparkBatch(broken=name == "broken")
        self.waiting = Waiting(self.program, ("op" if name == "broken" else name, 0), 0, self.input)
        self.called: list[Program | None] = []
        self.thread = threading.Thread(target=lambda: self.called.append(self.waiting.await_call()))
        self.thread.start()

    def done(self) -> Program | None:
        self.thread.join(LONG_S)
        (called,) = self.called
        return called


@pytest.fixture
def standby(driver: Driver) -> Iterator[Any]:
    made: list[Standby] = []
    Opens.opened.clear()

    def started(*given: Any, **changes: Any) -> Standby:
        made.append(Standby(driver, *given, **changes))
        return made[-1]

    yield started
    for one in made:
        one.input.end()
        one.thread.join(LONG_S)
        assert not one.thread.is_alive()
    lifecycle.close_all()


def call(driver: Driver, generation: int = GENERATION, checkpoint: int = 8) -> None:
    driver.server.publish(msgspec.structs.replace(progress(2), called=Call(generation, checkpoint)))


def test_it_begins_when_it_is_called_with_the_routing_and_the_checkpoint_of_then(
    driver: Driver, tools: Tools, standby: Any
) -> None:
    one = standby(app(len))
    tools.until(lambda: driver.server.known(GENERATION) == 1)
    driver.server.publish(Routing(2, {"op": OperatorRouting((1, 2)), "end": OperatorRouting((0,))}))
    call(driver, generation=5)  # another's
    one.thread.join(0.05)
    assert one.called == []
    call(driver)
    called = one.done()
    assert called is not None
    assert (called.checkpoint, called.routing["op"].active, called.generation) == (8, (1, 2), GENERATION)


def test_the_operator_is_opened_before_and_not_again(driver: Driver, tools: Tools, standby: Any) -> None:
    one = standby(sink(Opens()))
    tools.until(lambda: Opens.opened)
    assert one.called == []
    call(driver)
    called = one.done()
    assert called is not None
    operator = opened(called, "op", 0, 0)
    assert operator.context is Opens.opened[0]
    assert (len(Opens.opened), operator.context.checkpoint) == (1, 8)


def test_a_sink_with_a_part_in_checkpoints_is_opened_when_it_is_called(
    driver: Driver, tools: Tools, standby: Any
) -> None:
    """It would fence the one at work, or meet it at the same rows."""
    one = standby(sink(Stores()))
    tools.until(lambda: driver.server.known(GENERATION) == 1)
    call(driver)
    assert one.done() is not None
    assert Opens.opened == []


def test_who_comes_back_to_the_driver_is_known_again_and_hears_the_call(
    driver: Driver, tools: Tools, standby: Any
) -> None:
    one = standby(app(len))
    tools.until(lambda: driver.server.known(GENERATION) == 1)
    driver.server.cut(True)
    tools.until(lambda: driver.server.known(GENERATION) == 0)
    call(driver)
    driver.server.cut(False)
    tools.until(lambda: driver.server.known(GENERATION) == 1)
    assert one.done() is not None


def test_it_ends_with_its_input(driver: Driver, tools: Tools, standby: Any) -> None:
    """Or else it would stay for ever when Spark is killed."""
    one = standby(app(len))
    tools.until(lambda: driver.server.known(GENERATION) == 1)
    one.input.end()
    assert one.done() is None
    assert list(one.waiting.batches) == []


def test_what_breaks_its_input_is_raised_where_the_input_is_taken(driver: Driver, tools: Tools, standby: Any) -> None:
    one = standby(app(len), "broken")
    tools.until(lambda: driver.server.known(GENERATION) == 1)
    one.input.end()
    assert one.done() is None
    with pytest.raises(EOFError, match="Spark is gone"):
        list(one.waiting.batches)


def test_it_ends_with_the_run(driver: Driver, tools: Tools, standby: Any) -> None:
    one = standby(app(len))
    tools.until(lambda: driver.server.known(GENERATION) == 1)
    driver.server.publish(progress(2, closing=True))
    assert one.done() is None


def test_a_slot_of_a_source_waits_too(driver: Driver, tools: Tools, standby: Any) -> None:
    one = standby(app(len), "events", sources={"events": range(3)})
    tools.until(lambda: driver.server.known(GENERATION) == 1)
    call(driver)
    assert one.done() is not None
