"""Slots for a promise: sized so, a batch takes as long as it may."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.attached.model.cost import Cost
from penstock.attached.model.demand import Pace, Promise, out_of_reach, pace_of, room_s, row_time_s
from penstock.errors import InputError

COST = Cost(by_row_s=0.01, by_batch_s=0.5, fixed_s=0.5, surprise=1.0)


def test_the_pace_of_a_trigger() -> None:
    assert pace_of(5.0, Promise(20.0)) == Pace(5.0, 15.0)
    assert pace_of(5.0, Promise(20.0)).usual_s == 4.0  # it must not fall behind, though rows would bear it
    assert pace_of(5.0, Promise(8.0)).usual_s == 3.0
    assert pace_of(0.0, Promise(8.0)).longest_s == 8.0


def test_a_target_that_the_trigger_alone_uses_up_is_refused() -> None:
    with pytest.raises(InputError, match=r"^query 'q': target_ms must be above its trigger's interval of 5000 ms; got"):
        pace_of(5.0, Promise(5.0), "query 'q'")


@given(
    rate=st.floats(1.0, 1e5),
    by_row_s=st.floats(1e-5, 1.0),
    by_batch_s=st.floats(0.0, 10.0),
    fixed_s=st.floats(0.0, 2.0),
    spread=st.floats(1.0, 3.0),
)
def test_so_many_slots_make_a_batch_take_what_it_may(
    rate: float, by_row_s: float, by_batch_s: float, fixed_s: float, spread: float
) -> None:
    cost = Cost(by_row_s=by_row_s, by_batch_s=by_batch_s, fixed_s=fixed_s, spread=spread, surprise=1.0)
    pace = Pace(5.0, 3.0)
    slots = rate * row_time_s(cost, pace, rate)
    assert cost.seconds(rate * 5.0, slots) == pytest.approx(3.0)
    assert cost.seconds(rate * 5.0, math.ceil(slots)) <= 3.0 + 1e-9


def test_surprises_take_room() -> None:
    often = Cost(by_row_s=0.01, by_batch_s=0.5, fixed_s=0.5, surprise=1.5)
    assert room_s(often, Pace(5.0, 3.0)) == pytest.approx(1.5)
    assert row_time_s(often, Pace(5.0, 3.0), 100.0) > row_time_s(COST, Pace(5.0, 3.0), 100.0)


def test_a_surprise_that_the_target_bears_takes_none() -> None:
    """Batches that took twice as long once in a while had twice the slots, though no row was late."""
    often = Cost(by_row_s=0.01, by_batch_s=0.5, fixed_s=0.5, surprise=2.0)
    assert room_s(often, Pace(3.0, 7.0)) == pytest.approx(3.0 / 1.25 - 0.5)


def test_what_no_slot_shortens_is_said_and_does_not_make_slots_without_end() -> None:
    slow = Cost(by_row_s=0.01, by_batch_s=0.0, fixed_s=30.0)
    assert row_time_s(slow, Pace(5.0, 3.0), 100.0) == pytest.approx(0.01 * 5.0 / 0.6)
    assert out_of_reach(COST, Pace(5.0, 3.0)) is None
    assert str(out_of_reach(slow, Pace(5.0, 3.0))).startswith("a batch takes 30 s whatever the slots")


def test_without_rows_there_is_still_a_time() -> None:
    assert 0 < row_time_s(COST, Pace(5.0, 3.0), 0.0) < math.inf
