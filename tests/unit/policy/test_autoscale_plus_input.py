"""Estim R, Estim Out and Estim Input, worked out by hand."""

from __future__ import annotations

import pytest

from penstock.policy.autoscale_plus import Iteration, Measurement, estimate_inputs, measured
from penstock.testing.loads import load, snapshot


def after(snapshots, *, size=3, combine="max"):
    """The estimates after these snapshots, numbered from 1."""
    iterations = {}
    for number, seen in enumerate(snapshots, start=1):
        for name, one in seen.operators.items():
            if name not in seen.incomplete:
                iterations.setdefault(name, Iteration(size)).add(measured(one, seen, number))
    return estimate_inputs(iterations, seen, number, combine)


def test_estim_r_sums_the_trend_over_the_next_time_stamps():
    """10, 20 and 30 at 1, 2 and 3 lie on 10·x: 40 + 50 + 60 = 150 at 4, 5 and 6; 12 wait."""
    estimate = after(snapshot({"in": n}, [load("a", {"in": n}, backlog=12)]) for n in (10, 20, 30))["a"]
    assert (estimate.own, estimate.form, estimate.parents) == (pytest.approx(150), "linear", None)
    assert estimate.events == pytest.approx(162)
    assert str(estimate) == "162 events (150 by its linear trend; 12 backlog)"


def test_estim_r_of_a_doubling_input():
    """5, 10, 20 double: 40 + 80 + 160 = 280."""
    estimate = after(snapshot({"in": n}, [load("a", {"in": n})]) for n in (5, 10, 20))["a"]
    assert (estimate.form, estimate.own) == ("exponential", pytest.approx(280))


def test_rates_are_per_second_and_the_next_iteration_has_intervals_of_td():
    """20 events in intervals of 4 s are 5 a second; 3 intervals of 2 s bring 3 · 2 · 5 = 30."""
    seen = [snapshot({"in": 20}, [load("a", {"in": 20})], interval_s=4.0, td_s=2.0)] * 3
    assert after(seen)["a"].own == pytest.approx(30)


def test_a_gap_in_the_measurements_is_a_gap_in_time():
    """10 at 1, 20 at 2 and 40 at 4 lie on 10·x; after 4 come 50 + 60 + 70 = 180."""
    last = Iteration(3)
    for number, rate in ((1, 10.0), (2, 20.0), (4, 40.0)):
        last.add(Measurement(number, rate, rate, 0, {}))
    assert last.expected_rates(4) == (pytest.approx(180), "linear")
    assert last.expected_rates(5)[0] == pytest.approx(60 + 70 + 80)


def chain(received, *, backlog_a=0, backlog_b=0, sent=50, **more):
    tail = load("b", {"a": sent}, backlog=backlog_b, **more)
    return snapshot({"in": received}, [load("a", {"in": received}, backlog=backlog_a), tail])


@pytest.mark.parametrize(("combine", "events"), [("max", 185), ("min", 155)])
def test_a_child_takes_its_parents_output_or_its_own_trend(combine, events):
    """a: 3 · 100 + 60 = 360; α = 50 / 100; b: Estim R 150, Estim Out 180; and 5 wait."""
    estimates = after([chain(100, backlog_a=60, backlog_b=5)] * 3, combine=combine)
    assert estimates["a"].events == pytest.approx(360)
    assert (estimates["b"].own, estimates["b"].parents) == pytest.approx((150, 180))
    assert estimates["b"].events == pytest.approx(events)
    assert "150 by its linear trend, 180 by its parents; 5 backlog" in str(estimates["b"])


def test_selectivity_is_the_mean_of_the_iteration_weighted_by_events():
    """b got 10 of 100, 90 of 100 and 100 of 200: 200 of 400, α = 0.5; the interval before has left the window."""
    seen = [chain(100, sent=900)] + [chain(n, sent=sent) for n, sent in ((100, 10), (100, 90), (200, 100))]
    a, b = after(seen).values()
    assert b.parents == pytest.approx(a.events * 0.5)


def test_a_parent_that_processed_nothing_keeps_the_selectivity_last_known():
    stuck = snapshot({"in": 100}, [load("a", {"in": 100}, 0, backlog=100), load("b", {"a": 0})])
    a, b = after([chain(100, sent=20)] + [stuck] * 3).values()
    assert b.parents == pytest.approx(a.events * 0.2)


def test_at_the_start_the_declared_selectivity_counts():
    stuck = snapshot({"in": 9}, [load("a", {"in": 9}, 0), load("b", {"a": 0}, declared_shares={"a": 5.0})])
    a, b = after([stuck] * 3).values()
    assert b.parents == pytest.approx(a.events * 5)


def test_a_diamond_adds_up_its_branches():
    """a 3 · 100 = 300; b 0.7 of it, c 0.3; d gets 0.4 of b's 210 and all of c's 90: 84 + 90 = 174."""
    loads = [
        load("a", {"in": 100}),
        load("b", {"a": 70}),
        load("c", {"a": 30}),
        load("d", {"b": 28, "c": 30}),
    ]
    estimates = after([snapshot({"in": 100}, loads)] * 3)
    assert [one.events for one in estimates.values()] == pytest.approx([300, 210, 90, 174])
    assert estimates["d"].parents == pytest.approx(174)


def test_what_a_source_sends_beside_a_parent_goes_on_by_its_own_trend():
    """a: 3 · 10 = 30, all of it to b; y sends b 10, 20, 30 and then 40 + 50 + 60: 180, whatever combine is."""
    seen = [snapshot({"x": 10, "y": n}, [load("a", {"x": 10}), load("b", {"a": 10, "y": n})]) for n in (10, 20, 30)]
    for combine in ("max", "min"):
        assert after(seen, combine=combine)["b"].events == pytest.approx(180)


def test_operators_of_several_sources_take_their_trend_alone():
    seen = [snapshot({"x": n, "y": 5}, [load("a", {"x": n, "y": 5})]) for n in (10, 20, 30)]
    assert after(seen, combine="min")["a"].events == pytest.approx(150 + 15)


def test_no_estimate_before_the_iteration_is_full_and_children_do_without():
    """b is measured from the first interval on, a from the second: b has its own trend only."""
    seen = [chain(100)] * 3
    late = snapshot({"in": 100}, seen[0].operators.values(), incomplete={"a": "stale"})
    estimates = after([late, *seen[1:]])
    assert "a" not in estimates
    assert (estimates["b"].parents, estimates["b"].events) == (None, pytest.approx(150))


def test_nothing_is_learnt_of_an_edge_from_a_parent_with_bad_numbers():
    bad = snapshot({"in": 100}, [load("a", {"in": 100}, 1), load("b", {"a": 50})], incomplete={"a": "went back"})
    a, b = after([*[chain(100)] * 3, bad]).values()
    assert b.parents == pytest.approx(a.events * 0.5)


def test_zero_events_stay_zero():
    estimates = after([chain(0, sent=0)] * 3)
    assert [one.events for one in estimates.values()] == [0.0, 0.0]
