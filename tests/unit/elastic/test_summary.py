"""What the summary says of intervals, and of operators with state and without."""

from __future__ import annotations

import pytest

from penstock.elastic.summary import Played, _operator
from penstock.metrics.counters import OperatorCounters, ReplicaCounters
from penstock.metrics.rows import IntervalRow


def test_an_operator_with_state() -> None:
    first, second = ReplicaCounters(state_bytes=1000, state_keys=10), ReplicaCounters(state_bytes=500, state_keys=5)
    second.groups_moved = 2
    second.moving.add_many([20.0, 40.0])
    found = _operator(OperatorCounters({0: first, 1: second}, (0, 1), 4, 0))
    assert (found["state_bytes"], found["state_keys"], found["groups_moved"]) == (1500, 15, 2)
    assert (found["wait_ms"]["mean"], found["wait_ms"]["max"]) == (30.0, 40.0)
    assert set(found["wait_ms"]) == {"mean", "max", "p50", "p90", "p99"}


def test_nothing_has_moved_yet() -> None:
    found = _operator(OperatorCounters({0: ReplicaCounters(state_keys=1, state_bytes=9)}, (0,), 4, 0))
    assert found["wait_ms"] == dict.fromkeys(("mean", "max", "p50", "p90", "p99"))


def test_an_operator_without_state() -> None:
    assert "state_bytes" not in _operator(OperatorCounters({0: ReplicaCounters(processed=5)}, (0,), 4, 0))


def test_intervals_that_a_jump_cut_short_count_as_one() -> None:
    """A fifth of a second in which 4 events came and 7 left weighed as much as two seconds."""

    def row(number: int, interval_s: float, entered: int, left: float, replicas: int) -> IntervalRow:
        return IntervalRow(
            number=number,
            time_s=float(number),
            interval_s=interval_s,
            source_input={"in": entered},
            entered=entered,
            source_output=left,
            replicas=replicas,
            backlog=0,
            dropped=0,
            latency_count=0,
            latency_mean_ms=None,
            latency_p50_ms=None,
            latency_p99_ms=None,
        )

    played = Played(td_s=2.0)
    for one in (row(1, 2.0, 40, 40, 4), row(2, 0.2, 4, 7, 4), row(3, 1.8, 36, 33, 14), row(4, 2.0, 0, 0, 14)):
        played.add(one)
    assert (played.entered, played.left, played.replicas) == ([40, 40], [40, 40], [4, 13])
    assert played.lengths_s == [2.0, 2.0]
    assert played.replica_seconds == pytest.approx(34)
