"""A live run on Spark that is late, scraped by a real Prometheus: the alert fires, and the board has data."""

from __future__ import annotations

import re
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import penstock
from tests.waiting import until

from ..services import prometheus

OPS = Path(__file__).resolve().parents[2] / "ops"


def slow(event: dict[str, int]) -> dict[str, int]:
    time.sleep(0.05)
    return event


def late(folder: Path) -> penstock.Elastic:
    """Three times as many events as one replica can do."""
    topology = penstock.Topology("late", pool=2)
    topology.operator("slow", slow, inputs=topology.source("numbers"))
    source = penstock.TraceSource(penstock.constant(60, 3600), [{"n": 1}])
    run = penstock.Run(topology, source, options=penstock.RunOptions(checkpoint_every_s=1.0))
    store = folder / "metrics.db"
    policy = {"policy": "static:1", "forecaster": "last_value", "target_ms": 200.0}
    return penstock.Elastic(run, td_s=0.5, warm_up_s=0.5, store=store, ui="0", **policy)  # type: ignore[arg-type]


def test_a_real_prometheus_reads_a_run_that_is_late(tmp_path: Path) -> None:
    if prometheus.program() is None:
        pytest.skip("Prometheus is not installed")
    rules = re.sub(r"for: \w+", "for: 0s", (OPS / "prometheus" / "alerts.yml").read_text())
    with late(tmp_path) as live, prometheus.Prometheus(tmp_path, urlsplit(live.ui_url).netloc, rules) as reader:  # type: ignore[type-var]
        until(lambda: "PenstockLate" in reader.alerts())
        assert "PenstockRestarts" not in reader.alerts()
        for query in (query for queries in prometheus.board().values() for query in queries):
            until(lambda query=query: prometheus.has_data(reader, query))  # type: ignore[misc]
        (share,) = reader.query("penstock_late_events_total / penstock_latency_seconds_count")
        assert float(share["value"][1]) > 0.01
        live.steer(penstock.Freeze())
        until(lambda: "PenstockFrozen" in reader.alerts())
        live.run.stop_sources()
        live.stop(timeout_s=0.0)
