from __future__ import annotations

import json
import math

import numpy as np
import pytest

from penstock.policy.static import Static
from penstock.simulator import simulate
from penstock.simulator.prepare import Prepared

from .plant.cases import Given
from .setups import scenario_of

FIELDS = {
    "policy",
    "saved_resources",
    "throughput_degradation",
    "processed_ratio",
    "latency_ms",
    "late_ratio",
    "replica_seconds",
    "oracle_ratio",
    "reconfigurations",
    "max_backlog",
    "dropped",
    "events",
    "wall_s",
}


def test_programs_find_all_fields():
    """Names that others rely on: more may come, none may go."""
    shown = simulate(scenario_of([10.0, 20.0], 20.0), "static:1").as_json()
    assert shown.keys() >= FIELDS
    assert shown["latency_ms"].keys() == {"mean", "p50", "p99"}
    assert shown["oracle_ratio"] is None  # no oracle ran beside it
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown


def test_what_failed_is_late_and_not_processed():
    """An event comes every 33 ms and takes 95: two of three find no room."""
    result = simulate(scenario_of([30.0], 95.0, q_size=1), Static(1))
    assert result.dropped == {"q_size": 200}
    assert result.processed_ratio == pytest.approx(1 / 3)
    assert result.late_ratio == pytest.approx(2 / 3)
    assert not result.meets_target


@pytest.mark.parametrize(("target_ms", "late", "meets"), [(600, 0.0, True), (330, 0.25, False)])
def test_late_is_counted_against_the_target(monkeypatch, target_ms, late, meets):
    """Eight events at once, one replica: 50, 100, … 400 ms."""
    monkeypatch.setattr(Prepared, "arrivals", lambda _: {"in": Given(np.full(8, 1.0))})
    result = simulate(scenario_of([0.8], 50.0, target_ms=target_ms), Static(1))
    assert result.latency_ms["mean"] == pytest.approx(225.0)
    assert (result.late_ratio, result.meets_target) == (late, meets)


def test_saved_resources_count_only_intervals_with_input():
    """r_over is ⌈40 · 0.1⌉ = 4; what runs on after the input has ended is paid for, and not averaged."""
    result = simulate(scenario_of([10.0, 40.0], 100.0), Static(3))
    assert result.r_over == 4
    assert result.saved_resources == pytest.approx(1 / 4)
    assert result.replica_seconds == 3 * 10.0 * len(result.history.times_s)


def test_max_backlog_and_degradation_come_from_the_intervals():
    result = simulate(scenario_of([10.0], 250.0), Static(1))
    assert result.max_backlog == max(result.history.backlog) == 60
    assert result.throughput_degradation == pytest.approx(0.6)
    assert math.isnan(result.oracle_ratio)
