"""Sizing by free capacity: what is booked at a replica stays there, however many are added."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.metrics.snapshot import OperatorLoad
from penstock.policy.oracle import Oracle
from penstock.policy.parts.expected import movable
from penstock.policy.psps import Psps
from penstock.policy.srea import Srea
from penstock.policy.workload import Workload
from penstock.testing.loads import load, snapshot

EACH_S = 5 / 74  # a replica does 74 events in an interval of 5 s


def full(**more: object) -> OperatorLoad:
    """Two replicas with 303 events in their queues."""
    given = {"backlog": 303, "replicas": 2, "pool": 32, "execution_time_s": EACH_S, "queued_by": {0: 152, 1: 151}}
    return load("clean", {"in": 807}, 148, **(given | more))


def seen(one: OperatorLoad):
    return snapshot({"in": 807}, [one], interval_s=5.0, td_s=5.0)


def test_replicas_that_are_added_do_not_take_over_what_is_queued():
    """2 → 15 replicas with 303 events queued: the next interval still only saw 148 of them leave."""
    plan = Psps().plan(seen(full()))
    assert plan.replicas == {"clean": 13}
    assert plan.targets["clean"].reason == (
        "expects 955 events (807 new, 1 of 807 entering; 148 backlog, 155 more stay where they are booked) "
        "of 67.57 ms each: 12.91 replicas"
    )


def test_without_queues_everything_counts():
    plan = Psps().plan(seen(full(queued_by={})))
    assert plan.replicas == {"clean": 15}
    assert plan.targets["clean"].reason.endswith("303 backlog) of 67.57 ms each: 15 replicas")


def test_what_is_held_or_outside_or_on_its_way_counts():
    assert movable(full(backlog=403, held=60, outside=30), 5.0) == pytest.approx(148 + 100)


def test_what_is_bound_late_counts_as_a_whole():
    pulled = full(queued_by={0: 1, 1: 1}, held=301)
    assert movable(pulled, 5.0) == 303
    assert Psps().plan(seen(pulled)).replicas == {"clean": 15}


def test_a_replica_that_was_taken_out_finishes_by_itself():
    assert movable(full(queued_by={0: 10, 1: 13, 7: 280}), 5.0) == 23


def test_short_queues_count_as_they_are():
    assert movable(full(backlog=9, queued_by={0: 4, 1: 5}), 5.0) == 9


def test_unknown_times_and_intervals_without_length():
    assert movable(full(execution_time_s=None), 5.0) == 303
    assert movable(full(), 0.0) == 303


def test_those_that_catch_up_over_several_intervals_count_what_these_can_take():
    assert Srea(catch_up=1).plan(seen(full())).replicas == {"clean": 13}
    assert Srea(catch_up=2).plan(seen(full())).replicas == {"clean": 13}  # (807 + 296 / 2) / 74
    assert Srea(catch_up=2).plan(seen(full(queued_by={}))).replicas == {"clean": 13}


def test_the_oracle_is_no_better():
    workload = Workload(1.0, 1.0, {"clean": 1.0}, {"clean": EACH_S}, entering=lambda start_s, end_s: 807.0)
    assert Oracle(workload).plan(seen(full())).replicas == {"clean": 13}


def test_what_waits_above_counts_below_as_far_as_it_comes():
    below = load("store", {"clean": 148}, replicas=1, execution_time_s=EACH_S)
    plan = Psps(predecessor_backlog=True).plan(snapshot({"in": 807}, [full(), below], interval_s=5.0, td_s=5.0))
    assert plan.targets["store"].expected == pytest.approx(807 + 148)


@given(
    st.dictionaries(st.integers(0, 5), st.integers(0, 400)),
    st.integers(0, 300),
    st.sets(st.integers(0, 5), min_size=1),
    st.floats(0.01, 10),
)
def test_it_is_between_what_is_not_booked_and_the_backlog_and_grows_with_the_interval(queues, rest, active, length_s):
    booked = sum(queues.values())
    one = full(backlog=booked + rest, queued_by=queues, active=tuple(sorted(active)))
    short, long = movable(one, length_s), movable(one, 2 * length_s)
    assert rest <= short <= long <= booked + rest
    assert movable(replace(one, backlog=0), length_s) == 0  # reports that do not fit together
