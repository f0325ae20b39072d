from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.control import analyze
from penstock.errors import InputError
from penstock.forecast.registry import forecaster_for
from penstock.policy.base import Plan, Target
from penstock.policy.static import Static
from penstock.simulator import Scenario, compare, simulate
from penstock.simulator.arena import Arena, policies_named, ranked
from penstock.topology import Topology
from penstock.workload import Trace

from .setups import scenario_of

RATES = [20.0, 60.0, 150.0, 90.0, 30.0]


def contest_of(**values):
    return scenario_of(RATES, 40.0, 30.0, **values)


def compete(scenario, policies, **more):
    return Arena(scenario, policies).run(**more)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("psps", ["psps"]),
        ("psps, static:4 ,oracle", ["psps", "static:4", "oracle"]),
        ("psps:predecessor_backlog,use_forecast", ["psps:predecessor_backlog,use_forecast"]),
        ("keda:seconds=10,cooldown_s=60,psps", ["keda:seconds=10,cooldown_s=60", "psps"]),
        ("psps,psps", ["psps"]),
        ("hope,psps", ["hope", "psps"]),  # told when the policy is made, with the known names
    ],
)
def test_policies_named(text, expected):
    assert policies_named(text) == expected


def test_all_policies():
    named = policies_named("all")
    assert {"psps", "oracle", "static:mean", "static:peak", "ds2", "keda", "dstream", "flink", "flink:short"} <= set(
        named
    )
    assert len(named) == len(set(named))
    assert "dabs" not in named  # another name of one that is there


@pytest.mark.parametrize("text", ["", " , "])
def test_no_policy_is_no_contest(text):
    with pytest.raises(InputError, match="policy: must be names separated by commas; got"):
        policies_named(text)


def test_every_name_is_checked_before_anything_runs():
    watched = []
    with pytest.raises(InputError, match="no such name 'hope'"):
        compete(contest_of(), ["psps", "hope"], watch=lambda *seen: watched.append(seen))
    assert watched == []


def test_results_come_in_the_order_of_the_names():
    results = compete(contest_of(), ["static:peak", "oracle", "psps"])
    assert [one.policy for one in results] == ["static:peak", "oracle", "psps"]
    peak, oracle, psps = results
    assert oracle.oracle_ratio == 1.0
    assert peak.oracle_ratio == pytest.approx(peak.replica_seconds / oracle.replica_seconds)
    assert peak.saved_resources == pytest.approx(0.0)
    assert peak.late_ratio <= psps.late_ratio


def plain(result):
    return {**result.as_json(), "wall_s": 0.0}


def test_who_else_competes_changes_nothing():
    """Random numbers once went on from one policy to the next: everybody had other input."""
    scenario = contest_of(exponential=True)
    together = compete(scenario, ["static:peak", "keda", "psps"])
    alone = compete(scenario, ["psps"])
    assert plain(together[2]) == plain(alone[0])


@pytest.mark.parametrize(
    "limits",
    [
        {"actuation": "restart", "restart_s": 3.0},
        {"cooldown_s": 1000.0},
        {"activation_delay_s": 5.0},
        {"slots": 3},
        {"t_out_s": 0.05},
        {"levels": "both", "workers": 5},
    ],
    ids=lambda limits: next(iter(limits)),
)
def test_no_limit_of_the_contest_binds_the_oracle(limits):
    free, limited = (compete(contest_of(**values), ["oracle"])[0] for values in ({}, limits))
    assert limited.history.replicas == free.history.replicas
    assert (limited.replica_seconds, limited.late_ratio) == (free.replica_seconds, free.late_ratio)
    assert limited.oracle_ratio == 1.0
    assert simulate(contest_of(**limits), "oracle").replica_seconds == free.replica_seconds


def test_slots_bound_all_operators_together():
    (result,) = compete(contest_of(slots=5), ["psps"])
    assert result.history.total_replicas.max() <= 5


def test_cooldown_delays_the_first_scale_in():
    fast, slow = (compete(contest_of(cooldown_s=cooldown_s), ["psps"])[0] for cooldown_s in (0.0, 1000.0))
    assert slow.reconfigurations < fast.reconfigurations


def test_a_forecaster_is_used_where_the_policy_can():
    (without,) = compete(contest_of(), ["psps"])
    (drifting,) = compete(contest_of(forecaster="drift:3"), ["psps"])
    assert drifting.history.replicas != without.history.replicas


def test_the_result_says_who_had_which_forecast():
    """Planners were given `auto` silently, and nobody else anything."""
    had = {one.policy: one.forecaster for one in compete(contest_of(), ["psps", "spea", "keda", "oracle"])}
    assert had == {"psps": None, "spea": "auto", "keda": None, "oracle": None}
    named = compete(contest_of(forecaster="drift:3"), ["psps", "spea"])
    assert [one.forecaster for one in named] == ["drift:3", "drift:3"]
    assert named[0].as_json()["forecaster"] == "drift:3"


