"""Queries of a session as one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.attached.model.demand import Promise
from penstock.attached.model.monitor import Allotment, QueriesMonitor
from penstock.attached.model.progress import Batch
from penstock.attached.model.query import QueryState
from penstock.metrics.interval import IntervalRules
from penstock.policy.static import Static


class Told:
    """A query whose batches a test hands over."""

    def __init__(self) -> None:
        self.new: list[Batch] = []
        self.gone: str | None = None

    def batches(self) -> Sequence[Batch]:
        found, self.new = self.new, []
        return found

    def running(self) -> float | None:
        return None

    def absence(self) -> str | None:
        return self.gone


class Slots:
    def __init__(self, count: int) -> None:
        self.count = count

    def slots(self) -> int:
        return self.count


def batch(number: int, rows: int = 500) -> Batch:
    start_s = 5.0 * number
    return Batch(number=number, start_s=start_s, planned_s=start_s, seconds=2.0, rows=rows, core_s=0.01 * rows)


def monitor(slots: Slots, *, acting: bool = True) -> tuple[QueriesMonitor, Allotment, Told, Told]:
    allotment = Allotment(Static(2))
    found = QueriesMonitor(IntervalRules(5.0), slots, 16, allotment if acting else None)
    first, second = Told(), Told()
    found.add(QueryState("clicks", 5.0, Promise(12.0)), first)
    found.add(QueryState("counts", 5.0, Promise(12.0)), second)
    return found, allotment, first, second


def test_a_snapshot_has_every_query_with_its_source() -> None:
    found, _, first, second = monitor(Slots(8))
    first.new, second.new = [batch(1), batch(2)], [batch(1, 100), batch(2, 100)]
    snapshot = found.collect(12.0)
    assert snapshot is not None
    assert snapshot.source_input == {"clicks (source)": 500, "counts (source)": 100}
    assert snapshot.incomplete == {}
    assert {name: one.replicas for name, one in snapshot.operators.items()} == {"clicks": 4, "counts": 4}
    assert (snapshot.latency.count, snapshot.latency.late) == (600, 0)
    assert snapshot.source_output == 1200.0
    later = found.collect(17.0)
    assert later is not None
    assert (later.latency.count, later.source_output, later.interval_s) == (0, 0.0, 5.0)


def test_rows_that_took_too_long_are_counted() -> None:
    found, _, first, second = monitor(Slots(8))
    first.new, second.new = [batch(1), replace(batch(2), seconds=14.0)], [batch(1, 100), batch(2, 100)]
    snapshot = found.collect(24.5)
    assert snapshot is not None
    assert snapshot.latency.late == 500  # from 14 to 19 s, where 12 are promised
    later = found.collect(29.5)
    assert later is not None
    assert later.latency.late == 0


def test_a_query_that_is_away_or_silent_is_incomplete_with_its_source() -> None:
    found, _, first, second = monitor(Slots(8))
    first.new, second.new, second.gone = [batch(0), batch(1)], [batch(1)], "the query has ended: it was stopped"
    snapshot = found.collect(7.0)
    assert snapshot is not None
    assert snapshot.incomplete == dict.fromkeys(("counts", "counts (source)"), "the query has ended: it was stopped")
    assert snapshot.operators["counts"].replicas == 4  # what it had stays its own


def test_a_query_that_cannot_be_read_is_no_fault_of_the_others() -> None:
    found, _, first, second = monitor(Slots(8))

    def broken() -> Sequence[Batch]:
        raise RuntimeError("no answer")

    first.new = [batch(0), batch(1)]
    second.batches = broken  # type: ignore[method-assign]
    snapshot = found.collect(7.0)
    assert snapshot is not None
    assert set(snapshot.incomplete) == {"counts", "counts (source)"}
    assert snapshot.incomplete["counts"] == "its progress cannot be read: RuntimeError: no answer"
    assert snapshot.operators["clicks"].received == 500


def test_slots_are_shared_by_need_where_they_are_too_few() -> None:
    slots = Slots(8)
    found, allotment, *_ = monitor(slots)
    allotment.wanted = {"clicks": 9, "counts": 3}
    snapshot = found.collect(5.0)
    assert snapshot is not None
    assert {name: one.replicas for name, one in snapshot.operators.items()} == {"clicks": 6, "counts": 2}
    slots.count = 16
    snapshot = found.collect(10.0)
    assert snapshot is not None
    assert {name: one.replicas for name, one in snapshot.operators.items()} == {"clicks": 9, "counts": 3}


def test_in_advice_a_query_has_what_is_there() -> None:
    found, allotment, *_ = monitor(Slots(8), acting=False)
    allotment.wanted = {"clicks": 2, "counts": 2}
    snapshot = found.collect(5.0)
    assert snapshot is not None
    assert {one.replicas for one in snapshot.operators.values()} == {8}


def test_a_batch_is_judged_by_the_slots_that_it_had() -> None:
    slots = Slots(4)
    found, _, first, _ = monitor(slots)
    first.new = [batch(0), batch(1)]
    found.collect(8.0)
    assert _slots_of_last(found) == 4.0
    slots.count = 12
    found.note_slots(11.0)
    first.new = [batch(2)]  # from 10 to 12 s: on 4, and then on 12
    found.collect(13.0)
    assert _slots_of_last(found) is None
    first.new = [batch(3)]
    found.collect(18.0)
    assert _slots_of_last(found) == 12.0


def test_queries_whose_batches_run_at_once_share_the_slots() -> None:
    """What one waited for the other was taken for its own work, and executors were asked for twice."""
    found, _, first, second = monitor(Slots(8))
    first.new, second.new = [batch(1)], [replace(batch(1, 250), seconds=1.0)]
    found.collect(8.0)
    assert _slots_of_last(found) == 8 / 1.5
    first.new = [batch(2)]
    second.running = lambda: 500.0  # type: ignore[method-assign] # since 10 s
    found.collect(13.0)
    assert _slots_of_last(found) == 8 / 2
    found.remove("counts")
    first.new = [batch(3)]
    found.collect(18.0)
    assert _slots_of_last(found) == 8.0


def _slots_of_last(found: QueriesMonitor) -> float | None:
    last = found.states["clicks"].last
    assert last is not None
    return last.slots
