from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.policy.autoscale_plus import AutoscalePlus
from penstock.policy.guards import guarded
from penstock.testing.loads import load, snapshot


def seen(count, *, replicas=2, time_s=0.1, backlog=0, **more):
    one = load("a", {"in": count}, backlog=backlog, execution_time_s=time_s, replicas=replicas)
    return snapshot({"in": count}, [one], **more)


def last_plan(policy, snapshots):
    for one in snapshots:
        plan = policy.plan(one)
    return plan


def test_from_measurements_to_replicas_by_hand():
    """Next are 40 + 50 + 60 and 12 wait: 162 events of 0.1 s in 3 s, idealK 5.4 > 2; 5.4 / (1 · 0.3) = 18."""
    plan = last_plan(AutoscalePlus(iteration=3), [seen(10), seen(20), seen(30, backlog=12)])
    assert plan.replicas == {"a": 18}
    assert plan.targets["a"].expected == pytest.approx(54)
    assert plan.targets["a"].reason == (
        "expects in 3 s 162 events (150 by its linear trend; 12 backlog) of 100 ms each: "
        "5.4 replicas, above 2: scales out to 18 that count on 0.3 of a core each"
    )


def test_the_same_without_the_papers_margin():
    plan = last_plan(AutoscalePlus(iteration=3, cpu_weight=1), [seen(10), seen(20), seen(30, backlog=12)])
    assert plan.replicas == {"a": 6}


def test_half_a_core_reserved():
    """Two on a core, each busy 0: UtilCPU = 0.5 · 0.5 + 1 / 2 = 0.75; 5.4 / 0.75 = 7.2 > 2; 5.4 / 0.25 = 21.6."""
    policy = AutoscalePlus(iteration=3, cpu_weight=0.5, reserved=0.5, per_core=2)
    plan = last_plan(policy, [seen(10), seen(20), seen(30, backlog=12)])
    assert plan.replicas == {"a": 22}
    assert "7.2 replicas, above 2" in plan.targets["a"].reason


def test_a_fall_scales_in_below_the_working_interval_only():
    """30, 20, 10 go on as 0: nothing to do but 24 that wait, 0.8 replicas. 0.8 / 0.3 = 2.67 of 10."""
    falling = [seen(30, replicas=10), seen(20, replicas=10), seen(10, replicas=10, backlog=24)]
    assert last_plan(AutoscalePlus(iteration=3), falling).replicas == {"a": 3}
    assert last_plan(AutoscalePlus(iteration=3, scale_in_below=0.05), falling).replicas == {"a": 10}


def test_within_the_working_interval_it_stays():
    """3 · 27 · 0.1 / 3 = 2.7, within 2.4 and 3."""
    plan = last_plan(AutoscalePlus(iteration=3), [seen(27, replicas=3)] * 3)
    assert plan.replicas == {"a": 3}
    assert plan.targets["a"].reason.endswith("2.7 replicas, within 2.4 to 3: stays")


def test_a_queue_counts():
    """No input, 600 wait: 600 · 0.1 / 3 = 20 replicas, though the processor is idle by its trend."""
    plan = last_plan(AutoscalePlus(iteration=3, cpu_weight=1), [seen(0, backlog=600)] * 3)
    assert plan.replicas == {"a": 20}


def test_children_are_sized_in_the_same_step_as_their_parents():
    """b gets what a is behind with: a has 3 · 10 + 90 = 120 events, and b 120, although it received 10 an interval."""
    loads = [
        load("a", {"in": 10}, backlog=90, execution_time_s=0.1, replicas=1),
        load("b", {"a": 10}, execution_time_s=0.1, replicas=1),
    ]
    careful, thrifty = (AutoscalePlus(iteration=3, cpu_weight=1, combine=how) for how in ("max", "min"))
    steps = [snapshot({"in": 10}, loads)] * 3
    assert last_plan(careful, steps).replicas == {"a": 4, "b": 4}
    assert last_plan(thrifty, steps).replicas == {"a": 4, "b": 1}


