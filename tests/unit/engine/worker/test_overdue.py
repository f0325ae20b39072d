"""A task that is stuck ends soon after its input; one that is over in time does not take its process along."""

from __future__ import annotations

import threading

import pytest

from penstock.engine.worker import overdue
from penstock.engine.worker.overdue import Overdue
from tests.waiting import LONG_S


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    monkeypatch.setattr(overdue, "OVERDUE_S", 0.05)
    return threading.Event()


def test_a_task_that_is_stuck_after_its_input_ends_with_its_process(ended: threading.Event) -> None:
    """A Kafka client waited an hour, as the clock had jumped back, and the daemon by which Spark ends it was dead."""
    given = Overdue([1, 2], ended.set)
    assert list(given) == [1, 2]
    assert ended.wait(LONG_S)


def test_one_whose_input_breaks_too(ended: threading.Event) -> None:
    with pytest.raises(ZeroDivisionError):
        list(Overdue((1 / n for n in (0,)), ended.set))
    assert ended.wait(LONG_S)


def test_one_that_is_over_in_time_does_not(ended: threading.Event) -> None:
    given = Overdue([], ended.set)
    assert list(given) == []
    given.over()
    given._timer.join(LONG_S)
    assert not ended.is_set()


def test_one_that_is_over_before_its_input_does_not_either(ended: threading.Event) -> None:
    given = Overdue([], ended.set)
    given.over()
    assert list(given) == []
    given._timer.join(LONG_S)
    assert not ended.is_set()
