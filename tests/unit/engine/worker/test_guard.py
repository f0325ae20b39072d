"""Processes that something ends again and again: they say what they are about to do, and leave out what is deadly."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.protocol.messages import AtWork
from penstock.engine.protocol.progress import Phase, Progress, ShiftState
from penstock.engine.worker import agent as agents
from penstock.engine.worker.guard import DEADLY
from penstock.errors import EngineError

from ..made import InBulk, app, parts, with_letters

Tools = SimpleNamespace
Work = Any

CAREFUL = {"careful": True, "generation": 5, "checkpoint": 8}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the events that were said to be worked on, in order, with what had been done by then."""
    said: list[str] = []

    def tell(_: object, at_work: AtWork) -> None:
        assert (at_work.generation, at_work.operator, at_work.replica) == (5, "op", 0)
        said.append(f"{at_work.event_id or 'none'} after {len(done)}")

    monkeypatch.setattr(agents.Agent, "tell", tell)
    done.clear()
    return said


done: list[int] = []


def double(event: int) -> int:
    done.append(event)
    return 2 * event


def refuse(event: int) -> int:
    raise ValueError(event)


def test_each_event_is_said_before_it_is_worked_on(work: Work, tools: Tools, told: list[str]) -> None:
    assert work(app(double), tools.bundle([3, 4]), **CAREFUL).left.events == [6, 8]
    assert told == ["0 after 0", "none after 1", "1 after 1", "none after 2"]


def test_nothing_is_said_without_a_reason(work: Work, tools: Tools, told: list[str]) -> None:
    assert work(app(double), tools.bundle([3, 4])).left.events == [6, 8]
    assert told == []


def test_nothing_is_said_once_a_checkpoint_of_the_attempt_is_committed(
    work: Work, tools: Tools, told: list[str]
) -> None:
    progress = Progress(1, {0: ShiftState(Phase.SENDING)}, committed=8)
    assert work(app(double), tools.bundle([3, 4]), progress=progress, **CAREFUL).left.events == [6, 8]
    assert told == []


def test_a_second_batch_of_the_attempt_says_it_no_more_often(work: Work, tools: Tools, told: list[str]) -> None:
    for _ in range(2):
        assert work(app(double), tools.bundle([3]), **CAREFUL).left.events == [6]
    assert told == ["0 after 0", "none after 1", "0 after 1", "none after 2"]


def test_process_many_is_called_for_each_alone(work: Work, tools: Tools, told: list[str]) -> None:
    worked = work(app(InBulk()), tools.bundle([0, 1, 5, 6, 7]), **CAREFUL)
    assert worked.left.ids == ["1.0", "1.1", "2", "3", "4"]
    assert InBulk.calls == [("0",), ("1",), ("2",), ("3",), ("4",)]
    assert [one.split()[0] for one in told[::2]] == ["0", "1", "2", "3", "4"]
    assert {one.split()[0] for one in told[1::2]} == {"none"}


def test_a_call_that_fails_has_ended_too(work: Work, tools: Tools, told: list[str]) -> None:
    with pytest.raises(EngineError, match="ValueError"):
        work(app(refuse), tools.bundle([3]), **CAREFUL)
    assert told == ["0 after 0", "none after 0"]


@pytest.mark.parametrize("careful", [True, False])
@pytest.mark.parametrize("run", [double, InBulk()])
def test_a_deadly_event_is_not_tried_but_fails(
    work: Work, tools: Tools, told: list[str], run: Any, careful: bool
) -> None:
    topology = with_letters(app(run, on_error="dead_letter"))
    program = {"deadly": {"op": frozenset({"1"})}, "careful": careful, "generation": 5, "checkpoint": 8}
    worked = work(topology, tools.bundle([3, 4, 5]), **program)
    out, letters = parts(worked.left)
    assert out == {"0": 6, "2": 10}
    assert letters["1.op"]["error"] == DEADLY
    assert letters["1.op"]["event"] == 4
    assert "1" not in {one.split()[0] for one in told}
    assert worked.counters.processed == 2


def test_a_deadly_event_ends_a_run_that_is_to_fail_with_its_name(work: Work, tools: Tools) -> None:
    with pytest.raises(EngineError, match=f"{DEADLY}; on event 1: 4"):
        work(app(double), tools.bundle([3, 4, 5]), deadly={"op": frozenset({"1"})})


def test_one_that_is_deadly_elsewhere_is_tried_here(work: Work, tools: Tools) -> None:
    assert work(app(double), tools.bundle([3]), deadly={"end": frozenset({"0"})}).left.events == [6]
