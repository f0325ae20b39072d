from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.errors import InputError
from penstock.simulator.arena import Contest, compete, policies_named, ranked

from .setups import setup_of

RATES = [20.0, 60.0, 150.0, 90.0, 30.0]


def arena_setup(**options):
    return setup_of(RATES, 40.0, 30.0, **options)


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
        compete(arena_setup(), ["psps", "hope"], watch=lambda *seen: watched.append(seen))
    assert watched == []


def test_results_come_in_the_order_of_the_names():
    results = compete(arena_setup(), ["static:peak", "oracle", "psps"])
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
    setup = arena_setup(exponential=True)
    together = compete(setup, ["static:peak", "keda", "psps"])
    alone = compete(setup, ["psps"])
    assert plain(together[2]) == plain(alone[0])


def test_the_oracle_pays_for_no_restart():
    setup = arena_setup(actuation="restart", restart_s=3.0)
    bounded, free = compete(setup, ["oracle"]), compete(arena_setup(), ["oracle"])
    assert bounded[0].replica_seconds >= free[0].replica_seconds
    assert bounded[0].oracle_ratio == pytest.approx(bounded[0].replica_seconds / free[0].replica_seconds)


def test_slots_bound_all_operators_together():
    (result,) = compete(arena_setup(), ["psps"], Contest(slots=5))
    assert result.history.total_replicas.max() <= 5


def test_cooldown_delays_the_first_scale_in():
    fast, slow = (compete(arena_setup(), ["psps"], Contest(cooldown_s=cooldown_s))[0] for cooldown_s in (0.0, 1000.0))
    assert slow.reconfigurations < fast.reconfigurations


def test_a_forecaster_is_used_where_the_policy_can():
    (without,) = compete(arena_setup(), ["psps"])
    (drifting,) = compete(arena_setup(), ["psps"], Contest(forecaster="drift:3"))
    assert drifting.history.replicas != without.history.replicas


def test_watch_is_told_who_is_where():
    watched = []
    compete(arena_setup(), ["psps"], watch=lambda *seen: watched.append(seen))
    assert next(seen for seen in watched if seen[0] == "oracle") == ("oracle", 10.0, 50.0)
    assert watched[-1][0] == "psps"


def test_ranked_by_target_then_price_then_lateness():
    (base,) = compete(arena_setup(), ["psps"])
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
