from __future__ import annotations

import pytest

from penstock.errors import InputError
from penstock.policy.psps import Psps
from penstock.policy.registry import make_policy
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
    with pytest.raises(InputError, match=r"policy: no such name 'pspx'; known: psps, static$"):
        make_policy("pspx")


def test_an_unknown_option_lists_the_known_ones():
    with pytest.raises(InputError, match="no such option 'backlog'; known: predecessor_backlog, use_forecast"):
        make_policy("psps:backlog")
