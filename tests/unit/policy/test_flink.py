from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.policy.flink import SETTINGS, Flink, FlinkSettings, make_flink, scaled
from penstock.policy.registry import policy_for
from penstock.simulator import Scenario
from penstock.simulator.prepare import prepare
from penstock.testing.loads import load, snapshot
from penstock.workload import constant

AT_ONCE = {"catch_up_s": 0, "restart_s": 0, "stabilisation_s": 0, "down_interval_s": 0}


def one_operator(replicas, rate, true_rate, time_s=60.0, **more):
    """A minute in which `rate` events per second came and were done by replicas that can do `true_rate` together."""
    length_s = more.pop("interval_s", 60.0)
    count = round(rate * length_s)
    busy_share = dict.fromkeys(range(replicas), rate / true_rate)
    loads = [load("a", {"in": count}, replicas=replicas, busy_share=busy_share, **more)]
    return snapshot({"in": count}, loads, time_s=time_s, interval_s=length_s, td_s=length_s)


def told(policy, seen):
    target = policy.plan(seen).targets["a"]
    return target.replicas, target.reason


GOLDEN = [(1.0, (10, 50, 100), 5), (0.8, (10, 60, 100), 8), (0.5, (2, 100, 40), 10)]


@pytest.mark.parametrize(("utilisation", "given", "wanted"), GOLDEN)
def test_the_examples_of_flinks_own_tests(utilisation, given, wanted):
    replicas, target, true_rate = given
    capacity = FlinkSettings(catch_up_s=0).capacity(target, backlog=0, utilisation=utilisation)
    assert scaled(replicas, capacity, true_rate) == wanted


@pytest.mark.parametrize(("utilisation", "given", "wanted"), GOLDEN)
def test_the_same_examples_as_snapshots(utilisation, given, wanted):
    """Bounds so narrow that it always acts. In the last one a backlog builds up: 40 are done, 60 more wait."""
    settings = FlinkSettings(target_utilisation=utilisation, u_max=utilisation, u_min=utilisation, **AT_ONCE)
    replicas, target, true_rate = given
    policy, done = Flink(settings), min(target, true_rate)
    before = one_operator(replicas, done, true_rate, time_s=0.0, interval_s=1.0)
    policy.plan(before)
    seen = one_operator(replicas, done, true_rate, time_s=1.0, interval_s=1.0, backlog=target - done)
    assert policy.plan(seen).replicas == {"a": wanted}


def test_capacity_for_backlog_and_restart():
    """1200 events in 2 minutes are 10 a second; a restart of 30 s leaves 70 · 30 = 2100, 17.5 a second."""
    settings = make_flink("short", restart_s=30).settings
    assert settings.capacity(target=70, backlog=1200, utilisation=0.7) == pytest.approx(10 + 17.5 + 100)
    assert settings.capacity(target=70, backlog=1200, utilisation=0.7, restart=False) == pytest.approx(10 + 100)
    assert SETTINGS["short"].capacity(target=70, backlog=1200, utilisation=0.7) == pytest.approx(10 + 100)
    assert FlinkSettings(catch_up_s=0).capacity(target=70, backlog=1200, utilisation=0.7) == pytest.approx(100)


def test_a_scale_in_takes_at_most_60_percent():
    policy = Flink(FlinkSettings(**AT_ONCE))
    assert policy.plan(one_operator(10, 1, 100)).replicas == {"a": 4}


def test_within_the_bounds_nothing_is_done():
    policy = Flink(FlinkSettings(**AT_ONCE))
    for rate in (40, 100):  # a utilisation of 0.4 and of 1.0: just inside
        replicas, reason = told(Flink(FlinkSettings(**AT_ONCE)), one_operator(10, rate, 100))
        assert replicas == 10
        assert reason.endswith("no operator that would change is outside a utilisation of 0.4 to 1")
    assert policy.plan(one_operator(10, 39, 100)).replicas == {"a": 6}
    assert Flink(FlinkSettings(**AT_ONCE)).plan(one_operator(10, 70, 100)).replicas == {"a": 10}