def test_before_the_first_iteration_is_full_it_keeps():
    policy = AutoscalePlus(iteration=3)
    reasons = [policy.plan(seen(100)).targets["a"] for _ in range(3)]
    assert [one.replicas for one in reasons[:2]] == [2, 2]
    assert reasons[1].reason == "keeps 2: has 2 of the 3 measurements of an iteration"
    assert reasons[2].replicas > 2


def test_then_it_decides_every_interval():
    """The window slides on: 27, 27 and 270 after 27, 27 and 27."""
    policy = AutoscalePlus(iteration=3)
    last_plan(policy, [seen(27, replicas=3)] * 3)
    assert policy.plan(seen(270, replicas=3)).replicas["a"] > 3


def test_nothing_is_measured_while_a_change_settles():
    """Two intervals after the change are no part of the next decision: 10, 20 and, at the sixth, 60 lie on 10·x."""
    policy = AutoscalePlus(iteration=3, settle=2, cpu_weight=1)
    last_plan(policy, [seen(999), seen(10), seen(20)])
    for count, replicas in ((5000, 9), (7000, 9)):
        kept = policy.plan(seen(count, replicas=replicas)).targets["a"]
        assert (kept.replicas, kept.reason) == (9, "keeps 9: a change of replicas settles")
    assert policy.plan(seen(50, replicas=9)).targets["a"].expected == pytest.approx((60 + 70 + 80) / 3)


def test_a_change_of_one_operator_pauses_all():
    def both(replicas):
        loads = [load("a", {"in": 9}, replicas=replicas, execution_time_s=0.1), load("b", {"in": 9}, replicas=3)]
        return snapshot({"in": 9}, loads)

    policy = AutoscalePlus(iteration=2)
    policy.plan(both(1))
    assert "settles" in policy.plan(both(2)).targets["b"].reason
    assert "settles" not in policy.plan(both(2)).targets["b"].reason


def test_without_settling_every_interval_is_measured():
    policy = AutoscalePlus(iteration=2, settle=0)
    policy.plan(seen(10, replicas=1))
    assert "expects" in policy.plan(seen(10, replicas=2)).targets["a"].reason


def test_an_unknown_execution_time_keeps_the_replicas_and_says_so():
    plan = last_plan(AutoscalePlus(iteration=2), [seen(100, time_s=None)] * 2)
    assert plan.replicas == {"a": 2}
    assert "unknown execution time: keeps 2 until one is measured" in plan.targets["a"].reason


def test_incomplete_operators_keep_and_are_not_learnt_from():
    policy = AutoscalePlus(iteration=3, cpu_weight=1)
    last_plan(policy, [seen(10), seen(20), seen(30)])
    kept = policy.plan(seen(100_000, incomplete={"a": "stale"})).targets["a"]
    assert (kept.replicas, kept.reason) == (2, "keeps 2: numbers are not to be trusted (stale)")
    assert policy.plan(seen(50)).targets["a"].expected == pytest.approx((60 + 70 + 80) / 3)


def test_an_interval_without_length_is_not_measured():
    policy = AutoscalePlus(iteration=2)
    last_plan(policy, [seen(10)] * 2)
    for length in ({"interval_s": 0.0}, {"td_s": 0.0}):
        assert policy.plan(seen(10, **length)).targets["a"].reason == "keeps 2: an interval without length"


def test_no_input_leaves_one_replica():
    assert last_plan(AutoscalePlus(iteration=2), [seen(0)] * 2).replicas == {"a": 1}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"iteration": 1}, "iteration must be whole and at least 2; got 1"),
        ({"iteration": 2.5}, "iteration must be whole and at least 2; got 2.5"),
        ({"combine": "mean"}, "combine must be one of max, min; got 'mean'"),
        ({"combine": 3}, "combine must be one of max, min; got 3"),
        ({"cpu_weight": 0}, "cpu_weight must be above 0 and at most 1; got 0"),
        ({"cpu_weight": float("nan")}, "cpu_weight must be above 0 and at most 1; got nan"),
        ({"scale_in_below": 1.1}, "scale_in_below must be above 0 and at most 1; got 1.1"),
        ({"reserved": "half"}, "reserved must be above 0 and at most 1; got 'half'"),
        ({"per_core": 0}, "per_core must be whole and at least 1; got 0"),
        ({"settle": -1}, "settle must be whole and at least 0; got -1"),
    ],
)
def test_options_are_checked(options, told):
    with pytest.raises(InputError, match=f"policy 'autoscale_plus': {told}"):
        AutoscalePlus(**options)


