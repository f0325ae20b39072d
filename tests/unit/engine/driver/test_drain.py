"""Nothing in flight: two rounds that agree, however short the waits are."""

from __future__ import annotations

import time
from collections.abc import Iterator

from penstock.engine.driver.tally import Drain
from penstock.metrics.counters import OperatorCounters, ReplicaCounters, RunCounters


def counted(entered: int, processed: int) -> RunCounters:
    done = OperatorCounters({0: ReplicaCounters(processed=processed)}, (0,), 1, entered - processed)
    return RunCounters(0.0, {"in": entered}, {"op": done})


def rounds(*given: RunCounters | None) -> Drain:
    left: Iterator[RunCounters | None] = iter(given)
    return Drain(lambda: next(left))


def past() -> float:
    return time.monotonic()


def test_two_rounds_must_agree() -> None:
    assert not rounds(counted(5, 5)).wait(past())
    assert rounds(counted(5, 5), counted(5, 5)).wait(past() + 5)
    assert rounds(counted(5, 4), counted(5, 5), counted(6, 6), counted(6, 6)).wait(past() + 5)


def test_waits_that_are_over_at_once_get_on() -> None:
    """On a slow machine one round took longer than the wait: a run that had ended was waited for for ever."""
    drain = rounds(counted(5, 4), counted(5, 5), counted(5, 5))
    assert [drain.wait(past()) for _ in range(3)] == [False, False, True]


def test_a_round_that_not_all_answered_counts_for_nothing() -> None:
    drain = rounds(counted(5, 5), None, counted(5, 5), counted(5, 5))
    assert [drain.wait(past()) for _ in range(4)] == [False, False, False, True]
