from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.workload import Trace, constant

rates = st.one_of(st.just(0.0), st.floats(min_value=1e-3, max_value=1e5))
steps = st.floats(min_value=1e-2, max_value=1e4)
traces = st.builds(Trace, st.just("made"), steps, st.lists(rates, min_size=1, max_size=40))
busy_traces = traces.filter(lambda trace: trace.events > 0)


def test_its_numbers():
    trace = Trace("t", 10.0, [2.0, 0.0, 4.0])
    assert (trace.duration_s, trace.mean, trace.peak, trace.events) == (30.0, 2.0, 4.0, 60.0)


def test_rate_at_belongs_to_the_step_that_starts_there():
    trace = Trace("t", 10.0, [2.0, 0.0, 4.0])
    assert [trace.rate_at(t) for t in (-0.1, 0, 9.9, 10, 20, 29.9, 30)] == [0, 2, 2, 0, 4, 4, 0]


def test_cumulated_is_linear_in_a_step_and_flat_outside():
    trace = Trace("t", 10.0, [2.0, 0.0, 4.0])
    assert trace.cumulated([-5, 0, 5, 10, 15, 25, 99]).tolist() == [0, 0, 10, 20, 20, 40, 60]


def test_time_of_skips_silent_steps():
    trace = Trace("t", 10.0, [0.0, 1.0, 0.0, 0.0, 2.0, 0.0])
    due = trace.time_of([0, 9, 9.999, 10, 29, 30, 1000])
    assert due.tolist() == pytest.approx([10, 19, 19.999, 40, 49.5, math.inf, math.inf])
    assert due[3] == 40.0


def test_time_of_takes_any_shape():
    trace = constant(2.0, 10.0)
    assert trace.time_of(4).shape == ()
    assert trace.time_of([[0, 1], [2, 3]]).tolist() == [[0.0, 0.5], [1.0, 1.5]]


def test_time_of_a_silent_trace_is_never():
    assert np.isinf(Trace("t", 1.0, [0.0, 0.0]).time_of([0, 1])).all()
    assert np.isinf(Trace("t", 0.1, [5e-324]).time_of([0, 1])).all()  # so few that they round to none


@pytest.mark.parametrize("numbers", [[-1], [0, float("nan")]])
def test_time_of_wants_event_numbers(numbers):
    with pytest.raises(InputError, match="trace 't': event numbers must not be negative; got"):
        Trace("t", 1.0, [1.0]).time_of(numbers)


@given(busy_traces, st.data())
def test_time_of_and_cumulated_are_inverse(trace, data):
    last = math.ceil(trace.events) - 1
    numbers = sorted(data.draw(st.lists(st.integers(0, last), min_size=1, max_size=50)))
    due = trace.time_of(numbers)
    assert np.isfinite(due).all()
    assert (np.diff(due) >= 0).all()
    assert ((due >= 0) & (due < trace.duration_s)).all()
    assert all(trace.rate_at(t) > 0 for t in due)
    np.testing.assert_allclose(trace.cumulated(due), numbers, rtol=1e-9, atol=1e-6)


@given(traces)
def test_every_event_falls_in_its_step(trace):
    trace = trace.scaled(mean_rate=20.0 / trace.duration_s) if trace.events else trace
    due = trace.time_of(np.arange(30))
    counted = np.histogram(due[np.isfinite(due)], bins=np.arange(len(trace.rates) + 1) * trace.step_s)[0]
    assert (np.abs(counted.cumsum() - trace.rates.cumsum() * trace.step_s) <= 1 + 1e-6).all()


@given(busy_traces, st.floats(min_value=1e-3, max_value=1e6))
def test_scaled_has_the_mean_asked_for(trace, mean):
    scaled = trace.scaled(mean_rate=mean)
    assert scaled.mean == pytest.approx(mean, rel=1e-12)
    np.testing.assert_allclose(scaled.rates * trace.mean, trace.rates * mean, rtol=1e-9)


def test_scaled_stands_rates_near_zero():
    assert Trace("t", 1.0, [5e-324, 0.0]).scaled(mean_rate=3.0).rates.tolist() == [6.0, 0.0]


def test_scaled_refuses_a_silent_trace():
    with pytest.raises(InputError, match="trace 't': a trace to rescale must have events; got none in 2 steps"):
        Trace("t", 1.0, [0.0, 0.0]).scaled(mean_rate=3.0)


@given(traces, st.floats(min_value=1e-2, max_value=1e3))
def test_compressed_keeps_rates_and_divides_events(trace, speedup):
    fast = trace.compressed(speedup)
    assert np.array_equal(fast.rates, trace.rates)
    assert fast.events == pytest.approx(trace.events / speedup)
    assert fast.duration_s == pytest.approx(trace.duration_s / speedup)


@given(traces, st.floats(min_value=0.05, max_value=20.0))
def test_resampled_conserves_events(trace, ratio):
    other = trace.resampled(step_s=trace.step_s * ratio)
    assert other.step_s == trace.step_s * ratio
    assert other.events == pytest.approx(trace.events, rel=1e-9, abs=1e-6)
    assert other.duration_s > trace.duration_s * (1 - 1e-6)
    assert other.duration_s < trace.duration_s + other.step_s


