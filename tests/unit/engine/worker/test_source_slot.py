"""A source's slot: from where it reads, what it sends and when, its barriers, and what it tells driver and source."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.engine.protocol.bundle import Barrier
from penstock.engine.protocol.messages import Start, StartQuery
from penstock.engine.protocol.progress import Phase
from penstock.engine.worker import source_slot as module
from penstock.engine.worker.source_slot import CHUNK, SourceSlot
from penstock.sources import Slot
from tests.waiting import LONG_S

from ..made import LONG_AGO, SparkBatch, progress
from .source_world import Driver, Numbers, Tools, app, standing_still

# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_slot_opens_its_part_once_where_the_driver_says(driver: Driver, start: Any) -> None:
    driver.starts["events", 1] = Start({"at": 20}, sent=7)
    at_work = start(there=22, slot=1, slots=3)
    assert at_work.await_sent(2) == [20, 21]
    Numbers.there = 25
    assert at_work.await_sent(5) == [20, 21, 22, 23, 24]
    (reader,) = Numbers.opened
    assert reader.slot == Slot(driver.run, "events", 1, 3, LONG_AGO)
    assert reader.begun == {"at": 20}
    assert driver.questions == [StartQuery(0, "events", 1)]
    assert len(reader.threads) == 1


def test_a_source_that_never_was_read_begins_at_its_own_beginning(start: Any) -> None:
    start(there=1).await_sent(1)
    assert Numbers.opened[0].begun is None


def test_ids_and_times_are_the_sources_own(driver: Driver, tools: Tools, start: Any) -> None:
    at_work = start(there=3)
    at_work.await_sent(3)
    left = tools.left(*at_work.rows)
    assert left.ids == ["n0", "n1", "n2"]
    assert [born for row in left.bundles for born in row.born] == [LONG_AGO, LONG_AGO + 1, LONG_AGO + 2]


def test_ids_of_two_sources_are_told_apart(driver: Driver, tools: Tools) -> None:
    Numbers.there = 1
    sources = {name: Numbers() for name in ("one", "other")}
    program = driver.program(app(*sources), sources=sources, slots=2, progress=progress(1))
    ids = []
    for name, slot in (("one", 0), ("one", 1), ("other", 0)):
        batch = SparkBatch()
        for rows in SourceSlot(program, name, slot, 0).run(batch):
            ids += tools.left(rows).ids
            batch.end()
    assert ids == ["one:n0", "one:n0", "other:n0"]


def test_no_more_than_a_chunk_leaves_at_once(tools: Tools, start: Any) -> None:
    at_work = start(there=CHUNK + 5)
    at_work.await_sent(CHUNK + 5)
    first, *others = [len(tools.left(rows).ids) for rows in at_work.rows]
    assert 0 < first < CHUNK  # how large events are is not known yet
    assert sum(others) == CHUNK + 5 - first
    assert max(others) <= CHUNK


@pytest.mark.parametrize("now", [{"epoch_s": None}, {"phase": Phase.STARTING}], ids=["no-epoch", "starting"])
def test_nothing_is_opened_before_the_sources_begin(driver: Driver, start: Any, now: dict[str, Any]) -> None:
    """Where it begins is not known before: the shift before may still read."""
    at_work = start(there=3, **now)
    with standing_still(at_work):
        pass
    assert (driver.questions, Numbers.opened) == ([], [])
    at_work.tell(2)
    assert at_work.await_sent(3) == [0, 1, 2]


def test_a_slot_of_the_next_shift_asks_for_nothing_before_its_turn(driver: Driver, start: Any) -> None:
    at_work = start(there=3, shift=1)
    with standing_still(at_work):
        pass
    assert driver.questions == []


# ── barriers ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_barrier_goes_behind_what_was_polled_to_all_replicas_and_the_driver_hears_where(
    driver: Driver, start: Any
) -> None:
    driver.starts["events", 0] = Start({"at": 20}, sent=7)
    at_work = start(there=23)
    at_work.await_sent(3)
    at_work.tell(2, barrier=5)
    done = at_work.done(5)
    assert (done.cursor, done.sent, done.generation) == ({"at": 23}, 10, 0)
    assert done.counters is not None
    assert (done.counters.processed, done.counters.sent) == (3, {"end": 3})
    Numbers.there = 25
    at_work.await_sent(5)
    assert at_work.order() == ["n20", "n21", "n22", "b5", "b5", "n23", "n24"]


def test_whatever_flows_the_cursor_is_that_of_the_barrier(tools: Tools, start: Any) -> None:
    at_work = start(there=10**5)
    for number in range(1, 6):
        at_work.tell(number + 1, barrier=number)
        at_work.done(number)
    at_work.tell(9, Phase.HALTED, barrier=5)
    order = at_work.order()
    for number in range(1, 6):
        before = order[: order.index(f"b{number}")]
        assert at_work.done(number).cursor == {"at": len([one for one in before if one.startswith("n")])}
        assert order.count(f"b{number}") == 2


def test_a_source_without_events_sends_barriers_all_the_same(start: Any) -> None:
    at_work = start(total=0)
    at_work.tell(2, barrier=1)
    assert at_work.done(1).cursor == {"at": 0}
    at_work.tell(3, barrier=2)
    assert at_work.done(2).sent == 0


def test_a_slot_that_missed_a_barrier_sends_the_next(start: Any) -> None:
    """It was given up meanwhile."""
    at_work = start(there=1)
    at_work.await_sent(1)
    at_work.tell(2, barrier=1)
    at_work.done(1)
    at_work.tell(3, barrier=3, given_up=2)
    at_work.done(3)
    assert at_work.order() == ["n0", "b1", "b1", "b3", "b3"]


@pytest.mark.parametrize("before", [{"committed": 5}, {"committed": 4, "given_up": 5}], ids=["committed", "given-up"])
def test_a_barrier_of_the_attempt_before_is_not_sent_again(start: Any, before: dict[str, int]) -> None:
    """The driver says the last one's number until the next: a sink had prepared a checkpoint that was over."""
    at_work = start(there=2, checkpoint=6, barrier=5, **before)
    at_work.await_sent(2)
    with standing_still(at_work):
        pass
    at_work.tell(2, barrier=6, **before)
    at_work.done(6)
    assert at_work.order() == ["n0", "n1", "b6", "b6"]


