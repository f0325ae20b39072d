"""What waits outside, in front of a source, is backlog of the operators that read it."""

from __future__ import annotations

from penstock.metrics.counters import OperatorCounters, ReplicaCounters, RunCounters
from penstock.metrics.interval import IntervalRules, difference
from penstock.metrics.snapshot import Declared, Snapshot


def seen(lag: dict[str, int]) -> Snapshot:
    operators = {
        "first": OperatorCounters({0: ReplicaCounters({"in": 10}, 8)}, (0,), 4, backlog=2),
        "second": OperatorCounters({0: ReplicaCounters({"first": 8}, 5)}, (0,), 4, backlog=3),
    }
    declared = {"first": Declared(("in",)), "second": Declared(("first",))}
    earlier, later = RunCounters(0.0, {"in": 0}, {}), RunCounters(1.0, {"in": 10}, operators, lag=lag)
    return difference(earlier, later, IntervalRules(1.0, declared=declared))


def test_consumer_lag_is_backlog_of_the_first_operators_only() -> None:
    backlogs = {name: load.backlog for name, load in seen({"in": 500}).operators.items()}
    assert backlogs == {"first": 502, "second": 3}


def test_a_lag_that_is_not_known_or_wrong_counts_as_none() -> None:
    assert seen({}).operators["first"].backlog == 2
    assert seen({"in": -7}).operators["first"].backlog == 2