@given(traces, st.floats(0, 1), st.floats(0, 1))
def test_window_has_the_length_and_the_events_asked_for(trace, one, other):
    start, end = sorted((one * trace.duration_s, other * trace.duration_s))
    if end - start < 1e-3 * trace.step_s:
        return
    part = trace.window(start, end)
    due = trace.cumulated([start, end])
    assert part.duration_s == pytest.approx(end - start, rel=1e-4)
    assert part.events == pytest.approx(due[1] - due[0], rel=1e-6, abs=1e-6 * (1 + trace.events))


def test_window_on_the_grid_is_a_slice():
    trace = Trace("t", 0.1, np.arange(10.0))
    assert trace.window(0.3, 0.7).rates.tolist() == [3.0, 4.0, 5.0, 6.0]


def test_window_off_the_grid_keeps_its_bounds():
    part = Trace("t", 10.0, [1.0, 3.0, 5.0]).window(5.0, 22.0)
    assert (part.duration_s, part.step_s) == (17.0, 8.5)
    assert part.events == pytest.approx(5 * 1 + 10 * 3 + 2 * 5)


@pytest.mark.parametrize("bounds", [(5.0, 5.0), (6.0, 5.0), (0.0, 31.0)])
def test_window_must_lie_in_the_trace(bounds):
    with pytest.raises(InputError, match=r"trace 't': a window must have start_s < end_s <= 30; got \d to \d"):
        Trace("t", 10.0, [1.0, 3.0, 5.0]).window(*bounds)


def test_limited_cuts_the_end_off_or_nothing():
    trace = Trace("t", 10.0, [1.0, 3.0, 5.0])
    assert trace.limited(20.0).rates.tolist() == [1.0, 3.0]
    assert trace.limited(25.0).duration_s == 25.0
    assert trace.limited(99.0) is trace


def test_describe():
    about = Trace("t", 10.0, [1.0, 2.0, 3.0, 2.0]).describe()
    assert (about.rows, about.step_s, about.duration_s) == (4, 10.0, 40.0)
    assert (about.min, about.mean, about.max, about.peak_to_mean) == (1.0, 2.0, 3.0, 1.5)
    assert about.cv == pytest.approx(math.sqrt(0.5) / 2)
    assert about.autocorrelation == 0.0


def test_describe_says_nan_where_there_is_no_answer():
    about = Trace("t", 10.0, [0.0]).describe()
    assert all(math.isnan(x) for x in (about.peak_to_mean, about.cv, about.autocorrelation))


def test_a_trace_is_a_value():
    source = np.array([1.0, 2.0])
    trace = Trace("t", 1.0, source)
    source[0] = 99.0
    assert trace.rates.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        trace.rates[0] = 5.0
    assert trace == pickle.loads(pickle.dumps(trace)) == Trace("t", 1.0, [1.0, 2.0])
    assert hash(trace) == hash(Trace("t", 1.0, [1.0, 2.0]))
    assert trace != Trace("t", 2.0, [1.0, 2.0])
    assert trace != Trace("t", 1.0, [1.0, 2.5])
    assert trace != "t"


@pytest.mark.parametrize(
    ("step_s", "values", "message"),
    [
        (0, [1.0], "trace 't': step_s must be a number above 0; got 0"),
        ("1", [1.0], "trace 't': step_s must be a number above 0; got '1'"),
        (True, [1.0], "trace 't': step_s must be a number above 0; got True"),
        (math.inf, [1.0], "trace 't': step_s must be a number above 0; got inf"),
        (1.0, [], "trace 't': rates must be a row of at least 1; got shape (0,)"),
        (1.0, [[1.0]], "trace 't': rates must be a row of at least 1; got shape (1, 1)"),
        (1.0, [1.0, -2.0], "trace 't' step 1: rate must not be negative; got -2.0"),
        (1.0, [math.nan], "trace 't' step 0: rate must be a finite number; got nan"),
        (1.0, [2e15], "trace 't' step 0: rate must be at most 1e+15; got 2000000000000000.0"),
    ],
)
def test_a_trace_that_breaks_a_rule(step_s, values, message):
    with pytest.raises(InputError) as caught:
        Trace("t", step_s, values)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.scaled(mean_rate=0.0), "mean_rate must be a number above 0; got 0.0"),
        (lambda t: t.compressed(np.float64(-1)), "speedup must be a number above 0; got -1.0"),
        (lambda t: t.compressed(math.nan), "speedup must be a number above 0; got nan"),
        (lambda t: t.resampled(0), "step_s must be a number above 0; got 0"),
        (lambda t: t.resampled(1e-9), "duration_s must be at most 100000000 steps; got 2e+09"),
        (lambda t: t.window(-1.0, 1.0), "start_s must be a number of at least 0; got -1.0"),
        (lambda t: t.limited(0.0), "duration_s must be a number above 0; got 0.0"),
    ],
)
def test_a_parameter_that_breaks_a_rule(call, message):
    with pytest.raises(InputError) as caught:
        call(Trace("t", 1.0, [1.0, 2.0]))
    assert str(caught.value) == f"trace 't': {message}"


def test_constant_fits_the_step_to_the_duration():
    trace = constant(4.0, 10.0, step_s=3.0)
    assert (len(trace.rates), trace.duration_s, trace.events) == (3, 10.0, 40.0)


@pytest.mark.parametrize(("rate", "duration_s"), [(-1.0, 10.0), (1.0, 0.0), (1.0, math.inf), (1.0, 1e12)])
def test_constant_checks_what_it_is_given(rate, duration_s):
    with pytest.raises(InputError, match=r"trace 'constant': (rate|duration_s) must"):
        constant(rate, duration_s)
