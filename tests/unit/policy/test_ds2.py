from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.forecast.base import Forecast
from penstock.policy.ds2 import Ds2
from penstock.testing.loads import load, snapshot


def two_operators(source, first, second, busy=1.0):
    """A chain of two with true rates per second, `first` as (processed, out), and how busy they were."""
    (processed, out), done = first, second
    loads = [
        load("op1", {"in": source}, round(processed * busy), busy_share={0: busy}),
        load("op2", {"op1": round(out * busy)}, round(done * busy), busy_share={0: busy}),
    ]
    return snapshot({"in": source}, loads)


@pytest.mark.parametrize(
    ("source", "first", "second", "replicas"),
    [(100, (50, 400), 100, (2, 8)), (200, (40, 700), 99, (5, 36)), (200, (10, 700), 201, (20, 70))],
)
def test_the_papers_examples(source, first, second, replicas):
    assert tuple(Ds2().plan(two_operators(source, first, second)).replicas.values()) == replicas


def test_time_without_work_does_not_count():
    """The first example again: each replica is busy for half of the time only, and does as much while it is."""
    assert Ds2().plan(two_operators(100, (50, 400), 100, busy=0.5)).replicas == {"op1": 2, "op2": 8}


def test_the_true_rate_is_that_of_one_replica():
    loads = [load("a", {"in": 90}, replicas=3, busy_share={0: 0.9, 1: 0.9, 2: 0.9})]
    plan = Ds2().plan(snapshot({"in": 90}, loads))
    assert plan.replicas == {"a": 3}  # 90 events in 2.7 s of busy time: 33.3 per second and replica
    assert plan.targets["a"].reason == (
        "90 events per second to process, 33.33 by a replica that is always busy: 2.7 replicas"
    )


def test_targets_add_up_where_streams_meet():
    loads = [
        load("a", {"x": 60}, busy_share={0: 0.5}),
        load("b", {"y": 40}, busy_share={0: 0.5}),
        load("both", {"a": 30, "b": 40, "x": 60}, 65, busy_share={0: 1.0}),
    ]
    plan = Ds2().plan(snapshot({"x": 60, "y": 40}, loads))
    assert plan.targets["both"].expected == pytest.approx(60 * 0.5 + 40 + 60)
    assert plan.replicas["both"] == 2


def test_a_diamond():
    loads = [
        load("o1", {"in": 100}, busy_share={0: 1.0}),
        load("o2", {"o1": 70}, busy_share={0: 1.0}),
        load("o3", {"o1": 30}, busy_share={0: 1.0}),
        load("o4", {"o2": 28, "o3": 30}, 29, busy_share={0: 1.0}),
    ]
    assert Ds2().plan(snapshot({"in": 200}, loads)).replicas == {"o1": 2, "o2": 2, "o3": 2, "o4": 4}


def test_the_backlog_does_not_count():
    loads = [load("a", {"in": 10}, backlog=10_000, busy_share={0: 1.0})]
    assert Ds2().plan(snapshot({"in": 10}, loads)).replicas == {"a": 1}


def test_before_it_was_busy_an_operator_keeps_its_replicas_and_passes_the_target_on():
    loads = [
        load("a", {"in": 100}, 0, replicas=3, busy_share={0: 0.0}),
        load("b", {"a": 0}, 20, declared_shares={"a": 4.0}, busy_share={0: 0.2}),
    ]
    plan = Ds2().plan(snapshot({"in": 100}, loads))
    assert plan.replicas == {"a": 3, "b": 4}
    assert plan.targets["a"].reason == "100 events per second to process, no busy time measured yet: keeps 3"


def test_the_last_true_rate_counts_while_nothing_is_processed():
    policy = Ds2()
    policy.plan(snapshot({"in": 10}, [load("a", {"in": 10}, busy_share={0: 0.5})]))
    stuck = [load("a", {"in": 100}, 0, busy_share={0: 0.0})]
    assert policy.plan(snapshot({"in": 100}, stuck)).replicas == {"a": 5}


def test_rates_are_per_second():
    loads = [load("a", {"in": 300}, busy_share={0: 0.5, 1: 0.5}, replicas=2)]
    plan = Ds2().plan(snapshot({"in": 600}, loads, interval_s=30.0, td_s=60.0))
    assert plan.replicas == {"a": 2}  # 20 per second, 300 events in 30 s of busy time
    assert plan.targets["a"].expected == pytest.approx(1200)


def test_a_forecast_takes_the_place_of_the_last_value_only_when_asked_for():
    seen = snapshot({"in": 100}, [load("a", {"in": 100}, 50, busy_share={0: 1.0})])
    forecast = Forecast("given", {"in": (200.0,)})
    assert Ds2().plan(seen, forecast).replicas == {"a": 2}
    assert Ds2(use_forecast=True).plan(seen, forecast).replicas == {"a": 4}
    plan = Ds2(use_forecast=True).plan(seen, None)
    assert plan.replicas == {"a": 2}
    assert plan.notes == ("no forecast for source 'in' yet: takes its last value",)


def test_bad_numbers_neither_count_nor_are_learnt():
    policy = Ds2()
    policy.plan(two_operators(100, (50, 400), 100))
    bad = snapshot(
        {"in": 100}, [load("op1", {"in": 1}, 9, replicas=6, busy_share={0: 1.0})], incomplete={"op1": "stale"}
    )
    assert policy.plan(bad).targets["op1"].reason == "keeps 6: numbers are not to be trusted (stale)"
    idle = [load("op1", {"in": 0}, 0, busy_share={0: 0.0})]
    assert policy.plan(snapshot({"in": 100}, idle)).replicas == {"op1": 2}


def test_no_input_leaves_one_replica():
    seen = snapshot({"in": 10}, [load("a", {"in": 10}, busy_share={0: 0.5})])
    policy = Ds2()
    policy.plan(seen)
    assert policy.plan(snapshot({"in": 0}, [load("a", {"in": 0}, replicas=5)])).replicas == {"a": 1}


def test_an_option_must_be_true_or_false():
    with pytest.raises(InputError, match="policy 'ds2': use_forecast must be true or false; got 'yes'"):
        Ds2(use_forecast="yes")


rates = st.integers(1, 1000)


@given(rates, rates, rates, st.integers(0, 1000))
def test_replicas_suffice_for_the_target_and_one_fewer_would_not(source, processed, done, out):
    plan = Ds2().plan(two_operators(source, (processed, out), done))
    for name, true_rate, target in (("op1", processed, source), ("op2", done, source * out / processed)):
        replicas = plan.replicas[name]
        assert replicas * true_rate >= target * (1 - 1e-8)
        assert replicas == 1 or (replicas - 1) * true_rate < target
