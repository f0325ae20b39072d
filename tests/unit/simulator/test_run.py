"""Whole simulations of a row of operators, small enough to know what must come out."""

from __future__ import annotations

import math
from contextlib import closing

import pytest

from penstock.metrics.store import Store
from penstock.policy.base import Plan, Target
from penstock.policy.psps import Psps
from penstock.policy.static import Static
from penstock.simulator import Scenario, simulate
from penstock.topology import Topology
from penstock.workload import Trace, constant

from .plant.test_plant import passed
from .setups import scenario_of


class Follows:
    """A policy that wants the next of these numbers of replicas, the last one for ever."""

    def __init__(self, *counts: int) -> None:
        self.counts = list(counts)
        self.seen = []

    def plan(self, snapshot, forecast=None) -> Plan:
        self.seen.append((snapshot, forecast))
        count = self.counts.pop(0) if len(self.counts) > 1 else self.counts[0]
        return Plan({name: Target(count, "because") for name in snapshot.operators})


class Listed(list):
    """Keeps records as a store would."""

    def record(self, record):
        self.append(record)


def test_what_a_run_comes_to():
    """10 and 20 events a second, 20 ms and 40 ms each: nobody waits."""
    result = simulate(scenario_of([10.0, 20.0], 20.0, 40.0), "static:2")
    assert (result.policy, result.events, result.backlog, result.dropped) == ("static:2", 300, 0, {})
    assert result.latency_ms == pytest.approx({"mean": 60.0, "p50": 60.0, "p99": 60.0}, rel=0.025)
    assert result.latency_ms["mean"] == pytest.approx(60.0)
    assert (result.processed_ratio, result.late_ratio, result.reconfigurations) == (1.0, 0.0, 0)
    assert (result.replica_seconds, result.r_over) == (2 * 2 * 30.0, 2)  # the last event leaves after the end of input
    assert result.saved_resources == -1.0
    assert result.history.entered == [101, 199, 0]  # the event at the end of an interval belongs to it
    assert result.history.left == [100, 199, 1]
    assert result.throughput_degradation == pytest.approx((1 / 101 + 0 / 199) / 2)


def test_a_run_goes_on_until_the_last_event_has_left():
    result = simulate(scenario_of([10.0], 250.0), Static(1))
    assert result.history.times_s == [10.0, 20.0, 30.0]
    assert result.history.backlog == [60, 20, 0]
    assert (result.max_backlog, result.backlog, result.events) == (60, 0, 100)
    assert result.late_ratio == pytest.approx(88 / 100)  # event n takes 0.25 + 0.15 n seconds: over 2 from n = 12 on
    assert not result.meets_target


def test_the_policy_starts_with_what_it_wants_and_the_user_before_it():
    scenario = scenario_of([10.0], 20.0, 40.0, replicas={"o1": 5})
    assert simulate(scenario, Static(3)).history.replicas[0] == (3, 5)
    assert simulate(scenario, Follows(2)).history.replicas[0] == (1, 5)


def test_changes_are_counted_by_operator_and_hold_from_the_next_interval_on():
    result = simulate(scenario_of([10.0] * 4, 20.0, 20.0), Follows(1, 3, 2))
    assert result.history.replicas[:4] == [(1, 1), (1, 1), (3, 3), (2, 2)]
    assert result.reconfigurations == 4
    assert result.replica_seconds == 10.0 * (2 + 2 + 6 + 4)


def test_a_policy_sees_every_interval_as_on_spark():
    policy = Follows(1)
    simulate(scenario_of([10.0, 30.0], 20.0), policy)
    seen = [snapshot for snapshot, _ in policy.seen]
    assert [snapshot.time_s for snapshot in seen] == [10.0, 20.0]
    assert [snapshot.source_input["in"] for snapshot in seen] == [101, 299]
    assert seen[1].operators["o0"].execution_time_s == pytest.approx(0.02)
    assert not any(snapshot.incomplete for snapshot in seen)


@pytest.mark.parametrize("actuation", ["pool", "restart", "restart-lossy"])
def test_no_interval_is_distrusted_after_a_change(actuation):
    policy = Follows(1, 3, 2, 4)
    result = simulate(scenario_of([40.0] * 8, 60.0, 30.0, actuation=actuation, restart_s=1.0), policy)
    assert not any(snapshot.incomplete for snapshot, _ in policy.seen)
    assert ("restart" in result.dropped) == (actuation == "restart-lossy")


def test_the_loop_may_start_later():
    policy = Follows(1)
    result = simulate(scenario_of([10.0, 10.0], 20.0, first_step_s=4.0), policy)
    assert [snapshot.time_s for snapshot, _ in policy.seen] == [14.0, 24.0]
    assert result.history.lengths_s == [10.0, 10.0]


def test_a_forecaster_is_asked():
    policy = Follows(1)
    simulate(scenario_of([10.0, 30.0], 20.0, forecaster="last_value"), policy)
    assert policy.seen[1][1].forecaster == "last_value"
    assert policy.seen[1][1].rates["in"][0] == pytest.approx(29.9)


def test_every_interval_is_recorded():
    records = Listed()
    simulate(scenario_of([10.0, 30.0], 20.0), Static(1), recorder=records)
    assert [record.interval.entered for record in records] == [101, 299]


def test_progress_is_told():
    told = []
    simulate(scenario_of([10.0, 10.0], 250.0), Static(1), progress=lambda *both: told.append(both))
    assert told[:3] == [(10.0, 20.0), (20.0, 20.0), (20.0, 20.0)]


