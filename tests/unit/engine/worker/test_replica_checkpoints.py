"""A replica and checkpoints: barriers come in and go out, a sink prepares and commits, and the driver is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from penstock.engine.plan.program import MicroBatch
from penstock.engine.protocol.bundle import Barrier
from penstock.engine.protocol.messages import Done, Restore, RestoreQuery
from penstock.engine.worker.replica import OperatorReplica
from penstock.topology import Context, Topology
from tests.waiting import LONG_S

from ..made import InBulk, app, progress, sink

Driver = Any
Tools = SimpleNamespace


class World:
    """One replica of `op`; a step that can be called is called between two bundles."""

    def __init__(self, driver: Driver, tools: Tools) -> None:
        self.driver, self.tools = driver, tools
        self.replica: Any = None
        self.rows: list[pa.RecordBatch] = []
        self._version = 1

    def run(self, topology: Topology, *steps: Any, number: int = 0, **program: Any) -> Any:
        """What left the replica of that number."""
        made = self.driver.program(topology, **program)
        self.replica = OperatorReplica(made, 1, "op", number, 0)
        self.rows = []
        for rows in self.replica.run(self._batches(steps)):
            self.rows.append(rows)
        return self.tools.left(*self.rows)

    def _batches(self, steps: Any) -> Iterator[Any]:
        for step in steps:
            if callable(step):
                step()
            else:
                yield self.tools.Batch([step] if isinstance(step, bytes) else step)

    def done(self, number: int, **told: Any) -> Callable[[], None]:
        """A step: wait until the replica has said that of a checkpoint."""

        def said() -> bool:
            found = [one for one in self.driver.done("op") if one.number == number]
            return any(all(getattr(one, name) == value for name, value in told.items()) for one in found)

        return lambda: self.tools.until(said)

    def progress(self, **changes: Any) -> Callable[[], None]:
        """A step: tell how far checkpoints are, and wait until the replica has looked."""

        def told() -> None:
            self._version += 1
            self.driver.server.publish(progress(self._version, **changes))
            self.tools.until(lambda: self.replica._heard is self.replica._agent.progress)
            self.tools.until(lambda: self.replica._heard.version == self._version)

        return told

    def processed(self, count: int) -> Callable[[], None]:
        """A step: wait until so many events are processed."""
        return lambda: self.tools.until(lambda: self.replica._counters.processed == count)

    def left(self, *events: Any) -> Callable[[], None]:
        """A step: wait until these have left."""
        return lambda: self.tools.until(lambda: self.tools.left(*list(self.rows)).events == list(events))


@pytest.fixture
def world(driver: Driver, tools: Tools) -> World:
    return World(driver, tools)


def same(event: Any) -> Any:
    return event


def last(world: World) -> Done:
    done: Done = world.driver.done("op")[-1]
    return done


# ── barriers ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_barrier_is_passed_on_behind_what_was_emitted_to_every_replica_of_every_reader(
    world: World, tools: Tools
) -> None:
    topology = Topology("app", pool=2)
    op = topology.operator("op", same, inputs=topology.source("events"))
    topology.operator("one", len, inputs=op)
    topology.operator("other", len, inputs=op)
    left = world.run(topology, [tools.bundle(["a", "b"]), tools.barrier(7), tools.bundle(["c"], first=2)])
    assert left.barriers == [7] * 4
    order = [one for rows in world.rows for one in (*tools.left(rows).ids, *tools.left(rows).barriers)]
    assert order == ["0.0", "1.0", "0.1", "1.1", 7, 7, 7, 7, "2.0", "2.1"]
    assert {(header.level, header.partition) for _, header, _ in left.signs} == {(2, n) for n in range(4)}


def test_a_barrier_goes_to_the_members_of_its_checkpoint_only(world: World, tools: Tools) -> None:
    topology = Topology("app", pool=3)
    op = topology.operator("op", same, inputs=topology.source("events"))
    topology.operator("end", len, inputs=op)
    members = world.driver.program(topology).layout.packed({("events", 0), ("op", 0), ("end", 0), ("end", 2)})
    left = world.run(topology, [tools.bundle(["a"]), tools.barrier(7, members=members)])
    assert [(header.partition, sign) for _, header, sign in left.signs] == [(n, Barrier(7, members)) for n in (0, 2)]


def test_the_driver_hears_which_routing_is_followed_behind_the_barrier(world: World, tools: Tools) -> None:
    world.run(app(same), tools.barrier(7), world.done(7, routing=1))


def test_the_driver_hears_what_was_counted_up_to_the_barrier(world: World, tools: Tools) -> None:
    first = [tools.bundle([1, 2, 3]), tools.barrier(7), tools.bundle([4, 5], first=3)]
    world.run(app(same), first, world.done(7), world.processed(5))
    done = last(world)
    assert (done.number, done.operator, done.replica, done.generation, done.shown) == (7, "op", 0, 0, 0)
    assert done.counters is not None
    assert (done.counters.processed, done.counters.emitted, done.counters.sent) == (3, {"out": 3}, {"end": 3})
    assert (done.segments, done.part) == ([], None)


def test_a_barrier_waits_for_all_senders(world: World, tools: Tools) -> None:
    ahead = [tools.barrier(7, replica=1), tools.bundle(["b"], replica=1, first=9)]
    left = world.run(
        app(same), ahead, tools.bundle(["a"]), world.left("a"), tools.barrier(7), world.left("a", "b"), slots=2
    )
    assert (left.barriers, left.events) == ([7] * 4, ["a", "b"])


def test_what_was_emitted_leaves_though_another_sender_has_yet_to_send_its_barrier(world: World, tools: Tools) -> None:
    """Behind an event there were others, which had to wait; it left only when the last barrier had come."""
    at_once = [tools.bundle(["a"]), tools.barrier(7), *(tools.bundle(["b"], first=n) for n in (1, 2, 3))]
    left = world.run(app(same), at_once, world.left("a"), tools.barrier(7, replica=1), slots=2)
    assert left.events == ["a", "b", "b", "b"]


def test_what_was_held_goes_on_when_the_checkpoint_is_given_up(world: World, tools: Tools) -> None:
    steps = [tools.barrier(7), tools.bundle(["a"]), world.progress(given_up=7), world.left("a")]
    left = world.run(app(same), *steps, tools.barrier(7, replica=1), slots=2)
    assert left.barriers == []
    assert world.driver.done("op") == []


def test_what_was_given_up_before_the_replica_began_holds_nothing_back(world: World, tools: Tools) -> None:
    left = world.run(
        app(same),
        tools.barrier(7),
        tools.bundle(["a"]),
        world.left("a"),
        slots=2,
        progress=progress(1, given_up=7),
    )
    assert left.barriers == []


def test_the_input_may_end_while_something_is_held(world: World, tools: Tools) -> None:
    """Spark ends it when the query is stopped: nothing counts any more, and nothing hangs."""
    left = world.run(app(same), tools.barrier(7), tools.bundle(["a"]), slots=2)
    assert (left.barriers, left.events) == ([], [])


# ── process_many ────────────────────────────────────────────────────────────────────────────────────────────────────

gate = threading.Event()


class Patient(InBulk):
    def process_many(self, events: list[int]) -> list[Any]:
        gate.wait(LONG_S)
        return super().process_many(events)


def test_process_many_does_not_run_over_a_barrier(world: World, tools: Tools) -> None:
    gate.clear()

    def at_once() -> None:
        world.replica._processing.at_once = 64

    first = [tools.bundle([2], first=0)]
    rest = [tools.bundle([3, 4], first=1), tools.bundle([5], first=3), tools.barrier(7), tools.bundle([6], first=4)]
    left = world.run(app(Patient()), at_once, first, rest, gate.set, world.done(7))
    assert [one for call in InBulk.calls for one in call] == ["0", "1", "2", "3", "4"]
    assert all(not {"3", "4"} <= set(call) for call in InBulk.calls)
    done = last(world)
    assert done.counters is not None
    assert (done.counters.processed, left.barriers) == (4, [7] * 4)


def test_process_many_takes_together_what_was_held(world: World, tools: Tools) -> None:
    def at_once() -> None:
        world.tools.until(lambda: world.replica._inbox._taken == 4)
        world.replica._processing.at_once = 64

    held = [tools.barrier(7), *(tools.bundle([2], first=n) for n in range(4))]
    world.run(app(InBulk()), held, at_once, tools.barrier(7, replica=1), slots=2)
    assert InBulk.calls == [("0", "1", "2", "3")]


# ── sinks ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Ledger:
    """A sink that keeps the calls it got, with the checkpoint that it was told."""

    calls: ClassVar[list[Any]] = []

    def open(self, context: Context) -> None:
        self.context = context

    def process_many(self, events: list[Any]) -> None:
        Ledger.calls.append((self.context.checkpoint, self.context.attempt, *events))

    def process(self, event: Any) -> None:
        raise AssertionError("process_many goes before process")

    def prepare(self, checkpoint: int) -> Any:
        Ledger.calls.append(f"prepare {checkpoint}")
        if checkpoint == 13:
            raise OSError("no space left on device")
        return {"file": f"{checkpoint}.part"}

    def commit(self, checkpoint: int) -> None:
        Ledger.calls.append(f"commit {checkpoint}")


@pytest.fixture(autouse=True)
def empty_ledger() -> None:
    Ledger.calls = []


def test_a_sink_prepares_between_what_belongs_to_a_checkpoint_and_what_does_not(world: World, tools: Tools) -> None:
    steps = [tools.bundle(["a"]), tools.barrier(7), tools.bundle(["b"])]
    world.run(sink(Ledger()), steps, world.done(7), world.processed(2), checkpoint=7, generation=3)
    assert Ledger.calls == [(7, 3, "a"), "prepare 7", (8, 3, "b")]
    assert last(world).part == {"file": "7.part"}


def test_one_that_was_idle_asks_before_its_first_events_to_which_checkpoint_they_belong(
    world: World, tools: Tools
) -> None:
    """Checkpoints had been made without it, and its rows, labelled as of the first, would have stayed after a crash."""
    world.driver.restores["op"] = Restore(9, [])
    world.run(sink(Ledger()), tools.bundle(["a"]), world.processed(1), tools.bundle(["b"]), number=1, checkpoint=7)
    assert Ledger.calls == [(10, 0, "a"), (10, 0, "b")]
    assert world.driver.questions == [RestoreQuery(0, "op")]


def test_one_that_has_heard_that_it_is_idle_asks_again(world: World, tools: Tools) -> None:
    """It was left out of the next checkpoints."""

    def left_out() -> None:
        world.driver.restores["op"] = Restore(15, [])

    world.driver.restores["op"] = Restore(9, [])
    steps = (tools.bundle(["a"]), tools.barrier(12), world.processed(1), left_out, tools.bundle(["b"]))
    world.run(sink(Ledger()), *steps, world.processed(2), number=1, checkpoint=7)
    assert Ledger.calls == [(10, 0, "a"), "prepare 12", (16, 0, "b")]


def test_one_that_is_active_from_the_beginning_need_not_ask(world: World, tools: Tools) -> None:
    world.run(sink(Ledger()), [tools.bundle(["a"]), tools.barrier(7), tools.bundle(["b"])], checkpoint=7)
    assert not world.driver.questions


def test_what_is_committed_is_shown_once_and_the_driver_told(world: World, tools: Tools) -> None:
    world.run(
        sink(Ledger()),
        *(tools.bundle(["a"]), tools.barrier(7), world.done(7, shown=6)),
        *(world.progress(committed=7), world.done(7, shown=7), world.progress(committed=7)),
        *(tools.bundle(["b"]), tools.barrier(8), world.done(8, shown=7)),
        *(world.progress(committed=7), world.progress(committed=8), world.done(8, shown=8)),
        checkpoint=7,
        progress=progress(1, committed=6),
    )
    assert [one for one in Ledger.calls if isinstance(one, str)] == ["prepare 7", "commit 7", "prepare 8", "commit 8"]


def test_one_that_was_given_up_is_committed_with_the_next(world: World, tools: Tools) -> None:
    world.run(
        sink(Ledger()),
        *(tools.barrier(7), world.done(7), world.progress(given_up=7)),
        *(tools.barrier(8), world.done(8), world.progress(given_up=7, committed=8), world.done(8, shown=8)),
        checkpoint=7,
    )
    assert Ledger.calls == ["prepare 7", "prepare 8", "commit 8"]


def test_what_an_earlier_attempt_committed_is_not_committed_again(world: World, tools: Tools) -> None:
    """`recover` has seen to it; the sink of this attempt never prepared it."""
    world.run(
        sink(Ledger()),
        *(tools.barrier(8), world.done(8), world.progress(committed=7)),
        *(world.progress(committed=8), world.done(8, shown=8)),
        checkpoint=8,
        generation=1,
        progress=progress(1, committed=7),
    )
    assert Ledger.calls == ["prepare 8", "commit 8"]


def test_a_sink_that_cannot_prepare_ends_the_replica(world: World, tools: Tools) -> None:
    with pytest.raises(OSError, match="no space left"):
        world.run(sink(Ledger()), tools.bundle(["a"]), tools.barrier(13))
    assert world.driver.done("op") == []


def test_a_micro_batch_is_a_checkpoint_of_its_own(world: World, tools: Tools) -> None:
    """The operator stays open from batch to batch: it was told the first one's number for ever."""
    for batch in (4, 5):
        micro = MicroBatch(batch, "events")
        world.run(sink(Ledger()), tools.bundle(["a"]), microbatch=micro, checkpoint=batch + 1, active={"op": (0,)})
    assert Ledger.calls == [(5, 0, "a"), "prepare 5", (6, 0, "a"), "prepare 6"]