counts = st.integers(0, 100_000)


@st.composite
def runs(draw):
    """Up to 10 intervals of one random DAG, in which replicas may change."""
    senders = []
    for number in range(draw(st.integers(1, 5))):
        known = ["s0", "s1", *(f"o{n}" for n in range(number))]
        senders.append(draw(st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True)))
    snapshots = []
    for _ in range(draw(st.integers(1, 10))):
        loads = [
            load(
                f"o{number}",
                {sender: draw(counts) for sender in feeding},
                draw(counts),
                backlog=draw(counts),
                replicas=draw(st.sampled_from([2, 2, 2, 3])),
                execution_time_s=draw(st.one_of(st.none(), st.floats(1e-6, 2.0))),
                busy_share={0: draw(st.floats(0, 1))},
            )
            for number, feeding in enumerate(senders)
        ]
        bad = draw(st.lists(st.sampled_from(["s0", "o0", "o1"]), max_size=1))
        given_ = {"s0": draw(counts), "s1": draw(counts)}
        snapshots.append(snapshot(given_, loads, td_s=draw(st.floats(1, 60)), incomplete=dict.fromkeys(bad, "stale")))
    return snapshots


@given(runs(), st.sampled_from(["max", "min"]), st.integers(2, 4), st.integers(0, 2), st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_whatever_comes_there_is_a_plan_with_reasons(run, combine, iteration, settle, per_core):
    policy = AutoscalePlus(combine=combine, iteration=iteration, settle=settle, per_core=per_core)
    for one in run:
        plan = policy.plan(one)
        assert plan.targets.keys() == one.operators.keys()
        for name, target in plan.targets.items():
            assert target.replicas >= 1
            assert target.reason
            if name in one.incomplete:
                assert target.replicas == one.operators[name].replicas
    bounded = guarded(AutoscalePlus(combine=combine, iteration=iteration, settle=settle), slots=10)
    assert all(sum(bounded.plan(one).replicas.values()) <= 10 for one in run if not one.incomplete)


@given(runs(), counts)
@settings(max_examples=60, deadline=None)
def test_more_backlog_never_means_fewer_replicas(run, more):
    policy = AutoscalePlus(iteration=2, settle=0)
    for one in run[:-1]:
        policy.plan(one)
    copy = pickle.loads(pickle.dumps(policy))
    last = run[-1]
    loads = {name: replace(one, backlog=one.backlog + more) for name, one in last.operators.items()}
    less, plenty = policy.plan(last).replicas, copy.plan(replace(last, operators=loads)).replicas
    assert all(plenty[name] >= less[name] for name in less)


def changing(count):
    for number in range(count):
        entered = 50 + (number * 37) % 100
        loads = [
            load("a", {"in": entered}, backlog=number % 7, execution_time_s=0.01, replicas=2),
            load("b", {"a": entered // 2}, execution_time_s=0.02, replicas=2 + (number % 30 == 0)),
        ]
        yield snapshot({"in": entered}, loads, incomplete={"b": "stale"} if number % 5 == 4 else {})


def test_memory_is_one_iteration_per_operator():
    policy = AutoscalePlus()
    sizes = []
    for one in changing(400):
        policy.plan(one)
        sizes.append(len(pickle.dumps(policy)))
    assert max(sizes) - max(sizes[:100]) < 64  # numbers of another length, no more of them


def test_goes_on_the_same_after_pickling():
    policy = AutoscalePlus()
    (*start, last) = changing(41)
    last_plan(policy, start)
    copy = pickle.loads(pickle.dumps(policy))
    assert copy.plan(last) == policy.plan(last)
    assert repr(copy) == repr(policy)
