"""What Prometheus is told, read by the parser of its own client."""

from __future__ import annotations

import math
import shutil
import subprocess
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from penstock.control.steering import Steering
from penstock.control.step import LoopState, Step
from penstock.metrics.counters import CheckpointStatus, OperatorCounters, ReplicaCounters, RunCounters
from penstock.metrics.latency import LatencyHistogram
from penstock.metrics.rows import DeciderRow, PromiseRow, ShadowRow
from penstock.metrics.scores import Scored
from penstock.ui.exposition import BOUNDS_S, RunMetrics

from .conftest import Make


def latency(*values_ms: float) -> LatencyHistogram:
    found = LatencyHistogram()
    for value_ms in values_ms:
        found.add(value_ms)
    return found


def counters(processed: int = 90, *latencies_ms: float, restarts: int = 0) -> RunCounters:
    replica = ReplicaCounters(
        received={"lines": 100},
        processed=processed,
        dropped={"t_out": 4},
        busy_s=1.5,
        cpu_s=1.0,
        queued=3,
        latency=latency(*latencies_ms),
    )
    operator = OperatorCounters({0: replica}, (0,), pool=8, backlog=6, held_by={"lines": 2})
    return RunCounters(
        time_s=1.0,
        sources={"lines": 100},
        operators={"count": operator},
        restarts=restarts,
        lag={"lines": 7},
        source_dropped={"lines": {"expired": 1}},
    )


class Run:
    """As much of a run as is asked for."""

    def __init__(self) -> None:
        self.name = "words-1"
        self.now = counters()
        self.loop_state = LoopState()
        self.steering = Steering()
        self.checkpoints = CheckpointStatus()

    def checkpoint_status(self) -> CheckpointStatus:
        return self.checkpoints

    def counters(self) -> RunCounters:
        return self.now


@pytest.fixture
def run() -> Run:
    return Run()


@pytest.fixture
def metrics(run: Run) -> RunMetrics:
    return RunMetrics(run, "words", "psps", PromiseRow(late=0.01, target_ms=2000.0))


def told(metrics: RunMetrics) -> dict[tuple[str, ...], float]:
    """Every sample: its name and the values of its labels, by their names, and the value."""
    content, kind = metrics.exposition()
    assert kind.startswith("text/plain")
    families = text_string_to_metric_families(content.decode())
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in families
        for sample in family.samples
    }


def test_the_counters_are_told(metrics: RunMetrics) -> None:
    found = told(metrics)
    assert found["penstock_run_info", "psps", "words-1", "words"] == 1
    assert found["penstock_events_entered_total", "lines"] == 100
    assert found["penstock_events_received_total", "count"] == 100
    assert found["penstock_events_processed_total", "count"] == 90
    assert found["penstock_events_dropped_total", "t_out", "count"] == 4
    assert found["penstock_source_events_dropped_total", "expired", "lines"] == 1
    assert found["penstock_busy_seconds_total", "count"] == 1.5
    assert found["penstock_replicas", "count"] == 1
    assert found["penstock_pool_replicas", "count"] == 8
    assert found["penstock_lag_events", "lines"] == 7
    waits = {where: found["penstock_backlog_events", "count", where] for where in ("held", "booked", "on_its_way")}
    assert waits == {"held": 2, "booked": 3, "on_its_way": 1}


def test_names_and_types_are_as_prometheus_has_them(metrics: RunMetrics, make: Make) -> None:
    metrics.record(make(1))
    for family in text_string_to_metric_families(metrics.exposition()[0].decode()):
        assert family.name.startswith("penstock_")
        assert family.documentation
        assert family.type in ("counter", "gauge", "histogram")
        assert not family.name.endswith(("_ms", "_milliseconds", "_percent"))
        if family.type == "counter":
            assert all(sample.name.endswith("_total") for sample in family.samples)


def test_checkpoints_are_told_where_there_are_any(metrics: RunMetrics, run: Run) -> None:
    assert not any("checkpoint" in name for name, *_ in told(metrics))
    run.checkpoints = CheckpointStatus(age_s=3.5, every_s=10.0)
    before = {key: value for key, value in told(metrics).items() if "checkpoint" in key[0]}
    assert before == {
        ("penstock_checkpoint_age_seconds",): 3.5,
        ("penstock_checkpoint_interval_seconds",): 10.0,
        ("penstock_checkpoints_committed_total",): 0,
        ("penstock_checkpoints_given_up_total",): 0,
    }
    run.checkpoints = CheckpointStatus(
        number=7, took_s=0.25, committed=6, given_up=1, size_bytes=1200, age_s=0.5, every_s=10.0
    )
    found = told(metrics)
    assert found["penstock_checkpoint_duration_seconds",] == 0.25
    assert found["penstock_checkpoint_size_bytes",] == 1200
    assert (found["penstock_checkpoint_age_seconds",], found["penstock_checkpoints_committed_total",]) == (0.5, 6)
    assert found["penstock_checkpoints_given_up_total",] == 1


