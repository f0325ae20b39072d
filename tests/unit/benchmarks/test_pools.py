"""What the notes of a sink tell of a hang and of a jump."""

from __future__ import annotations

from typing import Any

import pytest
from pools_scenarios import SERVICE_S, hang_figures, jump_figures, steps

RATE = 100.0


def event(n: int, by: int, took_s: float = 0.05) -> dict[str, Any]:
    due_s = n / RATE
    return {"n": n, "due_s": due_s, "done_s": due_s + took_s, "took_s": took_s, "by": by}


def test_who_is_late_while_a_replica_hangs() -> None:
    """Replica 1 hangs from 20 to 25 s with two events; of the others one waits behind them."""
    events = [event(n, by=n % 4) for n in range(4000)]
    events[2001], events[2005] = event(2001, by=1, took_s=5.0), event(2005, by=1, took_s=4.9)
    events[2006] = event(2006, by=2, took_s=1.5)
    found = hang_figures(events, began_s=20.0)
    assert (found["late"], found["late_of_others"]) == (3, 1)
    assert found["p99_before_ms"] == found["p99_others_ms"] == pytest.approx(50.0)


def test_pushed_events_wait_for_the_replica_that_hangs_but_others_do_not() -> None:
    waits = [n % 4 == 1 and 2000 <= n < 2500 for n in range(4000)]
    events = [event(n, by=n % 4, took_s=25.0 - n / RATE if waits[n] else 0.05) for n in range(4000)]
    found = hang_figures(events, began_s=20.0)
    assert 80 < found["late"] <= 125
    assert found["late_of_others"] == 0


def test_from_a_jump_to_more_at_work() -> None:
    """At 10 and at 20 s; the second time it takes longer until the loop asks."""
    before = [event(n, by=0) for n in range(1000)]
    first = event(1020, by=1, took_s=0.1)
    back = [event(n, by=0) for n in range(1500, 2000)]
    second = event(2050, by=2, took_s=0.1)
    found = jump_figures([*before, first, *back, second], [10.0, 20.0], [3.0, 10.15, 20.45])
    assert found["asked_ms"] == pytest.approx(300.0)
    assert found["longest_asked_ms"] == pytest.approx(450.0)
    assert found["at_work_ms"] == pytest.approx(1000 * (0.45 - SERVICE_S))


def test_steps_are_one_after_another() -> None:
    trace = steps((10.0, 3.0), (50.0, 2.0))
    assert (trace.duration_s, trace.rate_at(2.5), trace.rate_at(3.5), trace.events) == (5.0, 10.0, 50.0, 130.0)
