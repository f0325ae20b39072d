"""Policies in the shadow and canaries in whole simulated runs."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.metrics.store import Store
from penstock.policy.guards import Canary, Headroom
from penstock.policy.psps import Psps
from penstock.simulator import Scenario, simulate
from penstock.topology import Topology
from penstock.workload import Trace

LIGHT, HEAVY = [20.0] * 90, [200.0] * 90  # a second; at the heavy load `clean` needs 4 replicas and `store` 8


def scenario(rates, **more):
    topology = Topology("two")
    topology.source("in")
    topology.operator("clean", lambda event: event, inputs=["in"], pool=16, execution_time_ms=20)
    topology.operator("store", lambda event: event, inputs=["clean"], pool=16, execution_time_ms=40)
    return Scenario(topology, Trace("made", 1.0, np.array(rates))).changed(**more)


def test_a_worse_policy_is_not_let_in():
    result = simulate(scenario(HEAVY, canary="static:1,minutes=1"), "psps")
    assert len(result.deciders) == 1
    assert result.deciders[0].startswith("1 s: psps begins; static:1 decides in its shadow")
    assert result.late_ratio == simulate(scenario(HEAVY), "psps").late_ratio


def test_one_that_got_in_at_little_load_is_taken_back_by_itself():
    """`static:1` costs a tenth of `static:10` and is on time, until the load grows."""
    result = simulate(scenario(LIGHT + HEAVY, canary="static:1,minutes=1"), "static:10")
    _, over, back = result.deciders
    assert over.startswith("61 s: static:1 took over: ")
    assert "static:1 would have cost 90 % less than static:10" in over
    assert back.startswith("93 s: static:10 took back: static:1 was late with ")
    assert "promised: 1 % over 2000 ms" in back
    assert result.late_ratio < 0.2 * simulate(scenario(LIGHT + HEAVY), "static:1").late_ratio


def test_one_whose_lateness_no_fluid_sees_is_taken_back_by_what_is_seen():
    """With half of what `psps` wants there is always something that waits: in a fluid not for long, in truth it is."""
    guard = Canary(Psps(), Headroom(Psps(), 0.5), minutes=1, names=("psps", "half"))
    result = simulate(scenario(HEAVY), guard)
    _, over, back = result.deciders
    assert "half took over" in over
    assert "psps took back: half was late with" in back
    assert "promised: 1 % over 2000 ms" in back
    assert result.late_ratio < 0.5 * simulate(scenario(HEAVY), Headroom(Psps(), 0.5)).late_ratio


def test_a_better_one_takes_over_and_stays():
    result = simulate(scenario(HEAVY + HEAVY, canary="psps:minutes=1"), "static:16")
    alone = simulate(scenario(HEAVY + HEAVY), "static:16")
    assert [told.split(" ")[2] for told in result.deciders] == ["static:16", "psps"]
    assert result.replica_seconds < 0.7 * alone.replica_seconds
    assert result.late_ratio < 0.01


def test_a_shadow_changes_nothing():
    plain, beside = (simulate(scenario(LIGHT + HEAVY, shadow=one), "psps") for one in (None, "penstock"))
    assert (plain.late_ratio, plain.replica_seconds) == (beside.late_ratio, beside.replica_seconds)


def test_all_of_it_is_in_the_store(tmp_path):
    place = str(tmp_path / "metrics.db")
    simulate(scenario(LIGHT + HEAVY[:30], canary="static:1,minutes=1"), "static:8", store=place)
    with closing(Store(place, must_exist=True)) as store:
        run = store.run().run
        deciders, shadows, scores = store.deciders(run), store.shadows(run), store.scores(run)
    assert [(row.policy, row.before) for row in deciders] == [
        ("static:8", None),
        ("static:1", "static:8"),
        ("static:8", "static:1"),
    ]
    assert "took back" in deciders[2].reason
    over, back = deciders[1].number, deciders[2].number
    by_number = {row.number: row.policy for row in shadows}
    assert (by_number[over - 1], by_number[over], by_number[back]) == ("static:1", "static:8", "static:1")
    decided = {row.number: row for row in scores if row.role == "decides"}
    assert [decided[one].policy for one in (over - 1, over, back)] == ["static:8", "static:1", "static:8"]
    light = decided[over]
    assert (light.too_few, light.late, light.needed) == (0, 0.0, {"clean": 1, "store": 1})
    assert decided[over - 1].too_many == 14
    assert {row.number for row in scores if row.role == "shadow"} == decided.keys()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"canary": "static:1", "shadow": "static:2"}, "give one of shadow and canary"),
        ({"canary": "psps"}, "must be another policy than the one that decides; got 'psps' twice"),
        ({"shadow": "spsp"}, "policy: no such name 'spsp'"),
    ],
)
def test_mistakes_show_before_anything_is_played(more, message):
    with pytest.raises(InputError, match=message):
        simulate(scenario(LIGHT, **more), "psps")
