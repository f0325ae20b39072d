"""What the summary says of an operator with state, and that it says nothing of the others."""

from __future__ import annotations

from penstock.elastic.summary import _operator
from penstock.metrics.counters import OperatorCounters, ReplicaCounters


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
