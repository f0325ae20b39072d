"""What the planning policies keep to on any run, whatever the forecaster says."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.forecast.base import Forecast
from penstock.policy.registry import make_policy
from penstock.testing.loads import load, snapshot

SPECS = ["srea", "spea:5", "cba:5", "cba:3,predict=sources,catch_up=2", "optimal:5", "optimal:4,delay=1,lateness=9000"]
NAMES = ("in", "a", "b")

counts = st.integers(0, 10_000)
rates = st.one_of(st.floats(0, 1e6), st.sampled_from([math.nan, math.inf, -1.0, 1e300]))
forecasts = st.one_of(
    st.none(),
    st.dictionaries(st.sampled_from(NAMES), st.lists(rates, max_size=6).map(tuple)).map(lambda r: Forecast("any", r)),
)


@st.composite
def loads(draw):
    pool = draw(st.integers(1, 16))
    return {
        "pool": pool,
        "replicas": draw(st.integers(0, pool)),
        "backlog": draw(counts),
        "execution_time_s": draw(st.one_of(st.none(), st.floats(0, 2.0), st.just(math.nan))),
    }


@st.composite
def snapshots(draw):
    chain = [load("a", {"in": draw(counts)}, **draw(loads())), load("b", {"a": draw(counts)}, **draw(loads()))]
    bad = draw(st.lists(st.sampled_from(NAMES), max_size=1))
    lengths = {name: draw(st.sampled_from([0.0, 1.0, 30.0])) for name in ("interval_s", "td_s")}
    return snapshot({"in": draw(counts)}, chain, incomplete=dict.fromkeys(bad, "stale"), **lengths)


@pytest.mark.parametrize("spec", SPECS)
@given(run=st.lists(st.tuples(snapshots(), forecasts), min_size=1, max_size=3))
@settings(max_examples=40)
def test_a_target_within_the_pool_that_is_the_first_step_of_the_timetable(spec, run):
    policy = make_policy(spec)
    for seen, forecast in run:
        plan = policy.plan(seen, forecast)
        assert plan.targets.keys() == seen.operators.keys()
        for name, target in plan.targets.items():
            assert 1 <= target.replicas <= seen.operators[name].pool
            assert target.reason
            assert target.expected is None or 0 <= target.expected < math.inf
            timetable = plan.timetables.get(name, (target.replicas,) * getattr(policy, "horizon", 1))
            assert timetable[0] == target.replicas
            assert len(timetable) == getattr(policy, "horizon", 1)
            assert all(isinstance(count, int) and 1 <= count <= seen.operators[name].pool for count in timetable)


@pytest.mark.parametrize("spec", SPECS)
@given(seen=snapshots(), forecast=forecasts)
@settings(max_examples=20)
def test_operators_with_bad_numbers_keep_what_they_have(spec, seen, forecast):
    plan = make_policy(spec).plan(seen, forecast)
    for name in seen.incomplete.keys() & seen.operators.keys():
        assert plan.replicas[name] == max(1, seen.operators[name].replicas)
        assert name not in plan.timetables


def test_numba_is_loaded_only_for_a_policy_that_plans_with_it():
    """It takes longer to load than all of the command line."""
    command = "import sys, penstock.policy.registry; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("spec", "kernel"), [("cba", "improve"), ("optimal", "cheapest"), ("optimal:lateness=9000", "cheapest_owing")]
)
def test_a_policy_is_ready_for_its_first_plan_once_it_is_made(spec, kernel):
    """`ctl shadow RUN cba:12` kept the loop of a run for six seconds, at the first plan, and intervals were missed."""
    command = f"from penstock.policy.registry import make_policy; make_policy({spec!r}); "
    command += f"import penstock.policy.planning.kernels as kernels; print(len(kernels.{kernel}.signatures))"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