def test_once_one_is_outside_all_are_sized():
    """b runs at 0.9: inside. Only when a is outside too does b get what 0.7 asks for."""
    loads = [
        load("a", {"in": 90}, replicas=2, busy_share={0: 0.45, 1: 0.45}),
        load("b", {"a": 90}, replicas=2, busy_share={0: 0.9, 1: 0.9}),
    ]
    assert Flink(FlinkSettings(**AT_ONCE)).plan(snapshot({"in": 90}, loads)).replicas == {"a": 2, "b": 2}
    loads[0] = load("a", {"in": 90}, replicas=2, busy_share={0: 0.15, 1: 0.15})
    assert Flink(FlinkSettings(**AT_ONCE)).plan(snapshot({"in": 90}, loads)).replicas == {"a": 1, "b": 3}


def test_a_scale_in_that_waits_makes_nobody_else_move():
    """a is outside but its scale-in waits; b alone would change, and b is inside."""
    loads = [
        load("a", {"in": 90}, replicas=2, busy_share={0: 0.15, 1: 0.15}),
        load("b", {"a": 90}, replicas=2, busy_share={0: 0.9, 1: 0.9}),
    ]
    policy = Flink(FlinkSettings(**{**AT_ONCE, "down_interval_s": 60}))
    assert policy.plan(snapshot({"in": 90}, loads)).replicas == {"a": 2, "b": 2}


def test_targets_go_down_the_topology_by_what_came_out():
    """The first example of DS2, at a utilisation of 1."""
    loads = [
        load("o1", {"in": 100}, 50, backlog=50, busy_share={0: 1.0}),
        load("o2", {"o1": 400}, 100, busy_share={0: 1.0}),
    ]
    policy = Flink(FlinkSettings(target_utilisation=1.0, **AT_ONCE))
    policy.plan(snapshot({"in": 0}, [load("o1", {"in": 0}), load("o2", {"o1": 0})], time_s=0.0))
    plan = policy.plan(snapshot({"in": 100}, loads))
    assert plan.replicas == {"o1": 2, "o2": 8}
    assert plan.targets["o2"].expected == pytest.approx(800)


def test_a_diamond_of_two_sources():
    loads = [
        load("a", {"x": 60}, busy_share={0: 1.0}),
        load("b", {"y": 40}, busy_share={0: 1.0}),
        load("both", {"a": 30, "b": 40, "x": 60}, busy_share={0: 1.0}),
    ]
    plan = Flink(FlinkSettings(u_max=0.7, **AT_ONCE)).plan(snapshot({"x": 60, "y": 40}, loads))
    assert plan.targets["both"].expected == pytest.approx(30 + 40 + 60)


def test_the_target_of_an_operator_at_a_source_has_the_growth_of_its_backlog():
    """50 a second are done and the backlog grows from 600 to 2400 in a minute: 80 a second come."""
    policy = Flink(FlinkSettings(**AT_ONCE))
    policy.plan(one_operator(1, 50, 50, time_s=60.0, backlog=600))
    plan = policy.plan(one_operator(1, 50, 50, time_s=120.0, backlog=2400, interval_s=60.0))
    assert plan.targets["a"].expected == pytest.approx((50 + 1800 / 60) * 60)


def test_a_backlog_counts_at_its_operator_and_below():
    loads = [
        load("a", {"in": 100}, backlog=1000, busy_share={0: 1.0}),
        load("b", {"a": 50}, backlog=200, busy_share={0: 0.5}),
    ]
    settings = FlinkSettings(**{**AT_ONCE, "catch_up_s": 100})
    plan = Flink(settings).plan(snapshot({"in": 100}, loads))
    assert plan.targets["b"].reason.startswith(
        "50 events per second to process, 700 backlog: needs capacity for 78.43 "
    )


def test_rates_are_means_over_the_window():
    """Two intervals; the first of all is then only what the backlog grows from."""
    policy = Flink(FlinkSettings(**{**AT_ONCE, "window_s": 120}))
    plans = [policy.plan(one_operator(1, rate, 100, time_s=60.0 * n)) for n, rate in enumerate((30, 60, 90, 90))]
    expected = [plan.targets["a"].expected / 60 for plan in plans]
    assert expected == pytest.approx([30, 60, 75, 90])


