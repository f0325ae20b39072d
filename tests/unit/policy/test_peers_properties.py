"""What every peer keeps to on any run of any topology."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.policy.guards import guarded
from penstock.policy.registry import make_policy
from penstock.policy.workload import Workload
from penstock.testing.loads import load, snapshot


def entering(start_s, end_s):
    return 100.0 * (end_s - start_s)


WORKLOAD = Workload(100, 100, {"o0": 1.0}, {"o0": 0.01}, entering)
PEERS = ["oracle", "ds2", "ds2:use_forecast", "flink:short,stabilisation_s=0", "flink", "keda", "dstream:every_s=5"]
counts = st.integers(0, 10_000)


def make(spec):
    return make_policy(spec, workload=WORKLOAD) if spec == "oracle" else make_policy(spec)


@st.composite
def topologies(draw):
    """The senders of up to 6 operators, and their pools."""
    sources = ["s0", "s1"][: draw(st.integers(1, 2))]
    operators = {}
    for number in range(draw(st.integers(1, 6))):
        known = sources + list(operators)
        senders = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True))
        operators[f"o{number}"] = (senders, draw(st.integers(1, 16)))
    return sources, operators


@st.composite
def runs(draw):
    """Up to 6 intervals of one topology, with any counts, also of no length and with bad numbers."""
    sources, operators = draw(topologies())
    time_s, seen = 0.0, []
    for _ in range(draw(st.integers(1, 6))):
        length_s = draw(st.sampled_from([0.0, 0.5, 1.0, 30.0]))
        time_s += length_s
        loads = [draw_load(draw, name, *given) for name, given in operators.items()]
        bad = draw(st.lists(st.sampled_from([*sources, *operators]), max_size=2, unique=True))
        entered = {source: draw(counts) for source in sources}
        more = {"time_s": time_s, "interval_s": length_s, "td_s": draw(st.sampled_from([1.0, 30.0]))}
        seen.append(snapshot(entered, loads, incomplete=dict.fromkeys(bad, "stale"), **more))
    return seen


def draw_load(draw, name, senders, pool):
    replicas = draw(st.integers(1, pool))
    busy = draw(st.one_of(st.just({}), st.fixed_dictionaries(dict.fromkeys(range(replicas), st.floats(0, 1)))))
    times_s = st.one_of(st.none(), st.floats(1e-6, 2.0))
    more = {"backlog": draw(counts), "pool": pool, "replicas": replicas, "busy_share": busy}
    received = {sender: draw(counts) for sender in senders}
    return load(name, received, draw(counts), execution_time_s=draw(times_s), **more)


@pytest.mark.parametrize("spec", PEERS)
@given(run=runs())
@settings(max_examples=30)
def test_a_target_and_a_reason_for_every_operator(spec, run):
    policy = make(spec)
    for seen in run:
        plan = policy.plan(seen)
        assert plan.targets.keys() == seen.operators.keys()
        for target in plan.targets.values():
            assert target.replicas >= 1
            assert target.reason
            assert target.expected is None or 0 <= target.expected < math.inf


@pytest.mark.parametrize("spec", PEERS)
@given(run=runs())
@settings(max_examples=30)
def test_operators_with_bad_numbers_keep_what_they_have(spec, run):
    policy = make(spec)
    for seen in run:
        replicas = policy.plan(seen).replicas
        for name in seen.incomplete.keys() & seen.operators.keys():
            assert replicas[name] == seen.operators[name].replicas


@pytest.mark.parametrize("spec", PEERS)
@given(run=runs())
@settings(max_examples=20)
def test_in_guards_never_above_the_pool(spec, run):
    policy = guarded(make(spec))
    for seen in run:
        replicas = policy.plan(seen).replicas
        assert all(1 <= replicas[name] <= one.pool for name, one in seen.operators.items())


@pytest.mark.parametrize("spec", PEERS)
@given(run=runs())
@settings(max_examples=20)
def test_the_same_run_gives_the_same_plans(spec, run):
    one, two = make(spec), make(spec)
    assert [one.plan(seen) for seen in run] == [two.plan(seen) for seen in run]
