"""The loop around a plant: does it size the chain, and does it stay?"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.loop import Loop, Parts, next_due_s
from penstock.control.monitor import Monitor
from penstock.errors import InputError
from penstock.metrics.interval import IntervalRules
from penstock.metrics.paper import replicas_for
from penstock.policy.guards import guarded
from penstock.policy.psps import Psps
from penstock.policy.static import Static
from penstock.testing.clock import ManualClock
from penstock.testing.plant import FakeOperator, FakePlant

TIMES_S = (0.010, 0.020, 0.015, 0.010, 0.040)


def size(rate):
    return {f"o{n}": replicas_for(rate * time_s) for n, time_s in enumerate(TIMES_S)}


def test_the_first_look_only_remembers(make_rig):
    rig = make_rig()
    assert rig.loop.state.last.snapshot is None
    assert rig.loop.state.last.failures == {}
    assert rig.records == []


def test_a_constant_load_settles_in_one_interval_and_then_stays(make_rig):
    rig = make_rig()
    first, *rest = rig.steps(10, rate=50.0)
    assert first.plan.replicas == rig.plant.active == size(50)
    assert all(not any(one.changed for one in step.decisions) for step in rest)


def test_a_chain_of_five_has_its_size_one_step_after_a_jump(make_rig):
    rig = make_rig()
    rig.steps(3, rate=50.0)
    (step,) = rig.steps(1, rate=600.0)
    assert all(step.plan.replicas[name] >= count for name, count in size(600).items())


def test_as_published_a_backlog_at_the_head_travels_down_one_operator_an_interval(make_rig):
    rig = make_rig()
    rig.steps(3, rate=100.0)
    rig.plant.queue("o0", 3000)
    steps = rig.steps(6)
    last_seen_growing = [
        max(n for n, step in enumerate(steps) if step.plan.replicas[f"o{i}"] > size(100)[f"o{i}"]) for i in range(5)
    ]
    assert last_seen_growing == sorted(last_seen_growing)
    assert last_seen_growing[-1] >= last_seen_growing[0] + 3


def test_with_predecessor_backlog_the_chain_is_sized_in_one_step(make_rig):
    rig = make_rig(Psps(predecessor_backlog=True))
    rig.steps(3, rate=100.0)
    rig.plant.queue("o0", 3000)
    grown, after, settled = rig.steps(3)
    waiting = grown.snapshot.operators["o0"].backlog
    expected = {f"o{n}": replicas_for((200 + waiting) * time_s / 2) for n, time_s in enumerate(TIMES_S)}
    assert grown.plan.replicas == expected
    assert after.snapshot.backlog == 0
    assert after.plan.replicas == settled.plan.replicas == size(100)


@given(
    before=st.integers(1, 200), after=st.integers(1, 400), times=st.lists(st.integers(1, 40), min_size=1, max_size=5)
)
@settings(max_examples=30, deadline=None)
def test_any_chain_under_any_jump_works_off_its_backlog_and_settles(before, after, times):
    clock = ManualClock()
    names = ["in", *(f"o{n}" for n in range(len(times)))]
    chain = [FakeOperator(names[n + 1], {names[n]: 1.0}, ms / 1000) for n, ms in enumerate(times)]
    plant = FakePlant(chain, clock)
    policy = guarded(Psps(predecessor_backlog=True))
    loop = Loop(Parts(Monitor(plant, IntervalRules(1.0, plant.declared())), policy, plant), clock)
    for rate in [before] * 4 + [after] * 8:
        plant.rates["in"] = float(rate)
        loop.step(clock.now())
        clock.advance(1.0)
    final = loop.step(clock.now())
    assert final.snapshot.backlog == 0
    assert final.plan.replicas == {names[n + 1]: replicas_for(after * ms / 1000) for n, ms in enumerate(times)}
    assert final.plan.replicas == plant.active


def test_without_declared_times_the_first_events_are_the_benchmark():
    clock = ManualClock()
    plant = FakePlant([FakeOperator("a", {"in": 1.0}, 0.05)], clock)
    monitor = Monitor(plant, IntervalRules(1.0, plant.declared(execution_times=False)))
    loop = Loop(Parts(monitor, guarded(Psps()), plant), clock)
    loop.step(clock.now())
    clock.advance(1.0)
    assert "unknown execution time" in loop.step(clock.now()).decisions[0].reason
    plant.rates["in"] = 100.0
    clock.advance(1.0)
    assert loop.step(clock.now()).plan.replicas == {"a": 9}  # 100 new and 80 that wait, of 50 ms each


def test_times_measured_before_go_before_declared_ones_and_these_before_none():
    """Live, an operator without events in the warm-up was held at one replica in spite of what it declared."""
    clock = ManualClock()
    plant = FakePlant([FakeOperator("a", {"in": 1.0}, 0.05), FakeOperator("b", {"a": 1.0}, 0.05)], clock)
    monitor = Monitor(plant, IntervalRules(1.0, plant.declared()), {"a": 0.01})
    monitor.collect(clock.now())
    clock.advance(1.0)
    loads = monitor.collect(clock.now()).operators
    assert {name: one.execution_time_s for name, one in loads.items()} == {"a": 0.01, "b": 0.05}


def test_intervals_that_were_missed_have_numbers(make_rig):
    rig = make_rig()
    rig.steps(1)
    rig.clock.advance(3 * rig.loop.td_s)
    assert [step.number for step in rig.steps(2)] == [5, 6]


def test_utilisation_is_published_for_the_replicas_that_will_run(make_rig):
    rig = make_rig()
    rig.steps(2, rate=100.0)
    published = rig.plant.published["o1"]
    assert published.step == pytest.approx(0.020 / 2)
    assert set(published.by_replica) == {0, 1}
    assert all(used == pytest.approx(1.0) for used in published.by_replica.values())


def test_a_live_view_finds_what_it_shows(make_rig):
    rig = make_rig(start=2)
    rig.steps(2, rate=100.0)
    state = rig.loop.state
    assert state.seen.forecast.rates == {"in": (100.0,)}
    assert {decision.operator for _, decision in state.changes} == {"o0", "o3", "o4"}
    time_s, decision = state.changes[0]
    assert time_s == 1002.0
    assert str(decision).startswith("o0 2 → 1: expects 200 events (200 new, 1 of 200 entering; 0 backlog)")


def test_the_view_keeps_a_bounded_number_of_changes(make_rig):
    rig = make_rig()
    for number in range(40):
        rig.steps(1, rate=100.0 if number % 2 else 500.0)
    assert len(rig.loop.state.changes) == 20


def test_every_step_is_recorded_with_what_was_seen_expected_and_decided(make_rig):
    rig = make_rig(start=2)
    rig.steps(2, rate=100.0)
    record = rig.records[0]
    assert record.interval.number == 1
    assert record.interval.source_input == {"in": 200}
    assert record.interval.latency_mean_ms is None
    assert [row.operator for row in record.operators] == [f"o{n}" for n in range(5)]
    assert [(row.series, row.step, row.rate) for row in record.forecasts] == [("in", 1, 100.0)]
    assert [(row.before, row.after) for row in record.decisions] == [(2, 1), (2, 2), (2, 2), (2, 1), (2, 6)]
    assert all(row.reason for row in record.decisions)


def test_run_steps_at_once_and_then_every_td():
    clock = ManualClock(100.0)
    plant = FakePlant([FakeOperator("a", {"in": 1.0}, 0.01)], clock)
    loop = Loop(Parts(Monitor(plant, IntervalRules(5.0, plant.declared())), Static(2), plant), clock)
    times = []
    loop.run(lambda: times.append(clock.now()) or len(times) > 4)
    assert times == [100.0, 105.0, 110.0, 115.0, 120.0]
    assert loop.state.last.number == 3


@pytest.mark.parametrize("now_s", [10.0, 10.1, 11.9])
def test_a_step_that_takes_a_while_does_not_shift_the_next(now_s):
    assert next_due_s(10.0, now_s, 2.0) == 12.0


@pytest.mark.parametrize("now_s", [12.0, 14.5, 9000.0, 7.0, -500.0])
def test_after_a_jump_or_missed_steps_the_next_is_td_from_now(now_s):
    assert next_due_s(10.0, now_s, 2.0) == now_s + 2.0


@pytest.mark.parametrize("td_s", [0.1, 0.199])
def test_td_is_at_least_a_fifth_of_a_second(td_s):
    clock = ManualClock()
    plant = FakePlant([FakeOperator("a", {"in": 1.0}, 0.01)], clock)
    with pytest.raises(InputError, match=r"td must be at least 0\.2 s; got"):
        Loop(Parts(Monitor(plant, IntervalRules(td_s)), Static(1), plant), clock)
