from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.errors import InputError
from penstock.policy.base import Plan, Target
from penstock.policy.static import Static
from penstock.simulator import Scenario, compare
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


def test_the_oracle_pays_for_no_restart():
    scenario = contest_of(actuation="restart", restart_s=3.0)
    bounded, free = compete(scenario, ["oracle"]), compete(contest_of(), ["oracle"])
    assert bounded[0].replica_seconds >= free[0].replica_seconds
    assert bounded[0].oracle_ratio == pytest.approx(bounded[0].replica_seconds / free[0].replica_seconds)


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
    """Its replica-seconds are the yardstick, and those of one that waits for state would be no bound."""
    policy, oracle = compete(waves(100e3), ["psps", "oracle"])
    assert policy.state["count"]["wait_ms"]["mean"] > 1000
    assert oracle.oracle_ratio != 1.0  # it pays for state here, unlike the yardstick
    assert oracle.state["count"]["groups_moved"] > 0


def test_a_topology_without_state_has_none_in_its_result():
    (result,) = compete(scenario_of([5.0], 1.0), ["static:1"])
    assert result.state is None
