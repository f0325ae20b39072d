"""What the benchmark of attached queries judges by: when rows are due, and how late they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attach import with_ratios
from attach_scenarios import WARM_UP_S, Scene, Stage, due_times_s, load_of
from attach_source import rows_between

from penstock.workload import Trace

TRACE = Trace("two", 1.0, np.array([10.0, 20.0]))


def test_rows_are_due_as_the_trace_says() -> None:
    times = due_times_s(TRACE)
    assert times.size == 30
    assert times[9] == pytest.approx(1.0)
    assert times[-1] == pytest.approx(2.0)


def test_offsets_are_the_last_rows_that_are_in() -> None:
    assert rows_between({"startOffset": None, "endOffset": 4}) == (0, 5)
    assert rows_between({"startOffset": "4", "endOffset": "9"}) == (5, 10)


def test_traces_of_long_steps_are_compressed_and_others_are_cut() -> None:
    taxi, dns = load_of("nyc_taxi_passengers_1800s.csv", 30.0, 600.0), load_of("dns_wrccdc_2018_1s.csv", 30.0, 120.0)
    assert (taxi.step_s, taxi.duration_s) == (6.0, 600.0)
    assert (dns.step_s, dns.duration_s) == (1.0, 120.0)


def test_delays_are_from_when_rows_were_due_without_those_of_the_warm_up(tmp_path: Path) -> None:
    scene = Scene(trace=Trace("one", 1.0, np.full(10, 10.0)), most=4, target_s=5.0)
    assert [scene.first(system) for system in ("attached", "peak", "mean")] == [1, 1, 1]
    stage = Stage(tmp_path, scene)
    total, stage._begins_s = int(10 * (WARM_UP_S + 10)), 1000.0
    half = total - 50
    for batches in stage._progress.values():
        batches[0] = (0, half, 1000.0 + WARM_UP_S + 5.0)  # 50 rows that count, up to 5 s after they were due
        batches[1] = (half, total, 1000.0 + WARM_UP_S + 15.0)  # 50 rows, from 5 to 10 s
    found = stage._figures(total)
    assert (found["rows"], found["unfinished"]) == (200, 0)
    assert found["late_ratio"] == pytest.approx(0.5, abs=0.02)
    assert found["delay_ms"]["p99"] == pytest.approx(9900, abs=150)
    del stage._progress["counts"][1]
    assert stage._figures(total)["unfinished"] == 50


def test_ratios_are_to_dynamic_allocation() -> None:
    found = with_ratios({"attached": {"executor_seconds": 60.0}, "dynamic": {"executor_seconds": 120.0}})
    assert found["attached"]["over_dynamic"] == 0.5
