from __future__ import annotations

import pytest

from penstock.errors import InputError
from penstock.policy.autoscale_plus import AutoscalePlus
from penstock.policy.psps import Psps
from penstock.policy.registry import POLICIES, make_policy, policy_for
from penstock.policy.static import Static


def test_options_in_the_text_and_as_keywords():
    policy = make_policy("psps:predecessor_backlog=true", use_forecast=True)
    assert isinstance(policy, Psps)
    assert (policy.predecessor_backlog, policy.use_forecast) == (True, True)


def test_a_number_after_the_name():
    policy = make_policy("static:4")
    assert isinstance(policy, Static)
    assert policy.replicas == 4


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError, match=rf"policy: no such name 'pspx'; known: {', '.join(POLICIES.names)}"):
        make_policy("pspx")


def test_the_peers_are_known():
    assert {"oracle", "ds2", "flink", "keda", "dstream"} <= set(POLICIES.names)


def test_those_of_dabs_storm_are_known():
    assert {"autoscale_plus", "dabs", "incremental", "learning"} <= set(POLICIES.names)
    assert isinstance(make_policy("dabs:iteration=4,combine=min"), AutoscalePlus)
    assert make_policy("incremental:high=0.7").high == 0.7


def test_the_value_after_the_name_is_the_option_that_is_given_most():
    assert make_policy("flink:short").settings.window_s == 60
    assert make_policy("keda:10").seconds == 10
    assert make_policy("dstream:30").every_s == 30
    assert make_policy("ds2:use_forecast").use_forecast is True


@pytest.mark.parametrize(
    ("spec", "used"), [("psps", True), ("ds2", True), ("psps:use_forecast=false", False), ("ds2:use_forecast", True)]
)
def test_with_a_forecaster_one_that_can_uses_it_unless_the_text_says_otherwise(spec, used):
    assert policy_for(spec, forecaster="drift").use_forecast is used


def test_an_unknown_option_lists_the_known_ones():
    with pytest.raises(InputError, match="no such option 'backlog'; known: predecessor_backlog, use_forecast"):
        make_policy("psps:backlog")
