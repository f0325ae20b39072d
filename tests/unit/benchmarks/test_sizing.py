"""How the benchmark of sizes judges: a headroom that was chosen on one half of the traces, on the other half."""

from __future__ import annotations

import math
from argparse import Namespace
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sizing import SLOTS, Part, chosen, in_slots, kinds, numbers, parts, rows_of
from sizing_stage import BEFORE_S, TRACES, need, pieces, planned, workers_s

from penstock.simulator.curves import Point, Setting, SweepResult
from penstock.simulator.prepare import prepare
from penstock.workload import data_file, load_trace


def curve(*settings: tuple[float, float, float]) -> dict[float, Setting]:
    """By factor, late and cost."""
    return {factor: Setting("a", factor, late, cost) for factor, late, cost in settings}


def test_the_headroom_that_keeps_the_promise_most_often_is_chosen_and_of_these_the_cheapest() -> None:
    one = curve((1.0, 0.00, 1.0), (1.5, 0.00, 1.5), (2.0, 0.00, 2.0))
    other = curve((1.0, 0.09, 1.0), (1.5, 0.01, 1.5), (2.0, 0.00, 2.0))
    assert chosen({"s": one}, 0.01) == 1.0
    assert chosen({"s": one, "t": other}, 0.01) == 1.5
    assert chosen({"t": other}, 0.001) == 2.0


def test_a_policy_is_judged_where_its_headroom_was_not_chosen() -> None:
    points = [
        Point(trace, 0, "a", factor, late, cost)
        for trace, factor, late, cost in (
            ("s", 1.0, 0.0, 10.0), ("s", 2.0, 0.0, 20.0),
            ("t", 1.0, 0.5, 10.0), ("t", 2.0, 0.0, 40.0),
        )
    ]  # fmt: skip
    result = SweepResult({"policies": ["a"]}, 0.01, {"s": 10.0, "t": 10.0}, points)
    on_a, on_b = rows_of("replicas", result)
    assert (on_a.half, on_a.factor, on_a.kept, on_a.missed) == ("A", 2.0, 1, ())
    assert (on_a.cost, on_a.best) == pytest.approx((2.0, 1.0))
    assert (on_b.half, on_b.factor, on_b.kept, on_b.missed) == ("B", 1.0, 0, ("t",))
    assert (on_b.cost, on_b.best) == pytest.approx((1.0, 4.0))


def test_costs_are_told_beside_the_oracle_and_the_best_headroom_in_hindsight() -> None:
    """On `t` 2.2 was chosen, where 1.0 would have done; the oracle takes 8, and nobody keeps the promise on `v`."""
    rows = (
        ("s", "a", 1.0, 0.5, 10.0), ("s", "a", 2.2, 0.0, 20.0), ("s", "oracle", 1.0, 0.0, 8.0),
        ("t", "a", 1.0, 0.0, 10.0), ("t", "a", 2.2, 0.0, 22.0), ("t", "oracle", 1.0, 0.0, 8.0),
        ("u", "a", 1.0, 0.5, 10.0), ("u", "a", 2.2, 0.0, 20.0), ("u", "oracle", 1.0, 0.0, 8.0),
        ("v", "a", 1.0, 0.5, 10.0), ("v", "a", 2.2, 0.3, 22.0), ("v", "oracle", 1.0, 0.0, 8.0),
    )  # fmt: skip
    points = [Point(trace, 0, policy, factor, late, cost) for trace, policy, factor, late, cost in rows]
    result = SweepResult({"policies": ["a"]}, 0.01, dict.fromkeys("stuv", 5.0), points)
    _, on_b = rows_of("replicas", result, seen={"t", "s"})
    assert (on_b.half, on_b.factor, on_b.kept, on_b.traces) == ("B", 2.2, 1, 2)
    assert (on_b.cost, on_b.oracle) == pytest.approx((4.4, 2.75))
    assert (on_b.best, on_b.within) == pytest.approx((2.0, 2.2))
    assert (on_b.seen, on_b.missed) == (("t",), ("v",))


def asked(**values: object) -> Namespace:
    usual = {"policies": "penstock,cba:4,psps", "on_workers": "psps,cba", "td": [1.0, 5.0], "joining": [12.0, 180.0]}
    usual |= {"seconds": None, "grouping": None}
    return Namespace(**{**usual, "rates": [200.0], "arrivals": ["poisson"], "slow": False, **values})