def test_the_window_does_not_grow_beyond_its_length():
    policy = Flink(FlinkSettings(stabilisation_s=0, window_s=20, down_interval_s=30))
    sizes = set()
    for number in range(200):
        policy.plan(one_operator(4, 10, 100, time_s=float(number), interval_s=1.0))
        if number >= 50:
            sizes.add(len(pickle.dumps(policy)))
    assert max(sizes) - min(sizes) < 32
    assert len(policy._window) == 20


def test_an_interval_longer_than_the_window_counts_alone():
    policy = Flink(FlinkSettings(**{**AT_ONCE, "window_s": 10}))
    policy.plan(one_operator(1, 10, 100, time_s=60.0))
    assert policy.plan(one_operator(1, 200, 200, time_s=120.0)).targets["a"].expected == pytest.approx(200 * 60)


def test_it_waits_at_the_start_and_after_a_change_that_was_carried_out():
    policy = Flink(FlinkSettings(**{**AT_ONCE, "stabilisation_s": 120}))
    replicas, reason = told(policy, one_operator(2, 200, 100, time_s=60.0))
    assert replicas == 2
    assert reason == "keeps 2: waits until 120 s after the start or the last change, 60 s ago"
    assert policy.plan(one_operator(2, 200, 100, time_s=120.0)).replicas == {"a": 6}
    assert policy.plan(one_operator(6, 200, 100, time_s=180.0)).replicas == {"a": 6}  # changed at 120 s
    assert policy.plan(one_operator(6, 200, 100, time_s=240.0)).replicas == {"a": 18}


def test_a_change_empties_the_window():
    policy = Flink(FlinkSettings(**AT_ONCE))
    policy.plan(one_operator(2, 10, 100, time_s=60.0))
    plan = policy.plan(one_operator(3, 150, 150, time_s=120.0))
    assert plan.targets["a"].expected == pytest.approx(150 * 60)


def test_the_backlog_before_a_change_still_tells_its_growth():
    policy = Flink(FlinkSettings(**AT_ONCE))
    policy.plan(one_operator(1, 100, 100, time_s=60.0, backlog=0))
    plan = policy.plan(one_operator(2, 200, 200, time_s=120.0, backlog=600))
    assert plan.targets["a"].expected == pytest.approx((200 + 10) * 60)


def test_the_backlog_while_it_waits_still_tells_its_growth():
    policy = Flink(FlinkSettings(**{**AT_ONCE, "stabilisation_s": 120}))
    policy.plan(one_operator(1, 50, 100, time_s=60.0))
    plan = policy.plan(one_operator(1, 50, 100, time_s=120.0, backlog=600))
    assert plan.targets["a"].expected == pytest.approx((50 + 10) * 60)


def down(policy, time_s, rate, replicas=10):
    return policy.plan(one_operator(replicas, rate, 100, time_s=time_s)).replicas["a"]


def test_scale_in_waits_for_the_down_interval_and_goes_to_the_largest_wish():
    """At 7 a second and 100 it wants 4 (the least), at 35 it wants 5; the window has one interval."""
    policy = Flink(FlinkSettings(**{**AT_ONCE, "down_interval_s": 180, "window_s": 60}))
    assert [down(policy, time_s, rate) for time_s, rate in ((60, 7), (120, 35), (180, 7))] == [10, 10, 10]
    assert down(policy, 240, 7) == 5
    assert down(policy, 300, 7) == 4  # had it not been carried out: 35 is out of the interval


def test_what_a_scale_in_waits_for_is_said():
    policy = Flink(FlinkSettings(**{**AT_ONCE, "down_interval_s": 180, "window_s": 60}))
    down(policy, 60, 7)
    assert told(policy, one_operator(10, 7, 100, time_s=120.0))[1].endswith("; scale-in waits for 180 s, 60 s so far")
    down(policy, 180, 35)
    reason = told(policy, one_operator(10, 7, 100, time_s=240.0))[1]
    assert reason.endswith("; 5 is the largest wish of the last 180 s")


def test_a_wish_for_as_many_begins_the_down_interval_anew():
    policy = Flink(FlinkSettings(**{**AT_ONCE, "down_interval_s": 120, "window_s": 60}))
    assert [down(policy, time_s, rate) for time_s, rate in ((60, 7), (120, 70), (180, 7), (240, 7))] == [10] * 4
    assert down(policy, 300, 7) == 4


