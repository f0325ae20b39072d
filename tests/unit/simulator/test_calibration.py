"""A simulated run stands in for a live one: what it was simulated with must be found again in its record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.metrics.rows import IntervalRecord, RunRow
from penstock.metrics.store import Store
from penstock.policy.static import Static
from penstock.simulator import Plant, Scenario, simulate
from penstock.simulator.calibration import Calibration, calibrated, calibration_of
from penstock.workload import Trace, constant


class Kept(list[IntervalRecord]):
    def record(self, record: IntervalRecord) -> None:
        self.append(record)


def recorded(trace: Trace, *, replicas: int, overhead_s: float = 0.0, hop_s: float = 0.004) -> Kept:
    kept = Kept()
    names = ("clean", "classify", "author", "store")
    plant = Plant(hop_s=hop_s, overhead_s=dict.fromkeys(names, overhead_s))
    simulate(Scenario("twitter", trace, plant=plant), Static(replicas), recorder=kept)
    return kept


def found(kept: Kept) -> Calibration:
    return calibrated([one.interval for one in kept], [row for one in kept for row in one.operators])


def test_hop_delay_and_times_of_a_quiet_run_are_found_again():
    calibration = found(recorded(constant(30, 120), replicas=4))
    assert calibration.hop_s == pytest.approx(0.004, rel=0.15)  # percentiles are within 2.5 %
    assert calibration.times_s == pytest.approx({"clean": 0.010, "classify": 0.020, "author": 0.015, "store": 0.010})
    assert calibration.overhead_s == {}


def test_where_something_always_waits_there_is_no_hop_delay_to_be_seen():
    calibration = found(recorded(constant(80, 120), replicas=1))
    assert calibration.hop_s is None
    assert calibration.applied(Plant(hop_s=0.007)).hop_s == 0.007


def test_overhead_shows_in_what_a_saturated_operator_gets_done():
    """The live engine measures the time in the function; what a replica needs beyond it shows in its throughput."""
    kept = recorded(constant(80, 120), replicas=1, overhead_s=0.002)
    operators = [
        replace(row, execution_time_s=0.020) for one in kept for row in one.operators if row.operator == "classify"
    ]
    calibration = calibrated([one.interval for one in kept], operators)
    assert calibration.overhead_s["classify"] == pytest.approx(0.002, rel=0.05)


def test_incomplete_numbers_are_left_out():
    kept = recorded(constant(30, 120), replicas=4)
    operators = [replace(row, incomplete="stale", execution_time_s=9.0) for one in kept for row in one.operators]
    assert calibrated([one.interval for one in kept], operators) == Calibration()


def test_a_store_gives_its_last_run(tmp_path: Path):
    place = str(tmp_path / "metrics.db")
    store = Store(place)
    for run, hop_s in (("first", 0.001), ("second", 0.006)):
        store.start_run(
            RunRow(run=run, topology="twitter", policy="static:4", td_s=5, started_at="2026-01-01T00:00:00Z")
        )
        for one in recorded(constant(30, 60), replicas=4, hop_s=hop_s):
            store.write(run, one)
    store.close()
    assert calibration_of(place).hop_s == pytest.approx(0.006, rel=0.15)
    assert calibration_of(place, "first").hop_s == pytest.approx(
        0.001, rel=0.6
    )  # 4 ms of 59: near what buckets resolve
    with pytest.raises(InputError, match="must have a run 'third'; it has 2"):
        calibration_of(place, "third")


def test_a_simulation_calibrated_with_a_run_is_like_the_run():
    kept = recorded(constant(30, 120), replicas=4, hop_s=0.009)
    result = simulate(Scenario("twitter", constant(30, 120), calibration=found(kept)), Static(4))
    assert result.latency_ms["mean"] == pytest.approx(55 + 4 * 9, rel=0.05)
