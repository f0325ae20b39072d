"""Micro-batch mode: the same topologies over any streaming DataFrame."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.engine.session import OWN
from penstock.sinks import CollectSink, collected
from penstock.topology import Topology
from tests.waiting import LONG_S, until


def double(event: dict[str, Any]) -> dict[str, Any]:
    return event | {"double": 2 * event["value"]}


def chain(folder: Path) -> Topology:
    topology = Topology("doubles", pool=3)
    first = topology.operator("double", double, inputs=topology.source("numbers"))
    topology.operator("end", CollectSink(folder), inputs=first)
    return topology


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[4]")
    for key, value in OWN.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def numbers(spark: SparkSession, folder: Path, count: int, at_once: int) -> DataFrame:
    """Numbers in files, one file for every batch."""
    folder.mkdir()
    for start in range(0, count, at_once):
        write(folder, start, at_once)
    return spark.readStream.schema("value long").option("maxFilesPerTrigger", 1).json(str(folder))


def write(folder: Path, start: int, count: int) -> None:
    """The next numbers, in a file that is there as a whole."""
    whole = folder / f".{start:06}"  # Spark does not see it
    whole.write_text("".join(f'{{"value": {n}}}\n' for n in range(start, start + count)))
    whole.rename(folder / f"{start:06}.json")


def processed(run: Run, operator: str) -> int:
    return run.fresh_counters().operators[operator].total.processed


def await_processed(run: Run, count: int) -> None:
    until(lambda: processed(run, "end") >= count, lambda: run.counters().operators["end"].total)


def test_replicas_change_while_batches_run(collected_in: Path, tmp_path: Path, spark: SparkSession) -> None:
    """Two batches with each number of replicas; the next number comes while the second waits or runs."""
    folder, changes, count = tmp_path / "numbers", (3, 1, 2, 3, 1), 1500
    rows, each = numbers(spark, folder, 0, at_once=1), count // len(changes) // 2
    with Run(chain(collected_in), rows, options=RunOptions(mode="microbatch"), spark=spark) as run:
        for change, replicas in enumerate(changes):
            run.set_replicas("double", replicas)
            run.set_replicas("end", 4 - replicas)
            write(folder, 2 * change * each, each)
            write(folder, (2 * change + 1) * each, each)
            await_processed(run, (2 * change + 1) * each)
        await_processed(run, count)
        until(lambda: processed(run, "double") == count, lambda: processed(run, "double"))
        counters = run.fresh_counters()
    got = collected(collected_in)
    assert sorted(event["double"] for _, event in got) == [2 * n for n in range(count)]
    assert len({event_id for event_id, _ in got}) == count
    assert all(one.processed > 0 for one in counters.operators["double"].replicas.values())
    assert {*counters.operators["double"].replicas} == {0, 1, 2}
    assert counters.latency.count == count


def test_spark_s_own_rate_source(collected_in: Path, spark: SparkSession) -> None:
    """stop() finishes the batch that runs and leaves the rest."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", 500).load()
    run = Run(chain(collected_in), rows, options=RunOptions(mode="microbatch"), spark=spark).start()
    await_processed(run, 500)
    assert run.stop(LONG_S)
    processed = run.counters().operators["end"].total.processed
    got = collected(collected_in)
    assert len(got) == processed >= 500
    assert sorted(event["value"] for _, event in got) == list(range(len(got)))
    assert all(event["double"] == 2 * event["value"] for _, event in got)


def test_a_worker_that_dies_in_a_batch(collected_in: Path, tmp_path: Path, spark: SparkSession) -> None:
    """The batch is done again; state counts every row once."""
    topology = Topology("words", pool=3)
    counted = topology.operator("count", count_or_die, inputs=topology.source("numbers"), key="parity", key_groups=8)
    topology.operator("end", CollectSink(collected_in), inputs=counted)
    rows = numbers(spark, tmp_path / "numbers", 600, at_once=100)
    rows = rows.selectExpr("value", "value % 10 AS parity", f"'{tmp_path / 'died'}' AS once")
    with Run(topology, rows, options=RunOptions(mode="microbatch"), spark=spark) as run:
        for change, replicas in enumerate((3, 1, 2), start=1):
            run.set_replicas("count", replicas)
            await_processed(run, 200 * change)
        assert run.counters().restarts == 1
    highest: dict[int, int] = {}
    for _, event in collected(collected_in):
        highest[event["parity"]] = max(highest.get(event["parity"], 0), event["count"])
    assert highest == dict.fromkeys(range(10), 60)


def count_or_die(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    """Dies with its process at one of the events, the first time."""
    once = Path(event["once"])
    if event["value"] == 250 and not once.exists():
        once.touch()
        os._exit(1)
    state["count"] = state.get("count", 0) + 1
    return {"parity": event["parity"], "count": state["count"]}
