"""What the summary says of intervals, and of operators with state and without."""

from __future__ import annotations

import pytest

from penstock.elastic.summary import Played, _operator, draining_s
from penstock.metrics.counters import OperatorCounters, ReplicaCounters, RunCounters
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
    played.add(row(5, 0.5, 10, 10, 2), draining_s=0.4)
    played.add(row(6, 1.5, 10, 10, 2), draining_s=0.6)
    assert played.replica_seconds == pytest.approx(34 + 4 + 1)


def test_a_replica_that_is_no_longer_active_costs_until_its_queue_is_empty() -> None:
    """Live, only active replicas counted: a policy that moved its only replica about paid for a part of what worked."""

    def at(time_s: float, active: tuple[int, ...], *replicas: tuple[float, int]) -> RunCounters:
        made = {place: ReplicaCounters(busy_s=busy_s, queued=many) for place, (busy_s, many) in enumerate(replicas)}
        return RunCounters(time_s, {}, {"clean": OperatorCounters(made, active, 4, 0)})

    first = at(10.0, (0, 1), (5.0, 9), (5.0, 9))
    second = at(15.0, (0,), (10.0, 4), (10.0, 4))  # one more is left to work off what it has
    third = at(20.0, (0,), (15.0, 0), (11.5, 0))
    assert draining_s(first, second) == pytest.approx(5.0)
    assert draining_s(second, third) == pytest.approx(1.5)
    assert draining_s(third, at(25.0, (0,), (16.0, 2), (11.5, 0))) == 0.0
    assert draining_s(third, at(20.0, (0,), (15.0, 0), (11.5, 3))) == 0.0  # no time has passed
    assert draining_s(third, at(25.0, (0,), (1.0, 0), (0.5, 0))) == 0.0  # an attempt died: counters go back