def test_forecasts_of_a_source_are_made_once(monkeypatch):
    """And nobody notices: alone a policy comes to the same."""
    made = []

    def counted_forecaster(spec, **known):
        made.append(known["series"])
        return forecaster_for(spec, **known)

    monkeypatch.setattr(analyze, "forecaster_for", counted_forecaster)
    planners = ["spea:3", "cba:4", "optimal:3,predict=sources"]
    together = compete(contest_of(td_s=2.0), planners)
    assert (made.count("in"), made.count("o0")) == (1, 1)
    alone = [simulate(contest_of(td_s=2.0), one) for one in planners]
    assert [one.history.replicas for one in together] == [one.history.replicas for one in alone]
    assert made.count("in") == 4


def test_watch_is_told_who_is_where():
    watched = []
    compete(contest_of(), ["psps"], watch=lambda *seen: watched.append(seen))
    assert next(seen for seen in watched if seen[0] == "oracle") == ("oracle", 10.0, 50.0)
    assert watched[-1][0] == "psps"


def test_ranked_by_target_then_price_then_lateness():
    (base,) = compete(contest_of(), ["psps"])
    made = {
        name: replace(base, policy=name, late_ratio=late, replica_seconds=price)
        for name, late, price in (
            ("dear", 0.0, 900.0),
            ("late", 0.3, 100.0),
            ("cheap", 0.009, 500.0),
            ("later", 0.5, 50.0),
        )
    }
    assert [one.policy for one in ranked(list(made.values()))] == ["cheap", "dear", "late", "later"]


class Always:
    """A policy of the user's own."""

    def __init__(self, replicas: int) -> None:
        self.replicas = replicas

    def plan(self, snapshot, forecast=None) -> Plan:
        return Plan({name: Target(self.replicas, "always") for name in snapshot.operators})


def test_policies_of_ones_own_compete_with_named_ones():
    results = compare(contest_of(), [Always(5), "static:5", Static(2)])
    named = {one.policy: one for one in results}
    assert list(named) == [one.policy for one in ranked(results)]
    assert named.keys() == {"Always", "static:5", "Static(2)"}
    assert named["Always"].replica_seconds < named["static:5"].replica_seconds  # it begins with one replica
    assert all(one.oracle_ratio > 0 for one in results)


def test_policies_may_be_given_as_one_text():
    assert {one.policy for one in compare(contest_of(), "static:4,psps")} == {"static:4", "psps"}


def counted(event, state): ...


def waves(key_bytes: float) -> Scenario:
    """One operator under a rate that goes up and down; its 1024 keys take so much each."""
    topology = Topology("count", pool=8)
    topology.operator("count", counted, inputs=topology.source("in"), key="word", execution_time_ms=20.0)
    scenario = Scenario(topology, Trace("waves", 20.0, [40.0, 160.0] * 12))
    return scenario.changed(td_s=10.0, state_bytes={"count": key_bytes})


@pytest.mark.parametrize("policy", ["cba:4,predict=sources", "optimal:4,predict=sources"])
def test_replicas_of_much_state_change_less_often(policy):
    """With a forecaster that does not know how sure it is: otherwise `cba` may keep replicas whatever state costs."""
    light, heavy = 60.0, 100e3  # 0.06 MB and 102 MB in all
    changes = {}
    for key_bytes in (light, heavy):
        for move in (0, 2000):
            (result,) = compete(waves(key_bytes).changed(forecaster="drift"), [f"{policy},move={move}"])
            changes[key_bytes, move] = result.reconfigurations
    assert changes[heavy, 2000] < changes[heavy, 0]
    assert changes[light, 2000] == changes[light, 0] > 5


def test_the_oracle_moves_state_at_no_cost():
    policy, oracle = compete(waves(100e3), ["psps", "oracle"])
    assert policy.state["count"]["wait_ms"]["mean"] > 1000 > oracle.state["count"]["wait_ms"]["mean"]
    assert oracle.oracle_ratio == 1.0
    assert oracle.state["count"]["groups_moved"] > 0


def test_a_topology_without_state_has_none_in_its_result():
    (result,) = compete(scenario_of([5.0], 1.0), ["static:1"])
    assert result.state is None


def test_several_processes_come_to_the_same():
    policies = ["cba:3", "psps", "oracle", Static(3), "spea:3"]
    alone, shared = (compete(contest_of(), policies, jobs=jobs) for jobs in (1, 2))
    assert [replace(one, wall_s=0.0) for one in shared] == [replace(one, wall_s=0.0) for one in alone]
