"""The benchmark of the inner loop: what it measures, and what it tells of processor time."""

from __future__ import annotations

from argparse import Namespace

import inner_loop_scenarios
from inner_loop import Measured, ways


def asked(live: bool) -> Namespace:
    return Namespace(td=[5.0, 1.0], push="shuffle", live=live)


def test_on_spark_jumps_wake_the_loop_but_at_the_longest_interval() -> None:
    """All live rows were woken: what 5 s alone come to was not measured."""
    simulated, live = list(ways(asked(live=False))), list(ways(asked(live=True)))
    assert live == [
        (5.0, "shuffle", False), (5.0, "pull", False), (1.0, "shuffle", True), (1.0, "pull", True), (5.0, "pull", True),
    ]  # fmt: skip
    assert [one for one in simulated if one[2]] == [(5.0, "pull", True), (1.0, "pull", True)]


def test_processor_time_of_driver_jvm_and_workers_is_told() -> None:
    """It was measured for the driver, and never printed."""
    figures = {"mean_ms": 80.0, "p99_ms": 900.0, "late": 0.01, "replica_seconds": 500.0, "ratio": 1.0}
    row = {"trace": "dns", "td_s": 1.0, "grouping": "pull", "wake": True, "changes_per_minute": 3.0, "wall_s": 1.0}
    assert not str(Measured(**row, **figures)).endswith("0.250")
    cores = {"driver_cores": 0.04, "jvm_cores": 0.35, "worker_cores": 0.25}
    assert str(Measured(**row, **figures, **cores)).split()[-3:] == ["0.040", "0.350", "0.250"]


def test_every_process_is_of_one_kind() -> None:
    found = inner_loop_scenarios.cpu_s()
    assert found.keys() == {"driver", "jvm", "worker"}
    assert found["driver"] > 0