def test_the_same_seed_is_the_same_run():
    scenario = scenario_of([50.0, 20.0, 90.0], 30.0, 20.0, exponential=True, seed=3)
    one, two = (simulate(scenario, Psps()) for _ in range(2))
    assert {**one.as_json(), "wall_s": 0} == {**two.as_json(), "wall_s": 0}
    other = simulate(scenario_of([50.0, 20.0, 90.0], 30.0, 20.0, exponential=True, seed=4), Psps())
    assert one.latency_ms != other.latency_ms


def test_what_load_balancing_looks_at_is_a_choice():
    """By what replicas did, a new one gets everything at first; by what waits for them, its part."""
    topology = Topology("one", pool=8)
    topology.operator("o0", passed, inputs=topology.source("in"), execution_time_ms=50.0, grouping="load_balancing")
    scenario = Scenario(topology, Trace("jump", 30.0, [30.0, 45.0])).changed(td_s=5.0)
    by_work, by_queue = (
        simulate(scenario.changed(balance_by=measure), Psps()).latency_ms["mean"] for measure in ("used", "booked")
    )
    assert by_queue < 0.8 * by_work


def test_psps_adapts():
    result = simulate(scenario_of([20.0, 100.0, 100.0, 100.0, 20.0, 20.0], 50.0, 30.0), Psps())
    replicas = [sum(row) for row in result.history.replicas]
    assert max(replicas) >= 8
    assert replicas[5] < max(replicas)
    assert result.processed_ratio == 1.0


def test_an_empty_trace():
    result = simulate(scenario_of([0.0, 0.0], 20.0), Static(1))
    assert result.events == 0
    assert math.isnan(result.processed_ratio)
    assert math.isnan(result.late_ratio)
    assert result.as_json()["latency_ms"] == {"mean": None, "p50": None, "p99": None}


class Restless:
    """Wants one replica, then two, then one."""

    def __init__(self):
        self._number = 0

    def plan(self, snapshot, forecast=None):
        self._number += 1
        return Plan({name: Target(1 + self._number % 2, "restless") for name in snapshot.operators})


def test_a_policy_that_never_lets_anything_finish_is_given_up():
    """Restarts of 30 s every 5 s: the simulation went on for ever."""
    scenario = Scenario("insensitive", constant(50, 10)).changed(td_s=5, actuation="restart", restart_s=30)
    result = simulate(scenario, Restless())
    assert result.backlog > 0
    assert result.processed_ratio < 1


class Doubles:
    """A policy of the user's own: twice the replicas while anything waits."""

    def plan(self, snapshot, forecast=None) -> Plan:
        wanted = {name: 2 * load.replicas if load.backlog else 1 for name, load in snapshot.operators.items()}
        return Plan({name: Target(count, "doubles") for name, count in wanted.items()})


def test_a_policy_of_ones_own_is_named_by_its_class_and_kept_within_the_pool():
    result = simulate(scenario_of([100.0] * 5, 95.0), Doubles())
    assert result.policy == "Doubles"
    assert [row[0] for row in result.history.replicas[:5]] == [1, 2, 4, 8, 8]


def test_it_has_the_slots_and_the_forecaster_of_the_contest():
    policy = Follows(6)
    result = simulate(scenario_of([10.0, 30.0], 20.0, 20.0, slots=5, forecaster="last_value"), policy)
    assert result.history.total_replicas.max() == 5
    assert policy.seen[1][1].forecaster == "last_value"


def test_intervals_are_kept_in_a_store(tmp_path):
    place = str(tmp_path / "runs.db")
    simulate(scenario_of([10.0, 30.0], 20.0), Doubles(), store=place)
    with closing(Store(place, must_exist=True)) as store:
        (run,) = store.runs()
        assert (run.topology, run.policy, run.finished_at is not None) == ("row", "Doubles", True)
        assert run.settings == {"simulated": True, "trace": "made", "speedup": 1.0, "seed": 0}
        assert [row.entered for row in store.intervals(run.run)] == [101, 299]


def test_a_store_that_cannot_be_told_of_the_end_is_closed(tmp_path, monkeypatch):
    """Its connection stayed open: Python 3.13 warns of that."""
    stores = []
    monkeypatch.setattr(Store, "finish_run", lambda store, *_: stores.append(store) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        simulate(scenario_of([10.0, 30.0], 20.0), Doubles(), store=str(tmp_path / "runs.db"))
    assert [store._engine.pool.checkedin() for store in stores] == [0]


class Remembers(Follows):
    """A policy that is told what came before."""

    def recall(self, rates, step_s) -> None:
        self.rates, self.step_s = rates, step_s


def test_what_came_before_is_told_and_not_played():
    told = Remembers(2)
    scenario = scenario_of([50.0], 10.0, before=Trace("before", 5.0, [10.0, 30.0]))
    assert simulate(scenario, told).events == 500
    assert (told.rates, told.step_s) == ([10.0, 30.0], 5.0)


def test_what_came_before_came_by_chance_where_events_do():
    told, again = Remembers(2), Remembers(2)
    before = Trace("before", 5.0, [40.0] * 20)
    scenario = scenario_of([50.0], 10.0, before=before, arrivals="poisson")
    for one in (told, again):
        simulate(scenario, one)
    assert told.rates == again.rates
    assert len(told.rates) == 100
    assert len(set(told.rates)) > 5
    assert sum(told.rates) / 100 == pytest.approx(40.0, rel=0.05)
