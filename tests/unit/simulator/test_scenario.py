from __future__ import annotations

import pickle
import re
from dataclasses import fields

import pytest

from penstock.errors import InputError
from penstock.simulator import Cluster, Contest, Plant, Scenario
from penstock.workload import Trace

from .setups import row_of

TRACE = Trace("made", 10.0, [10.0, 30.0])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"actuation": "restrat"}, "actuation: no such name 'restrat'; known: pool, restart, restart-lossy; did you"),
        ({"hop_s": -0.1}, "hop_s must be at least 0; got -0.1"),
        ({"hop_s": float("nan")}, "hop_s must be at least 0; got nan"),
        ({"activation_delay_s": -1}, "activation_delay_s must be at least 0; got -1"),
        ({"restart_s": float("inf")}, "restart_s must be at least 0; got inf"),
        ({"first_step_s": -2.0}, "first_step_s must be at least 0; got -2.0"),
        ({"td_s": 0}, "td_s must be above 0; got 0"),
        ({"target_ms": 0.0}, "target_ms must be above 0; got 0.0"),
        ({"t_out_s": 0.0}, "t_out_s must be above 0; got 0.0"),
        ({"q_size": 0}, "q_size must be whole and at least 1; got 0"),
        ({"overhead_s": {"clean": -0.5}}, "overhead_s of 'clean' must be at least 0; got -0.5"),
        ({"q_size": 2.5}, "q_size must be whole and at least 1; got 2.5"),
        ({"hop_s": True}, "hop_s must be at least 0; got True"),
        ({"cooldown_s": -1.0}, "cooldown_s must be at least 0; got -1.0"),
        ({"skew": -1.0}, "skew must be at least 0; got -1.0"),
        ({"slots": 0}, "slots must be whole and at least 1; got 0"),
        ({"balance_by": "busy"}, "balance_by: no such name 'busy'; known: booked, used"),
        ({"arrivals": "evenly"}, "arrivals: no such name 'evenly'; known: even, poisson; did you"),
        ({"grouping": "magic"}, "grouping: no such name 'magic'; known: shuffle, fields, "),
        ({"levels": "two"}, "levels: no such name 'two'; known: static, application, both"),
        ({"levels": "both", "workers": 0}, "workers must be whole and at least 1; got 0"),
        ({"workers": 3}, "workers: must come with levels static, application or both"),
        ({"topology": "dsn"}, "app 'dsn': no such application; known: twitter, "),
    ],
)
def test_a_field_that_breaks_its_rule_is_named_with_rule_and_value(values, message):
    with pytest.raises(InputError, match=re.escape(message)):
        Scenario("dns").changed(**values)


def test_bounds_are_off_by_default():
    assert (Plant().t_out_s, Plant().q_size, Plant().actuation) == (None, None, "pool")
    assert Plant(hop_s=0.0, activation_delay_s=0.0, restart_s=0.0, q_size=1).q_size == 1
    assert Plant(move_bandwidth=float("inf")).move_bandwidth == float("inf")


def test_a_scenario_is_a_value():
    one, two = (Scenario("dns", TRACE, pool=8).changed(td_s=2.0, state_bytes={"store": 5.0}) for _ in range(2))
    assert one == two == pickle.loads(pickle.dumps(one))
    assert {one: "found"}[two] == "found"
    assert one != two.changed(seed=1)
    assert "td_s=2.0" in repr(one)


def test_a_field_has_one_place():
    """`changed` finds a field by its name alone."""
    named = [one.name for part in (Scenario, Plant, Contest, Cluster) for one in fields(part)]
    assert len(named) == len(set(named))


def test_changed_takes_whole_parts_and_single_fields():
    scenario = Scenario("dns").changed(contest=Contest(td_s=30.0), target_ms=500, seed=3)
    assert (scenario.contest, scenario.seed) == (Contest(td_s=30.0, target_ms=500), 3)
    with pytest.raises(TypeError, match="a scenario has no field 'td'"):
        scenario.changed(td=3)


def test_an_application_has_an_input_of_its_own_and_others_need_one():
    assert round(Scenario("wordcount").input.peak) == 550
    assert Scenario("dns", TRACE).input is TRACE
    with pytest.raises(InputError, match="topology 'row': needs a trace; only shipped applications have an input"):
        _ = Scenario(row_of(10.0)).input


def test_played_changes_the_input_and_the_day():
    scenario = Scenario("dns", TRACE).played(mean_rate=40.0, speedup=2.0, duration_s=5.0)
    assert (scenario.input.duration_s, scenario.input.mean, scenario.contest.day_s) == (5.0, 20.0, 43_200.0)
    assert Scenario("dns", TRACE).played() == Scenario("dns", TRACE)


def test_the_deployment_of_the_paper_is_for_its_own_input_and_times():
    own = Scenario("wordcount")
    assert sum(own.deployed.values()) == sum(own.played(duration_s=60.0).deployed.values()) == 14
    others = [own.played(mean_rate=5.0), Scenario("wordcount", TRACE)]
    others += [own.changed(**value) for value in ({"pool": 3}, {"service_ms": 2.0}, {"replicas": {"split": 2}})]
    assert all(other.deployed == {} for other in others)
    assert own.changed(pool=3, deployed={"split": 2}).deployed == {"split": 2}
