from __future__ import annotations

import math
from dataclasses import replace

import pytest

from penstock.metrics import paper
from penstock.metrics.snapshot import IntervalLatency
from penstock.testing.loads import load, snapshot


@pytest.mark.parametrize(("replicas", "saved"), [(4, 0.875), (16, 0.5), (32, 0.0), (40, -0.25)])
def test_saved_resources_of_the_papers_static_runs(replicas, saved):
    """Four operators with r = 1, 4, 8 of r_over = 32; above it the metric is negative."""
    assert paper.saved_resources([replicas] * 7, 32) == pytest.approx(saved)


def test_saved_resources_of_the_complex_and_dns_applications():
    assert paper.saved_resources([40], 40) == 0
    assert paper.saved_resources([4], 12) == pytest.approx(0.6666, abs=1e-4)


def test_saved_resources_is_a_mean_over_intervals():
    assert paper.saved_resources([8, 24], 32) == pytest.approx(0.5)


def test_throughput_degradation_counts_a_catching_up_interval_too():
    assert paper.throughput_degradation([100, 100], [60, 140]) == pytest.approx(0.4)


def test_throughput_degradation_skips_intervals_without_input():
    assert paper.throughput_degradation([0, 100], [50, 100]) == 0


def test_without_intervals_or_events_there_is_no_number():
    assert math.isnan(paper.saved_resources([], 32))
    assert math.isnan(paper.throughput_degradation([0], [5]))
    assert math.isnan(paper.processed_ratio(0, 0))
    assert math.isnan(paper.mean_latency_ms([0], [math.nan]))


def test_processed_ratio():
    assert paper.processed_ratio(3319, 10000) == 0.3319


def test_r_over_is_the_total_at_the_peak():
    """Twitter's four operators of 10, 20, 15 and 10 ms at 800 events a second, the last with half of them."""
    shares = {"clean": 1.0, "content": 1.0, "author": 1.0, "store": 0.5}
    times_s = {"clean": 0.010, "content": 0.020, "author": 0.015, "store": 0.010}
    assert paper.static_replicas(800, shares, times_s) == {"clean": 8, "content": 16, "author": 12, "store": 4}
    assert paper.overestimated_replicas(800, shares, times_s) == 40


def test_an_idle_operator_still_has_one_replica():
    assert paper.static_replicas(0, {"a": 1.0}, {"a": 0.01}) == {"a": 1}


def test_the_four_metrics_of_a_run():
    base = snapshot({"in": 100}, [load("a", {"in": 100}, replicas=2)])
    run = [
        replace(base, source_output=50.0, latency=IntervalLatency(50, 100.0)),
        replace(base, source_output=150.0, latency=IntervalLatency(150, 20.0)),
    ]
    metrics = paper.paper_metrics(run, 8)
    assert metrics == paper.PaperMetrics(0.75, 0.5, 1.0, 40.0)
