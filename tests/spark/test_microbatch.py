"""Micro-batch mode: the same topologies, any Spark source."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.engine.session import OWN
from penstock.sinks import CollectSink, collected
from penstock.sources import FileSource, TraceSource
from penstock.topology import Topology
from penstock.workload import constant

pytestmark = pytest.mark.timeout(180)


def double(event: dict[str, Any]) -> dict[str, Any]:
    return event | {"double": 2 * event["value"]}


def chain(folder: Path) -> Topology:
    topology = Topology("doubles", pool=3)
    first = topology.operator("double", double, inputs=topology.source("numbers"))
    topology.operator("end", CollectSink(folder), inputs=first)
    return topology


def test_replicas_change_while_batches_run(collected_in: Path) -> None:
    source = TraceSource(constant(300, 10), [{"value": n} for n in range(3000)])
    with Run(chain(collected_in), source, options=RunOptions(mode="microbatch", source_slots=2)) as run:
        for replicas in (3, 1, 2, 3, 1):
            run.set_replicas("double", replicas)
            run.set_replicas("end", 4 - replicas)
            time.sleep(1.5)
        assert run.wait(90)
        counters = run.fresh_counters()
    got = collected(collected_in)
    assert sorted(event["double"] for _, event in got) == [2 * n for n in range(3000)]
    assert len({event_id for event_id, _ in got}) == 3000
    assert counters.operators["double"].total.processed == 3000
    assert counters.latency.count == 3000


def test_a_file_of_events(collected_in: Path, tmp_path: Path) -> None:
    file = tmp_path / "numbers.jsonl"
    file.write_text("".join(f'{{"value": {n}}}\n' for n in range(5000)))
    with Run(chain(collected_in), FileSource(file), options=RunOptions(mode="microbatch")) as run:
        assert run.wait(90)
    assert sorted(event["value"] for _, event in collected(collected_in)) == list(range(5000))


def test_any_streaming_dataframe(collected_in: Path) -> None:
    """Spark's own rate source feeds a topology; stop() finishes the batch that runs and leaves the rest."""
    builder = SparkSession.builder.master("local[4]")
    for key, value in OWN.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        rows = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
        run = Run(chain(collected_in), rows, options=RunOptions(mode="microbatch"), spark=spark).start()
        deadline = time.monotonic() + 60
        while run.counters().operators["end"].total.processed < 500 and time.monotonic() < deadline:
            time.sleep(0.2)
        assert run.stop(60)
        processed = run.counters().operators["end"].total.processed
    finally:
        spark.stop()
    got = collected(collected_in)
    assert len(got) == processed >= 500
    assert sorted(event["value"] for _, event in got) == list(range(len(got)))
    assert all(event["double"] == 2 * event["value"] for _, event in got)