def test_the_source_hears_what_is_committed_once(start: Any) -> None:
    at_work = start(there=2)
    at_work.await_sent(2)
    at_work.tell(2, barrier=1)
    at_work.done(1)
    assert Numbers.opened[0].told == []
    Numbers.there = 3
    at_work.await_sent(3)
    for version in (3, 4):
        at_work.tell(version, barrier=1, committed=1)
    at_work._tools.until(lambda: at_work.done(1).shown == 1)
    at_work.tell(5, barrier=2, committed=1)
    at_work.done(2)
    assert Numbers.opened[0].told == [{"at": 2}]


def test_what_an_earlier_attempt_committed_is_none_of_its_business(start: Any) -> None:
    """It has not got the cursor of that checkpoint."""
    at_work = start(there=2, committed=4)
    at_work.await_sent(2)
    at_work.tell(2, barrier=5, committed=4)
    at_work.done(5)
    at_work.tell(3, barrier=5, committed=4)
    at_work.tell(4, barrier=5, committed=5)
    at_work._tools.until(lambda: Numbers.opened[0].told)
    assert Numbers.opened[0].told == [{"at": 2}]


# ── reports, and the end ────────────────────────────────────────────────────────────────────────────────────────────


def test_what_waits_outside_is_reported(
    driver: Driver, tools: Tools, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.0)
    at_work = start(there=3, phase=Phase.HALTED)
    tools.until(lambda: at_work.slot._counters.lag == 3)
    at_work.slot._agent.wake()
    tools.until(lambda: (one := driver.latest("events")) and one.lag == 3)


def test_that_no_event_will_come_any_more_is_reported(driver: Driver, tools: Tools, start: Any) -> None:
    def ended() -> list[bool]:
        return [report.ended for heard in driver.heard for report in heard.reports if report.operator == "events"]

    at_work = start(total=3, there=2)
    at_work.await_sent(2)
    tools.until(ended)
    assert not any(ended())
    Numbers.there = 3
    at_work.await_sent(3)
    tools.until(lambda: at_work.slot._role.report.ended)
    at_work.slot._agent.wake()
    tools.until(lambda: ended()[-1])


def test_the_reader_is_closed_at_the_end(start: Any) -> None:
    at_work = start(there=1)
    at_work.await_sent(1)
    assert Numbers.opened[0].closed == 0
    at_work.batch.end()
    at_work.thread.join(LONG_S)
    assert Numbers.opened[0].closed == 1


def realtime(driver: Driver, total: int) -> Any:
    Numbers.there = total
    return driver.program(app(), sources={"events": Numbers(total)}, progress=progress(1))


def test_a_batch_that_breaks_says_so_and_closes_the_reader(driver: Driver) -> None:
    batch = SparkBatch(broken=True)
    running = SourceSlot(realtime(driver, 3), "events", 0, 0).run(batch)
    next(running)
    batch.end()
    with pytest.raises(EOFError, match="Spark is gone"):
        list(running)
    assert Numbers.opened[0].closed == 1


def test_a_batch_that_spark_drops_closes_the_reader(driver: Driver, tools: Tools) -> None:
    batch = SparkBatch()
    running = SourceSlot(realtime(driver, 3), "events", 0, 0).run(batch)
    assert tools.left(next(running)).events == [0, 1, 2]
    running.close()
    batch.end()
    assert Numbers.opened[0].closed == 1


def test_a_batch_that_is_over_before_the_first_look_sends_nothing(driver: Driver) -> None:
    batch = SparkBatch()
    batch.end()
    slot = SourceSlot(realtime(driver, 3), "events", 0, 0)
    end = module.BatchEnding(batch, slot._woken)
    assert end.reached.wait(LONG_S)
    assert list(slot._run(end)) == []


def test_a_barrier_is_what_it_says(tools: Tools, start: Any) -> None:
    at_work = start(there=0)
    at_work.tell(2, barrier=4)
    at_work.done(4)
    left = tools.left(*at_work.rows)
    assert [(partition, sign) for partition, _, sign in left.signs] == [(0, Barrier(4)), (1, Barrier(4))]
    assert [(header.sender, header.replica, header.level, header.partition) for _, header, _ in left.signs] == [
        (0, 0, 1, 0),
        (0, 0, 1, 1),
    ]