def test_a_change_begins_the_down_interval_anew():
    policy = Flink(FlinkSettings(**{**AT_ONCE, "down_interval_s": 120, "window_s": 60}))
    assert [down(policy, 60, 7), down(policy, 120, 7), down(policy, 180, 7, replicas=9)] == [10, 10, 9]
    assert [down(policy, 240, 7, replicas=9), down(policy, 300, 7, replicas=9)] == [9, 4]


def test_scale_out_does_not_wait_for_the_down_interval():
    assert Flink(FlinkSettings(**{**AT_ONCE, "down_interval_s": 3600})).plan(one_operator(1, 200, 100)).replicas == {
        "a": 3
    }


def test_an_operator_that_was_never_busy_keeps_its_replicas():
    loads = [load("a", {"in": 100}, 0, replicas=3), load("b", {"a": 0}, 0, busy_share={0: 0.0})]
    plan = Flink(FlinkSettings(**AT_ONCE)).plan(snapshot({"in": 100}, loads))
    assert plan.replicas == {"a": 3, "b": 1}
    assert plan.targets["a"].reason.endswith("0 backlog, no busy time measured yet")


def test_silence_scales_in():
    policy = Flink(FlinkSettings(**{**AT_ONCE, "window_s": 60}))
    policy.plan(one_operator(10, 70, 100, time_s=60.0))
    assert policy.plan(one_operator(10, 0, 100, time_s=120.0)).replicas == {"a": 4}


def test_an_incomplete_interval_does_not_count():
    policy = Flink(FlinkSettings(**AT_ONCE))
    loads = [load("a", {"in": 9000}, replicas=2, busy_share={0: 1.0}), load("b", {"a": 90}, busy_share={0: 0.7})]
    bad = snapshot({"in": 90}, loads, time_s=1.0, incomplete={"a": "stale"})
    assert policy.plan(bad).targets["b"].reason == "keeps 1: no complete interval in the last 900 s"
    good = [load("a", {"in": 90}, replicas=2, busy_share={0: 0.7, 1: 0.7}), load("b", {"a": 90}, busy_share={0: 1.8})]
    assert policy.plan(snapshot({"in": 90}, good, time_s=2.0)).replicas == {"a": 2, "b": 3}
    again = policy.plan(snapshot({"in": 90}, loads, time_s=3.0, incomplete={"a": "stale"}))
    assert again.replicas == {"a": 2, "b": 3}
    assert again.targets["a"].reason == "keeps 2: numbers are not to be trusted (stale)"


def test_a_clock_that_goes_back_begins_anew():
    policy = Flink(FlinkSettings(**{**AT_ONCE, "stabilisation_s": 60}))
    policy.plan(one_operator(1, 10, 100, time_s=6000.0))
    assert policy.plan(one_operator(1, 200, 100, time_s=60.0, backlog=9)).replicas == {"a": 1}
    assert policy.plan(one_operator(1, 200, 100, time_s=120.0, backlog=9)).replicas == {"a": 3}


def test_a_backlog_from_before_the_clock_went_back_tells_nothing():
    policy = Flink(FlinkSettings(**AT_ONCE))
    for time_s in (6000.0, 60.0):
        policy.plan(one_operator(1, 10, 100, time_s=time_s))
    plan = policy.plan(one_operator(1, 50, 100, time_s=120.0, backlog=600))
    assert plan.targets["a"].expected == pytest.approx((50 + 10) * 60)


def test_an_interval_without_length_changes_nothing():
    seen = snapshot({"in": 9}, [load("a", {"in": 9}, replicas=2, busy_share={0: 1.0})], interval_s=0.0, td_s=1.0)
    assert Flink(FlinkSettings(**AT_ONCE)).plan(seen).replicas == {"a": 2}


def test_settings_by_name():
    assert make_flink().settings == FlinkSettings()
    short = make_flink("short").settings
    assert (short.window_s, short.stabilisation_s, short.down_interval_s) == (60, 10, 300)
    assert (short.catch_up_s, short.restart_s, short.target_utilisation) == (120, 0, 0.7)
    assert make_flink("short", restart_s=9, u_max=0.9).settings == FlinkSettings(
        window_s=60, stabilisation_s=10, down_interval_s=300, catch_up_s=120, restart_s=9, u_max=0.9
    )


