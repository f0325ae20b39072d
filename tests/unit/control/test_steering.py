"""Steering: orders change what the loop does from the next plan on, and nothing else."""

from __future__ import annotations

import math
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.analyze import Analyzer
from penstock.control.loop import Loop, Parts
from penstock.control.monitor import Monitor
from penstock.control.orders import (
    Freeze,
    Hold,
    Limit,
    Release,
    SetTd,
    Stop,
    Unfreeze,
    UseForecaster,
    UsePolicy,
)
from penstock.control.steering import Helm, Planning, Steered, Steering, after_all
from penstock.errors import InputError
from penstock.forecast.last_value import LastValue
from penstock.forecast.moving_average import MovingAverage
from penstock.metrics.interval import IntervalRules
from penstock.policy.guards import Bounded, tempered
from penstock.policy.psps import Psps
from penstock.policy.registry import make_policy
from penstock.policy.static import Static
from penstock.testing.clock import ManualClock
from penstock.testing.loads import load, snapshot
from penstock.testing.plant import FakeOperator, FakePlant

FORECASTERS = {"last": LastValue, "mean": lambda: MovingAverage(4)}


class Steerage:
    """A loop around two operators of 10 and 20 ms, steered by a helm."""

    def __init__(self, policy="psps", slots=None, td_s=2.0):
        self.clock = ManualClock(start_s=100.0)
        self.plant = FakePlant(
            [FakeOperator("a", {"in": 1.0}, 0.01, pool=16), FakeOperator("b", {"a": 1.0}, 0.02, pool=16)], self.clock
        )
        self.policy, self.td_s = policy, td_s
        self.helm = Helm({"a": 16, "b": 16}, self.make)
        planning = self.helm.planning
        monitor = Monitor(self.plant, planning.rules)
        self.loop = Loop(
            Parts(
                monitor,
                Bounded(self.helm.guard, slots=slots),
                self.plant,
                planning.analyzer,
                steer=self.helm.take,
            ),
            self.clock,
        )
        self.loop.step(self.clock.now())

    def make(self, steering, now):
        td_s = steering.td_s or self.td_s
        name = steering.forecaster or "last"
        if name not in FORECASTERS:
            raise InputError(f"forecaster: no such name {name!r}")
        if now is not None and now.steering.policy == steering.policy:
            policy = now.policy
        else:
            policy = tempered(make_policy(steering.policy or self.policy))
        analyzer = Analyzer(name, lambda _: FORECASTERS[name](), step_s=max(td_s, 1.0))
        return Planning(steering, policy, analyzer, IntervalRules(td_s, self.plant.declared()))

    def steps(self, count=1, rate=None):
        if rate is not None:
            self.plant.rates["in"] = rate
        done = []
        for _ in range(count):
            self.clock.advance(self.loop.td_s)
            done.append(self.loop.step(self.clock.now()))
        return done

    def order(self, order):
        """Give it, and take one step."""
        self.helm.give(order)
        return self.steps()[0]


def reason(step, operator="a"):
    return next(one.reason for one in step.decisions if one.operator == operator)


def test_a_frozen_run_stays_as_it_is_until_it_is_unfrozen():
    rig = Steerage()
    rig.steps(3, rate=100.0)
    before = rig.plant.active
    step = rig.order(Freeze())
    assert step.plan.notes == ("frozen by hand",)
    for step in rig.steps(4, rate=600.0):
        assert rig.plant.active == before
        assert "; frozen; wanted" in reason(step)
    rig.order(Unfreeze())
    rig.steps(3)
    assert rig.plant.active["a"] >= 6


def test_by_hand_goes_before_freeze_and_limits():
    rig = Steerage()
    rig.steps(2, rate=100.0)
    rig.order(Freeze())
    rig.order(Limit("a", most=2))
    step = rig.order(Hold("a", 7))
    assert rig.plant.active["a"] == 7
    assert reason(step) == "set by hand"
    rig.order(Release("a"))
    assert rig.plant.active["a"] == 7, "released while frozen, it stays as it is"
    rig.order(Unfreeze())
    assert rig.plant.active["a"] <= 2


def test_least_and_most_bound_the_policy():
    rig = Steerage()
    rig.steps(2, rate=100.0)
    step = rig.order(Limit("a", least=5))
    assert rig.plant.active["a"] == 5
    assert reason(step).endswith("; at least 5 by order")
    rig.order(Limit("a", most=3))
    rig.steps(3, rate=900.0)
    assert rig.plant.active["a"] == 3
    rig.order(Limit("a"))
    rig.steps(2)
    assert rig.plant.active["a"] > 3


def test_hard_limits_stay_outermost():
    rig = Steerage(slots=8)
    rig.steps(2, rate=10.0)
    rig.helm.give(Hold("a", 16))
    (step,) = rig.steps()
    assert sum(rig.plant.active.values()) <= 8
    assert "8 slots are shared by need" in reason(step)


def test_another_policy_plans_from_the_next_step_on():
    rig = Steerage()
    rig.steps(2, rate=100.0)
    rig.order(UsePolicy("static:3"))
    assert rig.plant.active == {"a": 3, "b": 3}
    rig.order(UsePolicy("psps"))
    rig.steps(2)
    assert rig.plant.active == {"a": 1, "b": 2}