def test_latency_is_a_histogram(metrics: RunMetrics, run: Run) -> None:
    run.now = counters(90, 1.5, 15.0, 150.0, 3000.0, 400_000.0)
    found = told(metrics)
    bounds = [found["penstock_latency_seconds_bucket", str(float(bound_s))] for bound_s in BOUNDS_S]
    assert bounds == sorted(bounds)
    assert found["penstock_latency_seconds_bucket", "0.002"] == 1
    assert found["penstock_latency_seconds_bucket", "0.2"] == 3
    assert found["penstock_latency_seconds_bucket", "300.0"] == 4
    assert found["penstock_latency_seconds_bucket", "+Inf"] == 5
    assert found["penstock_latency_seconds_count",] == 5
    assert found["penstock_latency_seconds_sum",] == pytest.approx(403.1665)
    assert (found["penstock_late_events_total",], found["penstock_latency_target_seconds",]) == (2, 2.0)


def test_a_counter_never_goes_back(metrics: RunMetrics, run: Run) -> None:
    """After a failure events are done again, and the run's counters go back: Prometheus would count them twice."""
    run.now = counters(90, 10.0, 20.0)
    before = told(metrics)
    run.now = counters(40, 10.0, restarts=1)
    after = told(metrics)
    for name in ("penstock_events_processed_total", "penstock_latency_seconds_count", "penstock_latency_seconds_sum"):
        key = next(one for one in before if one[0] == name)
        assert after[key] == before[key]
    assert after["penstock_restarts_total",] == 1
    run.now = counters(95, 10.0, 20.0, 30.0, restarts=1)
    assert told(metrics)["penstock_events_processed_total", "count"] == 95


def test_an_interval_tells_of_forecast_changes_and_workers(metrics: RunMetrics, make: Make) -> None:
    assert not any(name == "penstock_forecast_error_ratio" for name, *_ in told(metrics))
    metrics.record(make(1))  # expects 110 a second
    metrics.record(make(2))  # 200 a second came
    found = told(metrics)
    assert found["penstock_forecast_error_ratio", "lines"] == pytest.approx(90 / 200)
    assert found["penstock_intervals_total",] == 2
    assert found["penstock_changes_total", "out", "count"] == 2
    assert found["penstock_busy_ratio", "count"] == 0.5
    assert found["penstock_workers", "here", "available"] == 1
    assert (found["penstock_worker_slots", "here"], found["penstock_worker_slots_used", "here"]) == (4, 2)


def test_a_change_that_failed_is_no_change(metrics: RunMetrics, make: Make) -> None:
    made = make(1)
    metrics.record(replace(made, decisions=tuple(replace(one, failure="no slots") for one in made.decisions)))
    assert not any(name == "penstock_changes_total" for name, *_ in told(metrics))


def test_failures_of_the_loop_are_counted_by_phase(metrics: RunMetrics, run: Run) -> None:
    for number in range(3):
        failures = {"analyze": "ValueError: no"} if number else {}
        undone = {"count": "no slots"} if number == 2 else {}
        step = Step(number=number, time_s=0.0, failures=failures, not_executed=undone)
        run.loop_state = run.loop_state.after(step, changes=20)
    found = told(metrics)
    assert found["penstock_loop_failures_total", "analyze"] == 2
    assert found["penstock_loop_failures_total", "execute"] == 1


def test_what_is_not_finite_is_left_out(metrics: RunMetrics, make: Make) -> None:
    made = make(1)
    metrics.record(replace(made, operators=tuple(replace(one, busy_share=math.nan) for one in made.operators)))
    assert not any(name == "penstock_busy_ratio" for name, *_ in told(metrics))


def test_promtool_has_nothing_to_say(metrics: RunMetrics, run: Run, make: Make) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    run.now = counters(90, 1.5, 15.0)
    run.checkpoints = CheckpointStatus(number=7, took_s=0.25, committed=6, size_bytes=1200, age_s=0.5, every_s=10.0)
    metrics.record(make(1))
    metrics.record(make(2))
    checked = subprocess.run([promtool, "check", "metrics"], input=metrics.exposition()[0], capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, b"")


def test_scores_are_told_by_role(metrics: RunMetrics, make: Make) -> None:
    scores = Scored("psps", PromiseRow(late=0.01, target_ms=2000.0))
    for number in (1, 2, 3):
        shadow = ShadowRow(number=number, policy="static:1", operator="split", replicas=1, reason="static")
        change = DeciderRow(number=number, time_s=1.0, policy="psps", before="static:1", reason="took back")
        made = replace(make(number), shadows=(shadow,), deciders=(change,) if number == 3 else ())
        metrics.record(scores.after(made))
    found = told(metrics)
    assert found["penstock_spare_replica_seconds_total", "split", "decides"] == 2 * (1 + 2)
    assert found["penstock_spare_replica_seconds_total", "split", "shadow"] == 0
    assert found["penstock_missing_replica_seconds_total", "split", "decides"] == 0
    assert found["penstock_late_events_caused_total", "decides"] == 0
    assert found["penstock_naive_error_ratio",] == pytest.approx(1 / 3)
    assert found["penstock_decider_changes_total",] == 1
