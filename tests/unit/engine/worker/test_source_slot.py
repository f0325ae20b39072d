"""A source's slot: which events it sends, when, and what it tells the driver of its batch."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.protocol.messages import BatchEnd, Halted, StartQuery
from penstock.engine.protocol.progress import Phase
from penstock.engine.worker.source_slot import CHUNK, BatchEnding, SourceSlot
from penstock.topology import Topology

from ..made import LONG_AGO, progress

Driver = Any
Tools = SimpleNamespace


@dataclass
class Numbers:
    """Event n is n, due n / rate seconds after the start."""

    total: int | None
    rate: float = 1e6

    def due(self, elapsed_s: float) -> int:
        return min(self.total or 0, int(elapsed_s * self.rate) + 1) if elapsed_s >= 0 else 0

    def due_times(self, numbers: range) -> list[float]:
        return [number / self.rate for number in numbers]

    def read(self, numbers: range) -> list[int]:
        return list(numbers)


@dataclass
class AtOnce(Numbers):
    """All events are due at once, and born when they are sent."""

    def due_times(self, numbers: range) -> list[float]:
        return [float("nan")] * len(numbers)


def app(*sources: str) -> Topology:
    topology = Topology("app")
    topology.operator("end", len, inputs=[topology.source(name) for name in sources or ("events",)])
    return topology


class SparkBatch:
    """The input of a real-time batch: it has no rows, and ends when Spark says so."""

    def __init__(self, *, broken: bool = False) -> None:
        self._over = threading.Event()
        self._broken = broken

    def __iter__(self) -> Iterator[Any]:
        assert self._over.wait(30)
        if self._broken:
            raise EOFError("Spark is gone")
        yield from ()

    def end(self) -> None:
        self._over.set()

    @contextmanager
    def ending_in(self, seconds: float) -> Iterator[None]:
        timer = threading.Timer(seconds, self.end)
        timer.start()
        yield
        timer.join()


def sent_by(tools: Tools, slot: SourceSlot, batch: SparkBatch, count: int) -> list[int]:
    """What the slot sends until it has sent that many, or its batch ends."""
    events: list[int] = []
    for rows in slot.run(batch):
        events += tools.left(rows).events
        if len(events) >= count:
            batch.end()
    return events


# ── real-time ───────────────────────────────────────────────────────────────────────────────────────────────────────


def realtime(driver: Driver, source: Any, *, slots: int = 1, **now: Any) -> Any:
    return driver.program(app(), sources={"events": source}, slots=slots, progress=progress(1, **now))


def test_a_batch_starts_where_the_driver_says_and_tells_where_it_ended(driver: Driver, tools: Tools) -> None:
    driver.starts["events", 0] = 20
    slot = SourceSlot(realtime(driver, Numbers(25)), "events", 0, 3)
    assert sent_by(tools, slot, SparkBatch(), 5) == [20, 21, 22, 23, 24]
    assert driver.questions == [StartQuery(0, "events", 0, 3), BatchEnd(0, "events", 0, 3, 25)]


def test_ids_and_times_go_by_number(driver: Driver, tools: Tools) -> None:
    driver.starts["events", 1] = 2
    program = realtime(driver, Numbers(15, rate=10.0), slots=3)
    batch, rows = SparkBatch(), []
    for one in SourceSlot(program, "events", 1, 7).run(batch):
        rows.append(one)
        batch.end()
    left = tools.left(*rows)
    assert left.ids == ["7", "10", "13"]
    assert left.events == [7, 10, 13]
    assert [born for row in left.bundles for born in row.born] == [LONG_AGO + n / 10 for n in (7, 10, 13)]
    found = tools.until(lambda: (one := driver.latest("events", 1)) and one.processed and one)
    assert (found.processed, found.emitted, found.sent) == (3, {"out": 3}, {"end": 3})


def test_what_is_due_at_once_leaves_in_chunks(driver: Driver, tools: Tools) -> None:
    batch, parts = SparkBatch(), []
    for rows in SourceSlot(realtime(driver, Numbers(CHUNK + 5)), "events", 0, 1).run(batch):
        parts.append(len(tools.left(rows).ids))
        if sum(parts) == CHUNK + 5:
            batch.end()
    assert parts == [CHUNK, 5]


def test_events_without_a_due_time_are_born_when_they_are_sent(driver: Driver, tools: Tools) -> None:
    before, batch, born = time.time(), SparkBatch(), []
    for rows in SourceSlot(realtime(driver, AtOnce(2)), "events", 0, 1).run(batch):
        born += [one for row in tools.left(rows).bundles for one in row.born]
        batch.end()
    assert len(born) == 2
    assert all(before <= one <= time.time() for one in born)


def test_ids_of_two_sources_are_told_apart(driver: Driver, tools: Tools) -> None:
    sources = {name: Numbers(2) for name in ("one", "other")}
    program = driver.program(app(*sources), sources=sources, slots=2, progress=progress(1))
    ids = []
    for name, slot in (("one", 0), ("one", 1), ("other", 0), ("other", 1)):
        batch = SparkBatch()
        for rows in SourceSlot(program, name, slot, 1).run(batch):
            ids += tools.left(rows).ids
            batch.end()
    assert ids == ["one:0", "one:1", "other:0", "other:1"]


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_slots_share_all_numbers_and_none_twice(driver: Driver, tools: Tools, slots: int) -> None:
    program = realtime(driver, Numbers(11), slots=slots)
    sent = []
    for slot in range(slots):
        mine = range(slot, 11, slots)
        sent.append(sent_by(tools, SourceSlot(program, "events", slot, 1), SparkBatch(), len(mine)))
        assert sent[slot] == list(mine)
    assert sorted(number for part in sent for number in part) == list(range(11))
    assert sum(end.position for end in driver.ends) == 11


@settings(max_examples=200)
@given(due=st.integers(0, 50), slots=st.integers(1, 6))
def test_whatever_is_due_is_shared_without_gap(due: int, slots: int) -> None:
    """The same sum as in a slot of its own, without a driver."""
    shared = []
    for number in range(slots):
        slot = SourceSlot.__new__(SourceSlot)
        slot._slot, slot._slots, slot._source = number, slots, SimpleNamespace(due=lambda _: due)  # type: ignore[assignment]
        slot._program, slot._until, slot._position = SimpleNamespace(shift=0), None, 0  # type: ignore[assignment]
        count = slot._due(progress(1, epoch_s=0.0))
        shared += [slot._number(position) for position in range(count)]
    assert sorted(shared) == list(range(due))


def test_the_next_batch_goes_on_where_the_last_one_ended(driver: Driver, tools: Tools) -> None:
    program = realtime(driver, Numbers(1_000_000))
    first = sent_by(tools, SourceSlot(program, "events", 0, 1), SparkBatch(), 1)
    driver.starts["events", 0] = driver.ends[-1].position
    second = sent_by(tools, SourceSlot(program, "events", 0, 2), SparkBatch(), 1)
    assert first + second == list(range(len(first) + len(second)))
    assert len(second) > 0


@pytest.mark.parametrize(
    "now",
    [{"epoch_s": None}, {"epoch_s": time.time() + 3600}, {"phase": Phase.HALTED}],
    ids=["no-epoch", "before-the-epoch", "halted"],
)
def test_nothing_is_sent_before_the_epoch_or_after_the_sources_are_stopped(
    driver: Driver, tools: Tools, now: dict[str, Any]
) -> None:
    driver.starts["events", 0] = 4
    slot = SourceSlot(realtime(driver, Numbers(10), **now), "events", 0, 1)
    tools.until(lambda: slot._agent.progress.version == 1)
    batch = SparkBatch()
    with batch.ending_in(0.1):
        assert sent_by(tools, slot, batch, 1) == []
    assert [end.position for end in driver.ends] == [4]


# ── shifts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_slot_of_the_next_shift_asks_for_nothing_before_its_turn(driver: Driver, tools: Tools) -> None:
    slot = SourceSlot(replace(realtime(driver, Numbers(10)), shift=1), "events", 0, 10**9)
    tools.until(lambda: slot._agent.progress.version == 1)
    batch = SparkBatch()
    with batch.ending_in(0.1):
        assert sent_by(tools, slot, batch, 1) == []
    assert driver.questions == []


def test_a_slot_that_is_to_stop_says_where_it_is_once(driver: Driver, tools: Tools) -> None:
    driver.starts["events", 0] = 4
    slot = SourceSlot(realtime(driver, Numbers(10), phase=Phase.HALTED), "events", 0, 1)
    tools.until(lambda: slot._agent.progress.version == 1)
    batch = SparkBatch()
    with batch.ending_in(0.3):
        assert sent_by(tools, slot, batch, 1) == []
    assert driver.halts == [Halted(0, "events", 0, 1, 4, 1)]


def test_a_slot_says_so_again_when_it_is_stopped_again(driver: Driver, tools: Tools) -> None:
    program = realtime(driver, Numbers(5), phase=Phase.HALTED)
    slot = SourceSlot(program, "events", 0, 1)
    batch, sent = SparkBatch(), []
    working = threading.Thread(target=lambda: sent.extend(sent_by(tools, slot, batch, 99)))
    working.start()
    tools.until(lambda: len(driver.halts) == 1)
    driver.server.publish(progress(2))
    tools.until(lambda: slot._position == 5)
    driver.server.publish(progress(3, Phase.HALTED))
    tools.until(lambda: len(driver.halts) == 2)
    batch.end()
    working.join()
    assert sent == [0, 1, 2, 3, 4]
    assert [(halt.position, halt.since) for halt in driver.halts] == [(0, 1), (5, 3)]


def test_a_slot_that_did_not_see_the_time_between_two_stops_says_so_again(driver: Driver, tools: Tools) -> None:
    """A take-over had failed, and the run was stopped before the slot had looked; it never said where it stood."""
    program = realtime(driver, Numbers(5), phase=Phase.HALTED)
    slot = SourceSlot(program, "events", 0, 1)
    batch = SparkBatch()
    working = threading.Thread(target=lambda: sent_by(tools, slot, batch, 99))
    working.start()
    tools.until(lambda: len(driver.halts) == 1)
    driver.server.publish(progress(3, Phase.HALTED))
    tools.until(lambda: len(driver.halts) == 2)
    batch.end()
    working.join()
    assert [halt.since for halt in driver.halts] == [1, 3]


def test_after_another_shift_took_over_only_what_was_sent_before_is_sent_again(driver: Driver, tools: Tools) -> None:
    """A shift that dies while it finishes does its batch again, and leaves the rest to the next."""
    driver.starts["events", 0], driver.until = 2, 5
    slot = SourceSlot(realtime(driver, Numbers(10), phase=Phase.FINISHING), "events", 0, 1)
    tools.until(lambda: slot._agent.progress.version == 1)
    batch = SparkBatch()
    with batch.ending_in(0.3):
        assert sent_by(tools, slot, batch, 99) == [2, 3, 4]


def test_a_slot_that_starts_again_while_sources_are_stopped_goes_to_where_it_had_halted(
    driver: Driver, tools: Tools
) -> None:
    driver.starts["events", 0], driver.until = 2, 5
    slot = SourceSlot(realtime(driver, Numbers(10), phase=Phase.HALTED), "events", 0, 1)
    tools.until(lambda: slot._agent.progress.version == 1)
    batch = SparkBatch()
    with batch.ending_in(0.3):
        assert sent_by(tools, slot, batch, 99) == [2, 3, 4]
    assert [end.position for end in driver.ends] == [5]


def test_a_slot_that_halts_too_early_is_told_how_far_to_go(driver: Driver, tools: Tools) -> None:
    """It had sent more before its query died."""
    driver.starts["events", 0], driver.halt_at = 2, 6
    slot = SourceSlot(realtime(driver, Numbers(10), phase=Phase.HALTED), "events", 0, 1)
    tools.until(lambda: slot._agent.progress.version == 1)
    batch = SparkBatch()
    with batch.ending_in(0.3):
        assert sent_by(tools, slot, batch, 99) == [2, 3, 4, 5]


def test_a_slot_that_sees_only_that_its_shift_was_taken_over_asks_how_far_to_go(driver: Driver, tools: Tools) -> None:
    """Its query had died and it had begun again before the take-over: nobody told it, and its shift never finished."""
    driver.starts["events", 0], driver.halt_at = 2, 6
    slot = SourceSlot(realtime(driver, Numbers(10), phase=Phase.FINISHING), "events", 0, 1)
    tools.until(lambda: slot._agent.progress.version == 1)
    batch = SparkBatch()
    with batch.ending_in(0.3):
        assert sent_by(tools, slot, batch, 99) == [2, 3, 4, 5]


def test_a_slot_that_may_send_goes_on_from_where_it_had_to_halt(driver: Driver, tools: Tools) -> None:
    """A take-over that failed: sources go on as before."""
    driver.until = 2
    program = realtime(driver, Numbers(5), phase=Phase.HALTED)
    slot = SourceSlot(program, "events", 0, 1)
    batch, sent = SparkBatch(), []
    working = threading.Thread(target=lambda: sent.extend(sent_by(tools, slot, batch, 5)))
    working.start()
    tools.until(lambda: slot._position == 2)
    driver.server.publish(progress(2))
    working.join(30)
    batch.end()
    assert sent == [0, 1, 2, 3, 4]


def test_what_is_sent_again_waits_for_the_epoch(driver: Driver, tools: Tools) -> None:
    """A process that has only just been started may not have heard of it; events would be born in 1970."""
    driver.until = 5
    program = realtime(driver, Numbers(10), epoch_s=None)
    slot = SourceSlot(program, "events", 0, 1)
    batch = SparkBatch()
    with batch.ending_in(0.1):
        assert sent_by(tools, slot, batch, 99) == []


# ── time ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_batch_that_is_over_before_the_first_look_says_where_it_ended(driver: Driver) -> None:
    """On a busy machine the first batch may be: the next one must be able to find out where it starts."""
    driver.starts["events", 0] = 7
    program = driver.program(app(), sources={"events": Numbers(100)})
    slot = SourceSlot(program, "events", 0, 4)
    end = BatchEnding([], slot._woken)
    assert end.reached.wait(30)
    assert list(slot._run(end)) == []
    assert driver.ends == [BatchEnd(0, "events", 0, 4, 7)]


def test_events_are_sent_when_they_are_due(driver: Driver, tools: Tools) -> None:
    epoch_s = time.time()
    slot = SourceSlot(realtime(driver, Numbers(4, rate=40.0), epoch_s=epoch_s), "events", 0, 1)
    late_s, batch = [], SparkBatch()
    for rows in slot.run(batch):
        now_s = time.time()
        for row in tools.left(rows).bundles:
            late_s += [now_s - born for born in row.born]
        if len(late_s) == 4:
            batch.end()
    assert min(late_s) >= 0
    assert time.time() - epoch_s >= 3 / 40


def test_after_the_last_event_a_slot_waits_for_the_end_of_its_batch(driver: Driver, tools: Tools) -> None:
    slot = SourceSlot(realtime(driver, Numbers(3)), "events", 0, 1)
    batch = SparkBatch()
    with batch.ending_in(0.1):
        assert sent_by(tools, slot, batch, 99) == [0, 1, 2]
    assert [end.position for end in driver.ends] == [3]


def test_a_broken_batch_does_not_report_its_end(driver: Driver, tools: Tools) -> None:
    """It will be done again, from where it began."""
    slot = SourceSlot(realtime(driver, Numbers(3)), "events", 0, 1)
    with pytest.raises(EOFError, match="Spark is gone"):
        sent_by(tools, slot, SparkBatch(broken=True), 3)
    assert driver.ends == []


def test_a_batch_that_spark_drops_does_not_report_its_end(driver: Driver, tools: Tools) -> None:
    batch = SparkBatch()
    running = SourceSlot(realtime(driver, Numbers(3)), "events", 0, 1).run(batch)
    assert tools.left(next(running)).events == [0, 1, 2]
    running.close()
    batch.end()
    assert driver.ends == []