def test_a_policy_that_stays_keeps_what_it_remembers():
    rig = Steerage()
    before = rig.helm.guard.policy
    rig.order(SetTd(1.0))
    rig.order(Hold("a", 2))
    assert rig.helm.guard.policy is before


def test_another_td_begins_with_the_interval_after_the_order():
    """The interval in which the order came was of the old length: it is no clock that jumped."""
    rig = Steerage(td_s=8.0)
    rig.steps(2, rate=100.0)
    rig.helm.give(SetTd(1.0))
    rig.clock.advance(6.0)
    step = rig.loop.step(rig.clock.now(), woken=True)
    assert step.snapshot.incomplete == {}
    assert (step.snapshot.interval_s, step.snapshot.td_s, rig.loop.td_s) == (6.0, 1.0, 1.0)
    numbers = [one.number for one in rig.steps(3)]
    assert numbers == [step.number + n for n in (1, 2, 3)], "no interval was missed"
    assert rig.loop.state.last.snapshot.incomplete == {}


def test_another_forecaster_knows_what_the_last_one_saw():
    rig = Steerage()
    for rate in (10.0, 20.0, 30.0, 40.0):
        rig.steps(rate=rate)
    step = rig.order(UseForecaster("mean"))
    assert step.forecast.forecaster == "mean"
    assert step.forecast.rates["in"] == ((20.0 + 30.0 + 40.0 + 40.0) / 4,)


def test_a_forecaster_begins_anew_where_its_steps_are_of_another_length():
    rig = Steerage()
    for rate in (10.0, 20.0, 30.0, 40.0):
        rig.steps(rate=rate)
    rig.helm.give(SetTd(5.0))
    assert rig.order(UseForecaster("mean")).forecast.rates["in"] == (40.0,)


@pytest.mark.parametrize(
    ("order", "told"),
    [
        (Hold("c", 2), "order, operator: no such name 'c'; known: a, b"),
        (Hold("a", 17), "order: operator 'a' has a pool of 16; got 17 replicas"),
        (Limit("b", most=99), "order: operator 'b' has a pool of 16; got 99 replicas"),
        (SetTd(0.1), "interval: td must be at least 0.2 s; got 0.1 s"),
        (UsePolicy("hope"), "policy: no such name 'hope'"),
        (UseForecaster("omen"), "forecaster: no such name 'omen'"),
    ],
)
def test_what_cannot_be_carried_out_is_refused_at_once_and_changes_nothing(order, told):
    rig = Steerage()
    rig.steps(2, rate=100.0)
    with pytest.raises(InputError) as caught:
        rig.helm.give(order)
    assert told in str(caught.value)
    assert rig.helm.steering == Steering()
    before = rig.plant.active
    rig.steps(1)
    assert rig.plant.active == before


def test_orders_of_many_threads_are_all_carried_out():
    rig = Steerage()
    threads = [threading.Thread(target=rig.helm.give, args=(Limit("a", most=n),)) for n in range(1, 16)]
    threads += [threading.Thread(target=rig.helm.give, args=(Hold("b", 5),)), threading.Thread(target=rig.steps)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    rig.steps(1)
    assert rig.plant.active["b"] == 5
    assert rig.helm.planning.steering == rig.helm.steering


def test_a_person_is_obeyed_on_numbers_that_are_not_to_be_trusted():
    guard = Steered(Static(4), after_all([Hold("a", 1)]))
    seen = snapshot({"in": 1}, [load("a", {"in": 1}, replicas=4)], incomplete={"a": "stale"})
    assert guard.plan(seen).replicas == {"a": 1}


def test_an_order_that_cannot_be_taken_over_leaves_the_loop_at_work():
    rig = Steerage()
    rig.steps(2, rate=100.0)
    rig.loop._parts = replace(rig.loop._parts, steer=lambda _: 1 / 0)
    (step,) = rig.steps(1)
    assert "ZeroDivisionError" in step.failures["steer"]
    assert step.plan is not None


counts = st.integers(1, 16)
steered = st.one_of(
    st.builds(Hold, st.sampled_from("ab"), counts),
    st.builds(Release, st.sampled_from("ab")),
    st.builds(lambda name, pair: Limit(name, *sorted(pair)), st.sampled_from("ab"), st.tuples(counts, counts)),
    st.builds(Limit, st.sampled_from("ab")),
    st.sampled_from([Freeze(), Unfreeze(), UsePolicy("static:9"), SetTd(3.0), Stop()]),
)


@given(st.lists(steered), st.integers(1, 16), st.integers(1, 16))
def test_any_orders_are_kept_to_in_their_order_of_rank(orders, wanted, active):
    steering = after_all(orders)
    seen = snapshot({"in": 9}, [load(name, {"in": 9}, replicas=active, pool=16) for name in "ab"])
    got = Steered(Static(wanted), steering).plan(seen).replicas
    for name in "ab":
        least, most = steering.limits.get(name, (None, None))
        if name in steering.by_hand:
            assert got[name] == steering.by_hand[name]
        elif steering.frozen:
            assert got[name] == active
        else:
            assert got[name] == max(least or 1, min(most or math.inf, wanted))
    assert len(steering.told) >= len(steering.by_hand) + len(steering.limits) + steering.frozen


def test_a_policy_of_ones_own_without_orders_is_left_alone():
    plan = Psps().plan(seen := snapshot({"in": 9}, [load("a", {"in": 9})]))
    assert Steered(Psps()).plan(seen) == plan