def test_both_levels_are_played_at_every_interval_rate_and_kind_of_arrivals() -> None:
    found = parts(asked(rates=numbers("20,200"), arrivals=kinds("poisson, even")))
    assert len(found) == len({one.file for one in found}) == 2 * 2 * 3 * 2
    first, *_, last = found
    assert (first.name, first.policies) == ("replicas, td 1 s, 20/s, poisson", "penstock,psps")
    assert (last.name, last.policies) == ("workers after 180 s, td 5 s, 200/s, even", "psps,cba")
    assert parts(asked(slow=True))[0].policies == "penstock,cba:4,psps"


def test_traces_are_played_for_several_joining_times() -> None:
    """They were cut to 900 s, in which workers of three minutes join a few times at most."""
    lengths = [Part("", 5.0, "", joining_s).seconds(asked()) for joining_s in (None, 12.0, 180.0)]
    assert lengths == [480.0, 480.0, 1440.0]
    assert Part("", 5.0, "", 180.0).seconds(asked(seconds=60.0)) == 60.0


def test_pools_grow_with_the_rate() -> None:
    options = asked(pool=64, worker_pool=16, late=0.01, seconds=30.0)
    trace = next(iter(TRACES))
    scenario = Part("", 5.0, "psps", 60.0, rate=2000.0, arrivals="even").scenario(trace, options)
    assert (scenario.pool, scenario.arrivals, scenario.input.mean) == (160, "even", pytest.approx(2000.0))


def test_workers_cost_all_their_slots() -> None:
    """And in the place of the oracle, which has none, is a plan that knows all rates."""
    points = [Point("s", 0, "a", 1.0, 0.0, 30.0, worker_seconds=10.0), Point("s", 0, "oracle", 1.0, 0.0, 25.0)]
    found = in_slots(SweepResult({}, 0.01, {"s": 10.0}, points), {"s": 32.0}).points
    assert [one.replica_seconds for one in found] == [10.0 * SLOTS, 32.0]


def test_what_came_before_a_piece_is_scaled_with_it() -> None:
    for name in TRACES:
        before, played = pieces(name, 480.0, 200.0)
        assert played.mean == pytest.approx(200.0)
        assert (before.step_s, played.duration_s) == (played.step_s, 480.0)
        assert 600.0 < before.duration_s <= BEFORE_S
    whole = load_trace(data_file("traces", "demeter_cars_1s.csv"))
    before, played = pieces("demeter_cars_1s", 480.0, whole.window(BEFORE_S, BEFORE_S + 480.0).mean)
    assert before.rates.tolist() == pytest.approx(whole.rates[: len(before.rates)].tolist())


def cheapest(wanted: list[int], step_s: float, joining_s: float) -> float:
    """The same by trying all."""
    return min(
        step_s * sum(plan) + joining_s * sum(max(0, after - one) for one, after in pairwise(plan))
        for plan in product(range(max(wanted) + 1), repeat=len(wanted))
        if all(there >= least for there, least in zip(plan, wanted, strict=True))
    )


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.sampled_from([0.0, 3.0, 12.0, 60.0]))
def test_a_plan_of_workers_who_knows_all_is_the_cheapest_there_is(wanted: list[int], joining_s: float) -> None:
    assert workers_s(wanted, 5.0, joining_s) == pytest.approx(cheapest(wanted, 5.0, joining_s))


def test_who_knows_all_has_whole_workers_for_every_step() -> None:
    """With a slot for the source; never more than the peak needs."""
    scenario = Part("", 5.0, "psps", 60.0).scenario("demeter_cars_1s", asked(pool=64, worker_pool=16, late=0.01))
    workload, steps = prepare(scenario).workload, scenario.input.resampled(5.0)
    least, most = (
        math.ceil((sum(need(workload, rate).values()) + 1) / SLOTS) for rate in (steps.rates.min(), steps.peak)
    )
    found = planned(scenario, SLOTS, 60.0) / (SLOTS * scenario.input.duration_s)
    assert least <= found <= most
    assert scenario.replicas == need(workload, scenario.before.window(BEFORE_S - 60.0, BEFORE_S).peak)
