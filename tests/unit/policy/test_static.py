from __future__ import annotations

import pytest

from penstock.errors import InputError
from penstock.metrics.paper import overestimated_replicas
from penstock.policy.static import Static, make_static
from penstock.policy.workload import Workload
from penstock.testing.loads import load, snapshot

WORKLOAD = Workload(400, 100, {"a": 1.0, "b": 0.5}, {"a": 0.02, "b": 0.02})
SEEN = snapshot({"in": 9}, [load("a", {"in": 9}), load("b", {"a": 9}, replicas=2)])


def test_the_same_number_for_all():
    assert Static(4).plan(SEEN).replicas == {"a": 4, "b": 4}


def test_peak_runs_with_what_saved_resources_compares_to():
    plan = make_static("peak", WORKLOAD).plan(SEEN)
    assert plan.replicas == {"a": 8, "b": 4}
    assert sum(plan.replicas.values()) == overestimated_replicas(400, WORKLOAD.shares, WORKLOAD.execution_times_s)
    assert plan.targets["a"].reason == "static, sized for the peak rate of 400 events per second"


def test_mean():
    assert make_static("mean", WORKLOAD).plan(SEEN).replicas == {"a": 2, "b": 1}


def test_an_operator_that_is_not_named_keeps_what_it_has():
    assert Static({"a": 3}).plan(SEEN).replicas == {"a": 3, "b": 2}


@pytest.mark.parametrize("replicas", [0, -1, True, {"a": 0}, {"a": 1.5}])
def test_replicas_are_whole_and_at_least_one(replicas):
    with pytest.raises(InputError, match="replicas must be whole and at least 1; got"):
        Static(replicas)


def test_peak_without_a_workload():
    with pytest.raises(InputError, match="policy 'static:peak': needs the workload's rates"):
        make_static("peak")


def test_neither_a_number_nor_peak_or_mean():
    with pytest.raises(InputError, match="must be a number, peak or mean; got 'most'"):
        make_static("most")
