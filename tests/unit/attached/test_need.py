"""From slots to executors."""

from __future__ import annotations

import pytest

from penstock.attached.model.need import Bounds, ByNeed, KeepUp, Leading
from penstock.control.analyze import Analyzer
from penstock.control.managers.ledger import SlotLedger
from penstock.control.managers.region_manager import Wish
from penstock.errors import InputError
from penstock.forecast.drift import Drift
from penstock.infra.worker import Worker, WorkerSize, WorkerState
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.static import Static

SIZE = WorkerSize(name="executor", capacity=4)


def worker(number: int, state: WorkerState = WorkerState.AVAILABLE) -> Worker:
    return Worker(name=f"executor-{number}", region="cluster", capacity=4, state=state)


def proposed(slots: int, *workers: Worker, least: int = 1, most: int = 8) -> list[tuple[str, str | None]]:
    ledger = SlotLedger()
    ledger.update(workers)
    region = ByNeed("cluster", Bounds(least, most), lambda: slots, lambda names: sorted(names, reverse=True))
    return [(one.wish.value, one.worker) for one in region.propose(ledger, {}, [SIZE])]


@pytest.mark.parametrize("text", ["0", "0..3", "3..2", "x", "1..", "-1", ""])
def test_bounds_that_are_none(text: str) -> None:
    with pytest.raises(InputError, match=r"^executors must be a number or least\.\.most, from 1 on; got"):
        Bounds.parse(text)


def test_as_many_are_started_as_the_slots_need() -> None:
    assert proposed(9, worker(1)) == [(Wish.START.value, None)] * 2
    assert proposed(9, worker(1), worker(2, WorkerState.STARTING)) == [(Wish.START.value, None)]
    assert proposed(99, worker(1), most=3) == [(Wish.START.value, None)] * 2


def test_what_is_on_its_way_goes_first_and_then_who_may() -> None:
    there = (worker(1), worker(2), worker(3, WorkerState.STARTING))
    assert proposed(5, *there) == [("stop", "executor-3")]
    assert proposed(1, *there) == [("stop", "executor-3"), ("stop", "executor-2")]
    assert proposed(1, *there, least=2) == [("stop", "executor-3")]


def test_who_is_leaving_is_not_counted() -> None:
    assert proposed(8, worker(1), worker(2), worker(3, WorkerState.DRAINING)) == []
    assert proposed(12, worker(1), worker(2), worker(3, WorkerState.DRAINING)) == [("start", None)]


def snapshot(rows: int, *, replicas: int = 4, backlog: int = 0, time_s: float = 5.0) -> Snapshot:
    load = OperatorLoad(
        name="clicks",
        received_by={"clicks (source)": rows},
        processed=rows,
        backlog=backlog,
        active=tuple(range(replicas)),
        pool=32,
        execution_time_s=0.02,
    )
    source = {"clicks (source)": rows}
    return Snapshot(time_s=time_s, interval_s=5.0, td_s=5.0, source_input=source, operators={"clicks": load})


def test_it_is_planned_for_the_most_that_comes_until_an_executor_has() -> None:
    """The rate rises by 10 rows/s an interval; an executor takes three, and works in the fourth."""
    analyzer = Leading(Analyzer("drift", lambda series: Drift(2)), lambda: 12.0)
    for number in range(5):
        forecast = analyzer.analyze(snapshot(100 + 50 * number, time_s=5.0 * (number + 1)))
    assert forecast.rate("clicks (source)") == pytest.approx(20 + 10 * 4 + 10 * 4)


def test_nothing_is_scaled_in_below_what_comes_and_waits() -> None:
    guard = KeepUp(Static(1))
    plan = guard.plan(snapshot(500, replicas=4, backlog=200))  # 700 · 0.02 / 5 = 2.8
    assert plan.replicas == {"clicks": 3}
    assert plan.targets["clicks"].reason.endswith("what comes and waits needs 3")
    assert guard.plan(snapshot(5000, replicas=4)).replicas == {"clicks": 4}  # it only holds, it does not add
    assert KeepUp(Static(9)).plan(snapshot(500)).replicas == {"clicks": 9}
