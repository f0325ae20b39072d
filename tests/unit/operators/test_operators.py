"""The shipped operators with state."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.operators import Average, Distinct, RunningAverage
from penstock.state.codec import Codec
from penstock.topology import Topology
from penstock.topology.state_type import new_state


def test_distinct_gives_the_first_event_of_a_key() -> None:
    first, other = {}, {}
    assert [Distinct().process(n, first) for n in (1, 2, 3)] == [1, None, None]
    assert Distinct().process(4, other) == 4


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=40))
def test_the_mean_is_that_of_an_exact_sum(values: list[float]) -> None:
    average = Average()
    for value in values:
        mean = average.add(value)
    assert mean == pytest.approx(math.fsum(values) / len(values), rel=1e-12, abs=1e-9)
    assert average.count == len(values)


def test_small_values_beside_a_large_one_are_not_lost() -> None:
    average = Average()
    for value in (1e16, 1.0, 1.0, -1e16):
        mean = average.add(value)
    assert mean == 0.5


def test_what_is_not_a_number_is_left_out() -> None:
    state = Average()
    operator = RunningAverage("score", by="city")
    assert operator.process({"city": "Oslo", "score": math.nan}, state) is None
    assert operator.process({"city": "Oslo", "score": 4}, state) == {"city": "Oslo", "mean": 4.0, "count": 1}


@pytest.mark.parametrize("run", [Distinct(), RunningAverage("score", by="city")])
def test_they_can_be_declared_shipped_and_kept(run: Distinct | RunningAverage) -> None:
    topology = Topology("opinions")
    operator = topology.operator("state", run, inputs=topology.source("opinions"), key="city")
    topology.check()
    assert operator.state is not None
    kind = operator.state.kind
    codec = Codec("state", new_state(run, kind), kind)
    assert codec.check("Oslo", codec.new()) > 0  # it comes back as it was
