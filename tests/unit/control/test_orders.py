"""Orders as values: what they may say, and that they come back from JSON as they went."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.orders import (
    ORDERS,
    Freeze,
    Hold,
    Limit,
    Release,
    SetTd,
    Stop,
    Unfreeze,
    UseCanary,
    UseForecaster,
    UsePolicy,
    UseShadow,
    order_as_json,
    parse_order,
)
from penstock.errors import InputError

names = st.text(min_size=1).filter(str.strip)
counts = st.integers(1, 1000)
seconds = st.floats(0.2, 1e6)
orders = st.one_of(
    st.just(Freeze()),
    st.just(Unfreeze()),
    st.builds(lambda name, pair: Limit(name, *sorted(pair)), names, st.tuples(counts, counts)),
    st.builds(Limit, names, least=st.none() | counts),
    st.builds(Limit, names, most=st.none() | counts),
    st.builds(Hold, names, counts),
    st.builds(Release, names),
    st.builds(UsePolicy, names),
    st.builds(UseShadow, names),
    st.builds(UseCanary, names),
    st.builds(UseForecaster, names),
    st.builds(SetTd, seconds),
    st.builds(Stop, seconds),
)


@given(orders)
def test_an_order_comes_back_as_it_went(order):
    assert parse_order(json.loads(json.dumps(order_as_json(order)))) == order
    assert str(order)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ([], "order: must be an object with the key 'order'; got list"),
        ({}, f"order: no such name ''; known: {', '.join(ORDERS)}"),
        ({"order": "frezee"}, "did you mean 'freeze'?"),
        ({"order": "hold", "operator": "a"}, "order 'hold': needs replicas"),
        ({"order": "hold"}, "order 'hold': needs operator and replicas"),
        ({"order": "hold", "operator": "a", "replicas": 0}, "replicas must be whole and at least 1; got 0"),
        ({"order": "hold", "operator": "a", "replicas": True}, "replicas must be whole and at least 1; got True"),
        ({"order": "hold", "operator": 3, "replicas": 1}, "order 'hold': operator must be a name; got 3"),
        ({"order": "limit", "operator": "a", "lest": 1}, "did you mean 'least'?"),
        ({"order": "limit", "operator": "a", "least": 5, "most": 2}, "least must be at most 2, as most is; got 5"),
        ({"order": "policy", "policy": " "}, "order 'policy': policy must be a name; got ' '"),
        ({"order": "td", "td_s": "1"}, "order 'td': td_s must be a number above 0; got '1'"),
        ({"order": "td", "td_s": float("nan")}, "td_s must be a number above 0; got nan"),
        ({"order": "freeze", "operator": "a"}, "order 'freeze': no such key 'operator'; known: none"),
    ],
)
def test_a_wrong_order_says_what_is_wrong(value, told):
    with pytest.raises(InputError) as caught:
        parse_order(value)
    assert told in str(caught.value)
