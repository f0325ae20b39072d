"""A trace replayed: which events are due when, and what they are."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.sources import TraceSource
from penstock.workload import Trace, constant

rates = st.lists(st.sampled_from([0.0, 0.3, 1.0, 2.0, 7.5]) | st.floats(0, 20), min_size=1, max_size=6)
steps = st.sampled_from([0.1, 1.0, 2.5])


@given(rates, steps, st.floats(-1, 20), st.none() | st.integers(0, 10))
def test_due_counts_exactly_the_events_whose_time_has_come(
    rates: list[float], step_s: float, elapsed_s: float, limit: int | None
) -> None:
    """The first event after a silence used to be sent when the silence began."""
    source = TraceSource(Trace("t", step_s, rates), ["x"], events=limit)
    assert source.due(elapsed_s) == sum(time <= elapsed_s for time in source.due_times(range(source.total)))


@given(rates, steps, st.integers(0, 50))
def test_an_event_is_due_at_its_own_time_and_not_a_moment_before(
    rates: list[float], step_s: float, number: int
) -> None:
    source = TraceSource(Trace("t", step_s, rates), ["x"])
    if number < source.total:
        (time,) = source.due_times(range(number, number + 1))
        assert source.due(time) >= number + 1
        assert source.due(math.nextafter(time, -math.inf)) <= number


@given(rates, steps)
def test_due_never_goes_back_and_ends_with_the_total(rates: list[float], step_s: float) -> None:
    trace = Trace("t", step_s, rates)
    source = TraceSource(trace, ["x"])
    due = [source.due(trace.duration_s * part / 40) for part in range(-2, 50)]
    assert due == sorted(due)
    assert due[0] == 0
    assert due[-1] == source.total == round(trace.events)


def test_a_silent_start_sends_nothing() -> None:
    source = TraceSource(Trace("t", 1.0, [0.0, 2.0]), ["x"])
    assert [source.due(time) for time in (0.0, 0.5, 1.0, 1.4, 1.5, 9.0)] == [0, 0, 1, 1, 2, 2]


def test_a_silent_trace_has_no_events() -> None:
    source = TraceSource(Trace("t", 1.0, [0.0, 0.0]), ["x"])
    assert (source.total, source.due(0.0), source.due(99.0)) == (0, 0, 0)


@pytest.mark.parametrize(("limit", "total"), [(None, 50), (10, 10), (0, 0), (1000, 50)])
def test_the_total_is_the_traces_or_the_limit(limit: int | None, total: int) -> None:
    source = TraceSource(constant(5.0, 10.0), ["x"], events=limit)
    assert source.total == total
    assert source.due(99.0) == total


def test_payloads_come_in_turn_and_the_same_for_the_same_number() -> None:
    source = TraceSource(constant(5.0, 10.0), ["a", "b", "c"])
    assert source.read(range(5)) == ["a", "b", "c", "a", "b"]
    assert source.read(range(4, 20, 5)) == ["b", "a", "c", "b"]
    assert source.read(range(3, 3)) == []


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 5))
def test_times_of_any_range_are_those_of_its_numbers(start: int, stop: int, step: int) -> None:
    source = TraceSource(Trace("t", 1.0, [3.0, 0.0, 10.0, 20.0]), ["x"])
    each = [source.due_times(range(number, number + 1))[0] for number in range(start, stop, step)]
    assert source.due_times(range(start, stop, step)) == each


def test_no_payloads_are_an_error() -> None:
    with pytest.raises(InputError, match="trace source 'constant': needs at least one payload; got none"):
        TraceSource(constant(5.0, 10.0), [])
