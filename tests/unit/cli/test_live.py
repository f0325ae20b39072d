"""Workers in the live view: readable in 80 and in 120 columns, and absent where there are none."""

from __future__ import annotations

import io
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console, Group

from penstock.cli.live import _line, workers_view
from penstock.control.step import LoopState, Step
from penstock.metrics.counters import CheckpointStatus, RunCounters
from penstock.metrics.rows import LevelRows, ManagerRow, WorkerRow
from penstock.testing.loads import load, snapshot

SEEN = snapshot({"in": 10}, [load("a", {"in": 10})])
WORKER = WorkerRow(
    number=3,
    time_s=130.0,
    worker="worker-1",
    region="local",
    state="available",
    capacity=4,
    hosted=3,
    utilisation=0.625,
    price=1.0,
)
REASON = (
    "0 slots are free, 2 should be, and a long explanation of why that is so follows, which no terminal has room for"
)
SAID = ManagerRow(
    sequence=0,
    time_s=124.0,
    who="infrastructure",
    word="refused",
    subject="start a worker of local",
    reason=REASON,
)


def state(*workers: WorkerRow, said: tuple[ManagerRow, ...] = ()) -> LoopState:
    step = Step(number=3, time_s=130.0, snapshot=SEEN, levels=LevelRows(tuple(workers), said))
    return LoopState().after(step, changes=20)


def shown(loop_state: LoopState, width: int = 80) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False).print(Group(*workers_view(loop_state, 100.0)))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_row_for_each_worker_with_its_slots_and_use() -> None:
    starting = replace(WORKER, worker="worker-2", state="starting", hosted=0, utilisation=None)
    lines = shown(state(WORKER, starting))
    assert lines[0] == "workers: 1 available, 1 starting; 3 of 8 slots used"
    assert [word.strip() for word in lines[2].split("┃")[1:-1]] == ["worker", "state", "slots", "used"]
    assert [word.strip() for word in lines[4].split("│")[1:-1]] == ["worker-1", "available", "■■■□ 3/4", "62%"]
    assert [word.strip() for word in lines[5].split("│")[1:-1]] == ["worker-2", "starting", "□□□□ 0/4", "–"]


def test_regions_are_shown_where_there_are_several() -> None:
    lines = shown(state(WORKER, replace(WORKER, worker="worker-2", region="there")))
    assert "region" in lines[2]
    assert "there" in lines[5]


@pytest.mark.parametrize("width", [80, 120])
def test_it_fits_the_terminal_and_long_reasons_are_cut(width: int) -> None:
    workers = [replace(WORKER, worker=f"a-worker-with-a-long-name-{n}", capacity=40, hosted=31) for n in range(30)]
    lines = shown(state(*workers, said=tuple(replace(SAID, sequence=n) for n in range(9))), width)
    assert max(map(len, lines)) <= width
    assert len(lines) <= 18  # most workers and words are left out
    assert any("23 more" in line for line in lines)
    said = [line for line in lines if "infrastructure" in line]
    assert len(said) == 4
    assert said[0].startswith("   24 s  infrastructure refused start a worker of local: 0 slots are free")
    assert said[0].endswith("…")


def test_names_in_brackets_are_not_markup() -> None:
    assert "[bold]" in shown(state(replace(WORKER, worker="[bold]")))[4]


def test_nothing_where_there_are_no_workers() -> None:
    assert workers_view(LoopState(), 0.0) == []
    assert workers_view(LoopState().after(Step(number=1, time_s=1.0, snapshot=SEEN), changes=20), 0.0) == []
    assert shown(state())[0] == "no workers"


def test_the_line_counts_workers_only_on_a_cluster() -> None:
    counters = RunCounters(time_s=130.0, sources={"in": 5}, operators={})
    made = CheckpointStatus(number=12, took_s=0.08, committed=12, age_s=3.0, every_s=10.0)
    live: Any = SimpleNamespace(
        run=SimpleNamespace(clock=SimpleNamespace(now=lambda: 130.0), checkpoint_status=lambda: made),
        expected=SimpleNamespace(events=10.0),
        started_s=100.0,
        loop=SimpleNamespace(state=state(WORKER)),
    )
    assert "  checkpoint 12 (80 ms, 3 s ago)" in _line(live, counters, counters)
    assert "  workers 1" in _line(live, counters, counters)
    live.loop = None
    assert "workers" not in _line(live, counters, counters)
