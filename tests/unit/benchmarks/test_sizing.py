"""How the benchmark of sizes judges: a headroom that was chosen on one half of the traces, on the other half."""

from __future__ import annotations

import pytest
from sizing import SLOTS, chosen, in_slots, rows_of

from penstock.simulator.curves import Point, Setting, SweepResult


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


def test_workers_cost_all_their_slots() -> None:
    points = [Point("s", 0, "a", 1.0, 0.0, 30.0, worker_seconds=10.0), Point("s", 0, "oracle", 1.0, 0.0, 25.0)]
    found = in_slots(SweepResult({}, 0.01, {"s": 10.0}, points)).points
    assert [one.replica_seconds for one in found] == [10.0 * SLOTS, 25.0]
