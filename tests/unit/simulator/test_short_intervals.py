"""Shorter intervals are not noisier, and a loop that is woken is there at once."""

from __future__ import annotations

import statistics

import pytest

from penstock.simulator import Scenario, simulate
from penstock.topology import Topology
from penstock.workload import Trace, constant

from .plant.test_plant import passed


def chain(time_ms: float = 20.0) -> Topology:
    topology = Topology("chain", pool=32)
    first = topology.operator("first", passed, inputs=topology.source("in"), selectivity=0.5, execution_time_ms=time_ms)
    topology.operator("last", passed, inputs=first, execution_time_ms=2 * time_ms)
    return topology


def steady(td_s: float, policy: str, seed: int = 1) -> list[int]:
    """The replicas of each interval under a constant load, once all is learnt."""
    scenario = Scenario(chain(), constant(200.0, 80.0), arrivals="poisson", seed=seed).changed(
        td_s=td_s, exponential=True
    )
    history = simulate(scenario, policy).history
    return [sum(row) for time_s, row in zip(history.times_s, history.replicas, strict=True) if 20 < time_s < 80]


@pytest.mark.parametrize("policy", ["psps", "psps:predecessor_backlog", "ds2", "srea", "incremental"])
def test_the_noise_of_the_plan_is_no_larger_at_a_fifth_of_a_second_than_at_one(policy):
    fine, coarse = steady(0.2, policy), steady(1.0, policy)
    assert statistics.stdev(fine) <= 1.1 * statistics.stdev(coarse)
    assert statistics.mean(fine) == pytest.approx(statistics.mean(coarse), rel=0.15)


def test_replicas_follow_a_jump_sooner_the_shorter_the_interval_is():
    jump = Trace("jump", 20.0, [50.0, 400.0])
    late = {
        td_s: simulate(Scenario(chain(), jump, grouping="pull").changed(td_s=td_s, target_ms=500), "psps").late_ratio
        for td_s in (5.0, 1.0, 0.2)
    }
    assert late[0.2] < late[1.0] < late[5.0]


def jumping(**values: object) -> Scenario:
    """From 50 to 400 events a second, at 20.5 s."""
    rates = [50.0] * 41 + [400.0] * 39
    return Scenario(chain(), Trace("jump", 0.5, rates), grouping="pull").changed(target_ms=500, **values)


def test_a_jump_that_wakes_the_loop_is_followed_within_300_ms():
    asleep, woken = (simulate(jumping(td_s=5.0, wake=wake), "psps") for wake in (False, True))
    history = woken.history
    grown = next(time_s for time_s, row in zip(history.times_s, history.replicas, strict=True) if sum(row) > 8)
    before = max(time_s for time_s in history.times_s if time_s < grown)
    assert 20.5 < before <= 20.8  # replicas of an interval are those decided at the end of the one before
    assert woken.late_ratio < 0.5 * asleep.late_ratio
    assert woken.events == asleep.events


def test_after_a_jump_intervals_end_when_they_would_have():
    times_s = simulate(jumping(td_s=5.0, wake=True), "static:32").history.times_s
    assert [time_s for time_s in times_s if time_s % 5 == 0] == [5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0]
    assert 10 <= len(times_s) <= 12


def test_without_jumps_nothing_wakes():
    scenario = Scenario(chain(), constant(100.0, 30.0), arrivals="poisson", seed=2)
    asleep, woken = (simulate(scenario.changed(wake=wake), "psps") for wake in (False, True))
    assert woken.history.times_s == asleep.history.times_s
    assert woken.latency_ms == pytest.approx(asleep.latency_ms)
