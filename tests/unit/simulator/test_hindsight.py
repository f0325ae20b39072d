"""The bound: equal to brute force on small cases, and cheaper than every run that keeps the promise."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.policy.base import Plan, Target
from penstock.simulator import Scenario, simulate
from penstock.simulator.arena import Arena
from penstock.simulator.hindsight import Load, bound_s, done_by_one, hindsight, work_of
from penstock.simulator.plant.model import Facts, build_model
from penstock.simulator.plant.plant import SimulatedPlant
from penstock.simulator.prepare import prepare
from penstock.topology import Topology
from penstock.workload import Trace

from .plant.test_plant import passed
from .setups import row_of, scenario_of

END, TARGET, MOST = 4, 2, 3  # slots of a second; events take one slot


def load_of(arrivals, works) -> Load:
    table = np.array(sorted(set(works)), float)
    rows = np.array([sorted(set(works)).index(one) for one in works])
    return Load(np.array(arrivals, float), rows, table, float(END))


def on_time(arrivals, replicas) -> int:
    """How many events these replicas, slot by slot, do in time: the oldest first."""
    waiting, done = sorted(arrivals), 0
    for slot, count in enumerate(replicas):
        waiting = [one for one in waiting if one > slot - TARGET]
        now = [one for one in waiting if one <= slot][:count]
        done += len(now)
        waiting = waiting[len(now) :]
    return done


SCHEDULES = sorted(product(*[range(1, MOST + 1)] * END, *[range(MOST + 1)] * (TARGET - 1)), key=sum)


def cheapest(arrivals, late: int) -> float:
    """All schedules of whole replicas, one by one."""
    enough = (sum(one) for one in SCHEDULES if on_time(arrivals, one) >= len(arrivals) - late)
    return next(enough, math.inf)


ARRIVALS = st.lists(st.integers(0, END - 1), min_size=1, max_size=7).map(sorted)


@settings(deadline=None, max_examples=150)
@given(arrivals=ARRIVALS, late=st.integers(0, 3))
def test_it_is_the_optimum_of_one_operator(arrivals, late):
    best = cheapest(arrivals, late)
    if best < math.inf:  # the pool is large enough
        assert bound_s(load_of(arrivals, [(1.0,)] * len(arrivals)), TARGET, late) == pytest.approx(best)


@settings(deadline=None, max_examples=60)
@given(
    events=st.lists(
        st.tuples(st.integers(0, END - 1), st.sampled_from([(1.0, 1.0), (1.0, 0.0), (0.0, 1.0)])), max_size=6
    ),
    late=st.integers(0, 2),
)
def test_it_is_no_more_than_the_optimum_of_two(events, late):
    """Events may need one operator or both; those that are late are late at both."""
    events = sorted(events) or [(0, (1.0, 1.0))]
    costs = []
    for chosen in combinations(range(len(events)), min(late, len(events))):
        kept = [one for number, one in enumerate(events) if number not in chosen]
        costs.append(sum(cheapest([at for at, needs in kept if needs[place]], 0) for place in range(2)))
    bound = bound_s(load_of([at for at, _ in events], [needs for _, needs in events]), TARGET, late)
    assert 2 * END <= bound <= min(costs) + 1e-9


def test_operators_share_the_late_events():
    """Six events at once at two operators, of which one each can be late: it is the same event."""
    together, apart = [(1.0, 1.0)] * 6, [(1.0, 0.0)] * 6 + [(0.0, 1.0)] * 6
    assert bound_s(load_of([0] * 6, together), TARGET, 1) == 2 * END + 2 * (6 - TARGET - 1)
    assert bound_s(load_of([0] * 12, apart), TARGET, 1) == 2 * END + 2 * (6 - TARGET) - 1


def test_an_operator_that_one_replica_suffices_for_gains_nothing_from_late_events():
    """Its work must not be taken off what the other has to pay."""
    works = [(1.0, 0.2)] * 6
    assert bound_s(load_of([0] * 6, works), TARGET, 2) == 2 * END + (6 - TARGET - 2)


def test_what_one_replica_can_do():
    times, work = np.array([0.0, 0.0, 0.0, 3.5]), np.ones(4)
    assert done_by_one(times, work, 2.0, 4.0) == 2.5
    assert done_by_one(times, work, 9.0, 99.0) == 4.0


def test_the_work_of_an_event_is_followed_through_tables_and_shares():
    topology = Topology("two", pool=4)
    first = topology.operator("a", passed, inputs=topology.source("in"), execution_time_ms=10.0, selectivity=2.6)
    topology.operator("b", passed, inputs=first, execution_time_ms=100.0)
    assert work_of(build_model(topology)).tolist() == [[0.01, 0.2]]  # 2 for certain, 0.6 are drawn
    assert work_of(build_model(topology, Facts(exponential=True))).tolist() == [[0.0, 0.0]]


def test_the_work_of_an_application_is_what_a_run_does():
    """Every value in turn: busy times of a whole round are the sums of the table."""
    prepared = prepare(Scenario("wordcount", Trace("t", 10.0, [20.0] * 3)))
    table, plant = work_of(prepared.model), SimulatedPlant(prepared.model, prepared.arrivals(), prepared.scenario.plant)
    plant.advance(1000.0)
    busy = [one.counters().total.busy_s for one in plant.operators.values()]
    assert plant.out == 600
    assert busy == pytest.approx(table[np.arange(600) % len(table)].sum(axis=0).tolist())


class Guesses:
    """Other replicas every interval, as drawn."""

    def __init__(self, counts):
        self._counts = counts
        self._at = 0

    def plan(self, snapshot, forecast=None):
        self._at += 1
        count = self._counts[self._at % len(self._counts)]
        which = tuple(sorted({(self._at + number) % 6 for number in range(count)}))
        return Plan({name: Target(count, "guessed", which=which) for name in snapshot.operators})


POLICIES = st.one_of(
    st.sampled_from(["psps", "oracle", "static:peak", "static:mean", "ds2", "keda:1"]),
    st.lists(st.integers(1, 6), min_size=1, max_size=6).map(Guesses),
)


@settings(deadline=None, max_examples=60)
@given(
    rates=st.lists(st.sampled_from([0.0, 5.0, 20.0, 60.0, 90.0]), min_size=1, max_size=4),
    times_ms=st.lists(st.sampled_from([5.0, 20.0, 60.0]), min_size=1, max_size=3),
    policy=POLICIES,
    values=st.fixed_dictionaries(
        {
            "td_s": st.sampled_from([0.5, 1.0, 5.0]),
            "target_ms": st.sampled_from([300.0, 1000.0, 4000.0]),
            "arrivals": st.sampled_from(["even", "poisson"]),
            "grouping": st.sampled_from(["shuffle", "pull", "least_work"]),
            "t_out_s": st.sampled_from([None, 0.3]),
            "wake": st.booleans(),
        }
    ),
)
def test_no_run_that_keeps_its_promise_costs_less(rates, times_ms, policy, values):
    scenario = Scenario(row_of(*times_ms, pool=6), Trace("made", 3.0, rates)).changed(**values)
    result = simulate(scenario, policy)
    late = result.late_ratio if result.events else 0.0
    assert result.replica_seconds >= hindsight(prepare(scenario), late) - 1e-6


def test_the_arena_takes_the_bound_of_its_own_promise():
    """The bound was that of 1 % late, and the target 99 % on time, whatever the contest had promised."""
    scenario = scenario_of([20.0, 60.0, 150.0, 90.0, 30.0], 40.0, 30.0).changed(late=0.9)
    least = hindsight(prepare(scenario), 0.9)
    assert least < hindsight(prepare(scenario), 0.01)
    strict, lax = (Arena(scenario.changed(late=late), ["static:4"]).run()[0] for late in (0.0001, 0.9))
    assert lax.hindsight_ratio == pytest.approx(lax.replica_seconds / least)
    assert (strict.late_ratio, strict.late, lax.late) == (lax.late_ratio, 0.0001, 0.9)
    assert (strict.meets_target, lax.meets_target) == (False, True)


def test_the_arena_shows_every_cost_beside_it():
    scenario = scenario_of([20.0, 60.0, 150.0, 90.0, 30.0], 40.0, 30.0)
    least = hindsight(prepare(scenario), 0.01)
    for one in Arena(scenario, ["psps", "oracle", "static:peak"]).run():
        assert one.hindsight_ratio == pytest.approx(one.replica_seconds / least)
        assert one.hindsight_ratio >= 1 or not one.meets_target
        assert one.as_json()["hindsight_ratio"] == pytest.approx(one.hindsight_ratio, abs=1e-5)
