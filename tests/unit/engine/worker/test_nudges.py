"""Nudges: what waits in Spark's buffers is never a bundle, and warming up does not take longer for larger pools."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.protocol.bundle import NUDGE
from penstock.engine.worker.nudges import WARM_UP_ROUNDS, WARM_UP_ROWS, nudged_rows, warm_up_rounds


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_what_waits_in_spark_is_always_a_nudge(partitions: list[int]) -> None:
    """Spark hands on two rows when a third is there; the first row of all is one of `first_nudges`."""
    program: Any = SimpleNamespace(realtime=True)
    flushes = [nudged_rows(program, partitions, [b"bundle"] * len(partitions)) for _ in range(3)]
    for partition in set(partitions):
        rows = [NUDGE]
        for flush in flushes:
            rows += [row["bundle"] for batch in flush for row in batch.to_pylist() if row["partition"] == partition]
            waiting = rows[2 * ((len(rows) - 1) // 2) :]
            assert waiting == [NUDGE]


@given(senders=st.integers(1, 300), receivers=st.integers(1, 300))
def test_all_are_nudged_an_even_number_of_times_and_not_too_often_in_all(senders: int, receivers: int) -> None:
    """An odd number would have a bundle wait; 64 senders that nudge 64 replicas 24 times would send 98,304 rows."""
    rounds = [warm_up_rounds(senders, receivers, sender) for sender in range(senders)]
    assert rounds[0] >= 2
    assert all(one % 2 == 0 and one <= WARM_UP_ROUNDS for one in rounds)
    assert sum(rounds) * receivers <= max(WARM_UP_ROWS, 2 * receivers)
