"""Spark's dynamic allocation by its documentation: rounds that double, timeouts before and between, and of idleness."""

from __future__ import annotations

import pytest

from penstock.errors import InputError
from penstock.policy.base import SizesWorkers, Supply
from penstock.policy.dynamic_allocation import DynamicAllocation
from penstock.policy.registry import make_policy
from penstock.simulator import simulate
from penstock.simulator.arena import policies_named
from penstock.testing.loads import load, snapshot

from ..simulator.setups import scenario_of

SUPPLY = Supply(slots=4, joining_s=12.0, seats=1)


def asked(policy, tasks, *, td_s=1.0):
    """Workers that it wants where so many tasks, one number for each interval, can be done at once."""
    found = []
    for number, count in enumerate(tasks):
        came = round(count * td_s / 0.05)
        one = load("clean", {"in": came}, execution_time_s=0.05, replicas=7)
        policy.plan(snapshot({"in": came}, [one], time_s=number * td_s, interval_s=td_s, td_s=td_s))
        found.append(policy.slots_ahead(SUPPLY)[0] // SUPPLY.slots)
    return found


def test_rounds_double_after_the_timeout_and_stop_at_what_is_needed():
    """Seven tasks and a source take 2 workers; then 60 tasks take 16: 1 more after a second, then 2, 4 and the rest."""
    assert asked(DynamicAllocation(), [7, 60, 60, 60, 60, 60, 60]) == [2, 2, 3, 5, 9, 16, 16]


def test_it_begins_with_one_again():
    assert asked(DynamicAllocation(), [7, 60, 60, 7, 60, 60, 60]) == [2, 2, 3, 3, 3, 3, 5]


def test_several_rounds_fall_into_a_long_interval():
    """At 5 s: 1 + 2 + 4 + 8 + 16 at most, of which 14 are needed."""
    assert asked(DynamicAllocation(), [7, 60, 60], td_s=5.0) == [2, 2, 16]


def test_later_rounds_have_a_timeout_of_their_own():
    assert asked(DynamicAllocation(sustained_s=2.0), [7, 60, 60, 60, 60, 60, 60]) == [2, 2, 3, 3, 5, 5, 9]


def test_work_that_is_done_before_the_timeout_asks_for_nothing():
    assert asked(DynamicAllocation(backlog_s=3.0), [7, 60, 60, 7, 7, 7]) == [2] * 6


def test_workers_go_after_the_idle_timeout():
    found = asked(DynamicAllocation(idle_s=10.0), [7] + [60] * 6 + [7] * 14)
    assert found[6:16] == [16] * 10
    assert found[17:] == [2] * 4


def test_it_sizes_workers_and_knows_nothing_before_the_first_plan():
    policy = make_policy("dynamic_allocation:idle_s=30")
    assert isinstance(policy, SizesWorkers)
    assert policy.slots_ahead(SUPPLY) is None
    with pytest.raises(InputError, match="policy 'dynamic_allocation': idle_s must be"):
        make_policy("dynamic_allocation:idle_s=0")


def test_of_all_policies_it_is_left_out_as_its_replicas_are_those_of_psps():
    assert "dynamic_allocation" not in policies_named("all")


def test_on_simulated_workers():
    """A step from 20 to 200 events/s of 40 ms: 2 slots, then 9, and the spare slots of e2df are not kept."""
    scenario = scenario_of([20.0] * 6 + [200.0] * 18, 40.0).changed(td_s=5.0, levels="both", workers=30)
    ours, spare = (simulate(scenario, policy) for policy in ("dynamic_allocation", "psps"))
    assert ours.late_ratio > 0  # it asks only when tasks wait, and a worker takes 12 s
    assert ours.worker_seconds < spare.worker_seconds
    assert ours.backlog == 0