@pytest.mark.parametrize(("actuation", "restart_s"), [("pool", 0.0), ("restart", 20.0), ("restart-lossy", 20.0)])
def test_the_short_settings_bear_a_restart_where_there_is_one(actuation, restart_s):
    prepared = prepare(Scenario("dns", constant(5.0, 5.0)).changed(actuation=actuation, restart_s=20.0))
    short, usual, own = (
        policy_for(spec, workload=prepared.workload) for spec in ("flink:short", "flink", "flink:short,restart_s=7")
    )
    assert (short.settings.restart_s, usual.settings.restart_s, own.settings.restart_s) == (restart_s, 300.0, 7)


def test_no_headroom_for_a_restart_is_asked_for_before_it_scales_out():
    """At a utilisation of 0.95, with 10 s of restart in 100 s: it is below 1, as Flink has it, and nothing is done."""
    settings = FlinkSettings(**{**AT_ONCE, "catch_up_s": 100, "restart_s": 10})
    assert Flink(settings).plan(one_operator(10, 95, 100)).replicas == {"a": 10}
    planned = Flink(settings).plan(one_operator(10, 101, 100)).replicas["a"]
    assert planned == 16  # once it acts the restart counts: 101 / 0.7 + 10.1


def test_nothing_scales_in_while_a_large_backlog_is_worked_off():
    """At 10 a second 3,010 events are more than 5 minutes' work; b would go from 10 to 4."""

    def both(backlog):
        loads = [
            load("a", {"in": 600}, backlog=backlog, busy_share={0: 1.0}, pool=1),
            load("b", {"a": 600}, replicas=10, busy_share=dict.fromkeys(range(10), 0.01)),
        ]
        return snapshot({"in": 600}, loads, time_s=60.0, interval_s=60.0, td_s=60.0)

    settings = FlinkSettings(target_utilisation=1.0, **AT_ONCE)
    assert Flink(settings).plan(both(2990)).replicas == {"a": 1, "b": 4}
    plan = Flink(settings).plan(both(3010))
    assert plan.replicas == {"a": 1, "b": 10}
    assert plan.targets["b"].reason.endswith("outside a utilisation of 0 to 1")


def test_what_replicas_do_while_they_catch_up_is_believed_more_than_busy_times():
    """10 a second at a busy share of 0.5 say 20; with a minute's work waiting, 10 is all that they can do."""

    def told_after(backlog, observations):
        policy = Flink(FlinkSettings(**AT_ONCE))
        for number in range(observations + 1):  # the first is what the backlog grows from
            seen = one_operator(1, 10, 20, time_s=60.0 * (number + 1), backlog=backlog)
            reason = told(policy, seen)[1]
        return reason

    assert "has 20" in told_after(backlog=200, observations=2)
    assert "has 20" in told_after(backlog=600, observations=1)
    assert "has 10" in told_after(backlog=600, observations=2)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"settings": "long"}, "settings must be one of default, short; got 'long'"),
        ({"u_max": 1.5}, "u_max must be above 0 and at most 1; got 1.5"),
        ({"target_utilisation": 0}, "target_utilisation must be above 0 and at most 1; got 0"),
        ({"u_min": 0.8}, "target_utilisation must be from u_min 0.8 to u_max 1; got 0.7"),
        ({"window_s": 0}, "window_s must be a number above 0; got 0"),
        ({"catch_up_s": "soon"}, "catch_up_s must be a number of at least 0; got 'soon'"),
    ],
)
def test_bad_options(options, rule):
    with pytest.raises(InputError, match=f"policy 'flink': {rule}"):
        make_flink(**options)


@given(st.integers(1, 50), st.integers(0, 1000), st.integers(1, 1000))
def test_after_acting_the_utilisation_is_at_most_the_target(replicas, rate, true_rate):
    """Steady input: where it acts, the replicas it asks for would run at 0.7 or less; where not, at 1 or less."""
    planned = Flink(FlinkSettings(**AT_ONCE)).plan(one_operator(replicas, rate, true_rate)).replicas["a"]
    utilisation = rate / (true_rate / replicas * planned)
    assert utilisation <= (1.0 if planned == replicas else 0.7) * (1 + 1e-6)
    assert planned >= 0.4 * replicas * (1 - 1e-9)
