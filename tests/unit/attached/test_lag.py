"""What a user's own function says of what waits: used at once, or as it last was, and never waited for."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator

import pytest

from penstock.attached.model.lag import Lag, ask_all
from tests.waiting import LONG_S, until


class Slow:
    """A function that answers when it may."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.asked = self.answered = 0

    def __call__(self) -> float:
        self.asked += 1
        self.may.wait(LONG_S)
        self.answered += 1
        return 7.0 * self.asked


@pytest.fixture
def slow() -> Iterator[Slow]:
    found = Slow()
    yield found
    found.may.set()


def test_a_quick_one_is_used_at_once() -> None:
    assert ask_all({"a": Lag("a", lambda: 3), "b": Lag("b", lambda: 4.5)}, within_s=LONG_S) == {"a": 3.0, "b": 4.5}


def test_a_slow_one_is_not_waited_for_and_asked_once(slow: Slow) -> None:
    """It was asked in the keeper's thread, which stood still with it."""
    lag = Lag("clicks", slow)
    assert ask_all({"clicks": lag}, within_s=0.01) == {"clicks": None}
    assert ask_all({"clicks": lag}, within_s=0.01) == {"clicks": None}
    assert (slow.asked, slow.answered) == (1, 0)
    slow.may.set()
    until(lambda: lag.rows() == 7.0)


def test_the_last_answer_counts_until_it_is_too_old(slow: Slow, caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    lag = Lag("clicks", slow, stale_s=60.0, now=lambda: now[0])
    slow.may.set()
    assert ask_all({"clicks": lag}, within_s=LONG_S) == {"clicks": 7.0}
    slow.may.clear()
    now[0] = 60.0
    assert ask_all({"clicks": lag}, within_s=0.0) == {"clicks": 7.0}
    now[0] = 61.0
    assert ask_all({"clicks": lag}, within_s=0.0) == {"clicks": None}
    assert ask_all({"clicks": lag}, within_s=0.0) == {"clicks": None}
    assert caplog.text.count("query 'clicks': its lag has not been told for 60 s; it is left out") == 1


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: math.nan, "its lag must be a number of at least 0; got nan"),
        (lambda: -1, "its lag must be a number of at least 0; got -1.0"),
        (lambda: math.inf, "its lag must be a number of at least 0; got inf"),
        (lambda: 1 / 0, "its lag cannot be asked: division by zero"),
        (lambda: "many", "its lag cannot be asked: could not convert"),
    ],
)
def test_what_is_no_number_is_left_out_and_said_once(
    asked: Callable[[], float], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    lag = Lag("clicks", asked)
    for _ in range(3):
        assert ask_all({"clicks": lag}, within_s=LONG_S) == {"clicks": None}
    assert caplog.text.count(said) == 1
