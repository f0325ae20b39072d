"""What holds for penstock under any load: never fewer replicas than psps, and never later by much."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.metrics.paper import replicas_for
from penstock.metrics.shares import propagate
from penstock.policy.guards import guarded
from penstock.policy.parts.expected import SourceRates
from penstock.policy.penstock import Penstock
from penstock.policy.psps import Psps
from penstock.simulator import Scenario, simulate
from penstock.testing.loads import load, snapshot
from penstock.topology import Topology
from penstock.workload import Trace

counts = st.integers(0, 100_000)
times_s = st.one_of(st.none(), st.floats(1e-4, 2.0))
SHAPE = {"a": ["x"], "b": ["a", "y"], "c": ["a"], "d": ["b", "c"]}  # two sources, a diamond


@st.composite
def runs(draw):
    """Up to 12 snapshots of one topology, with any counts, lengths and gaps, and some numbers missing."""
    td_s, now_s, seen = draw(st.sampled_from([0.2, 1.0, 5.0, 60.0])), 0.0, []
    for _ in range(draw(st.integers(1, 12))):
        length_s = draw(st.floats(0.2, 2 * td_s))
        now_s += length_s + draw(st.sampled_from([0.0, 0.0, 1000.0]))
        loads = [
            load(
                name,
                {sender: draw(counts) for sender in senders},
                draw(counts),
                backlog=draw(counts),
                execution_time_s=draw(times_s),
                replicas=draw(st.integers(1, 64)),
                keyed=name == "d",
                queued_by={0: draw(counts)},
                processed_by={0: draw(counts), 1: draw(counts)},
            )
            for name, senders in SHAPE.items()
        ]
        bad = draw(st.lists(st.sampled_from(["x", "y", *SHAPE]), max_size=1))
        jump = draw(st.sampled_from([{}, {"x": 1000.0}]))
        lengths = {"time_s": now_s, "interval_s": length_s, "td_s": td_s}
        came = {source: draw(counts) for source in ("x", "y")}
        seen.append(snapshot(came, loads, incomplete=dict.fromkeys(bad, "stale"), jump=jump, **lengths))
    return seen


@given(runs())
@settings(max_examples=20, deadline=None)
def test_it_never_has_fewer_replicas_than_psps(seen):
    policy, beside = Penstock(), Psps()
    for one in seen:
        plan, least = policy.plan(one), beside.plan(one)
        assert all(target.replicas >= least.targets[name].replicas for name, target in plan.targets.items())


@given(runs())
@settings(max_examples=20, deadline=None)
def test_incomplete_numbers_never_scale_in_and_bounds_hold(seen):
    policy = guarded(Penstock(), slots=100)
    for one in seen:
        for name, target in policy.plan(one).targets.items():
            active, pool = one.operators[name].replicas, one.operators[name].pool
            assert 1 <= target.replicas <= pool
            assert target.reason
            if one.incomplete:
                assert target.replicas >= min(active, pool)


@given(runs())
@settings(max_examples=20, deadline=None)
def test_where_no_rule_keeps_the_promise_it_is_within_the_peak_or_psps(seen):
    """Never dearer than sized for the largest rate so far, or than `psps` that counts what waits above."""
    policy, beside, rates = Penstock(late=0.0001), Psps(predecessor_backlog=True), SourceRates()
    largest = 0.0
    for one in seen:
        plan, least, rate = policy.plan(one), beside.plan(one), sum(rates.learn(one).values())
        largest = max(largest, 0.0 if one.incomplete else rate)  # also where no execution time was known
        for name, target in plan.targets.items():
            load = one.operators[name]
            if "no rule keeps" not in target.reason or one.incomplete or load.keyed or not load.execution_time_s:
                continue
            shares = propagate(policy._mix, policy._shares._known)
            most = replicas_for(largest * shares[name] * load.execution_time_s)
            assert target.replicas <= max(most, least.targets[name].replicas)


def topology():
    made = Topology("two")
    first = made.operator("first", print, inputs=made.source("in"), execution_time_ms=20.0, pool=32, selectivity=1.0)
    made.operator("second", print, inputs=first, execution_time_ms=30.0, pool=32, selectivity=0.0)
    return made


@given(
    st.lists(st.sampled_from([5.0, 20.0, 60.0, 150.0, 400.0]), min_size=8, max_size=30),
    st.sampled_from([1.0, 5.0]),
    st.booleans(),
)
@settings(max_examples=8, deadline=None)
def test_it_keeps_its_promise_or_is_hardly_later_than_psps(rates, td_s, wake):
    """Whatever comes, jump after jump out of nothing: four seconds at each rate."""
    trace = Trace("jumps", 4.0, np.array(rates))
    scenario = Scenario(topology(), trace).changed(td_s=td_s, target_ms=1000, wake=wake)
    ours, psps = (simulate(scenario, policy).late_ratio for policy in ("penstock:target_ms=1000", "psps"))
    assert ours <= max(0.01, psps + 0.005)
