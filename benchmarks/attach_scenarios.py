"""Two queries on a Standalone cluster under a trace, with executors that somebody keeps, Spark keeps, or nobody."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

import penstock
from penstock.attached.model.progress import parse_progress
from penstock.infra.cluster_workers import await_workers
from penstock.infra.executors import Executors
from penstock.infra.standalone import StandaloneCluster, StandaloneOptions
from penstock.workload import Trace, data_file, load_trace, played, save_trace

SLOTS_EACH = 2
ROW_S = {"score": 0.06, "counts": 0.02}  # that a row waits
TRIGGER = {"score": "3 seconds", "counts": "3 seconds"}
WARM_UP_S = 30.0  # at the trace's first rate, which does not count
PATIENCE_S = 60.0  # after the last row was due
COARSE_S = 6.0
LOOK_S = 0.25
PARTS = 12  # of a batch, so that more slots help


def load(name: str, rate: float, duration_s: float) -> Trace:
    """A real trace at this mean rate, so long: one of long steps is compressed until they last six seconds."""
    trace = load_trace(data_file("traces", name))
    speedup = trace.step_s / COARSE_S if trace.step_s > COARSE_S else 1.0
    return played(trace, rate, speedup, duration_s)


class TraceRows(DataSource):
    """Rows with their number and when they are due, as a trace has them."""

    @classmethod
    def name(cls) -> str:
        """As which it is registered."""
        return "trace_rows"

    def schema(self) -> str:
        """The columns."""
        return "number long, due timestamp"

    def streamReader(self, schema: Any) -> TraceRowsReader:  # noqa: N802, ARG002 - Spark's name
        """What reads it."""
        return TraceRowsReader(self.options)


class TraceRowsReader(DataSourceStreamReader):
    """An offset is a number of rows; those that are due are there."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._trace = load_trace(Path(options["file"]))
        self._begins_s = float(options["begins"])
        self._due_s = self._begins_s + due_times_s(self._trace)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """None yet."""
        return {"rows": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802, ARG002
        """What is due by now."""
        return {"rows": max(start["rows"], due(self._trace, time.time() - self._begins_s))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """The rows in turn."""
        first, last = start["rows"], end["rows"]
        return [InputPartition((first + n, last, PARTS)) for n in range(min(PARTS, last - first))]

    def read(self, partition: InputPartition) -> Iterator[tuple[int, Any]]:
        """Some of the rows."""
        for number in range(*partition.value):
            yield number, datetime.fromtimestamp(float(self._due_s[number]), UTC)


def due(trace: Trace, passed_s: float) -> int:
    """How many rows of a trace have come."""
    return int(trace.cumulated([min(max(0.0, passed_s), trace.duration_s)])[0] + 1e-6)


def due_times_s(trace: Trace) -> np.ndarray[Any, Any]:
    """When each row is due."""
    edges = np.arange(0.0, trace.duration_s + trace.step_s / 2, trace.step_s)
    found: np.ndarray[Any, Any] = np.interp(np.arange(1, int(trace.events + 1e-6) + 1), trace.cumulated(edges), edges)
    return found


def waits(row_s: float) -> Any:
    """A function for `mapInArrow` that waits for each row."""

    def waited(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(row_s * batch.num_rows)
            yield batch

    return waited


class Stage:
    """A cluster with room for the most executors, two queries, and who keeps them."""

    def __init__(self, folder: Path, trace: Trace, most: int, target_s: float, policy: str | None) -> None:
        before = np.full(round(WARM_UP_S / trace.step_s), trace.rates[0])
        self._folder = folder
        self._trace = Trace(trace.name, trace.step_s, np.concatenate([before, trace.rates]))
        self._skipped = due(self._trace, WARM_UP_S)
        self._most = most
        self._target_s = target_s
        self._policy = policy
        self._progress: dict[str, dict[int, tuple[int, int, float]]] = {name: {} for name in ROW_S}
        self._seconds, self._changes, self._count = 0.0, 0, 0
        self._begins_s = 0.0

    def play(self, system: str) -> dict[str, Any]:
        """The trace under one system."""
        os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
        paths = (str(Path(__file__).parent), os.environ.get("PYTHONPATH", ""))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        sizes = StandaloneOptions(cores=SLOTS_EACH, memory_mb=600)
        with StandaloneCluster(self._folder / "cluster", sizes) as cluster:
            await_workers(cluster, self._most if system in ("attached", "dynamic") else self._first(system))
            spark = _session(cluster, self._first(system), self._most, dynamic=system == "dynamic")
            try:
                return self._played(spark, system)
            finally:
                spark.stop()

    def _first(self, system: str) -> int:
        rates = {"peak": self._trace.peak, "mean": self._trace.mean}
        slots = float(rates.get(system, self._trace.rates[0])) * sum(ROW_S.values())
        return max(1, min(self._most, math.ceil(slots / SLOTS_EACH)))

    def _played(self, spark: SparkSession, system: str) -> dict[str, Any]:
        queries = self._started(spark)
        keeper = None
        if system == "attached":
            named = {} if self._policy is None else {"policy": self._policy}
            keeper = penstock.attach(queries, f"1..{self._most}", 1000 * self._target_s, **named)  # type: ignore[arg-type]
        stopped = threading.Event()
        looking = threading.Thread(target=self._look, args=(spark, queries, stopped))
        looking.start()
        total = int(self._trace.events + 1e-6)
        deadline_s = self._begins_s + self._trace.duration_s + PATIENCE_S
        while time.time() < deadline_s and any(self._done(name) < total for name in ROW_S):
            time.sleep(LOOK_S)
        stopped.set()
        looking.join()
        found = self._figures(total)
        if keeper is not None:
            found["keeper"] = keeper.summary()
            keeper.stop()
        for query in queries:
            query.stop()
        return found

    def _started(self, spark: SparkSession) -> list[Any]:
        spark.dataSource.register(TraceRows)
        file = save_trace(self._trace, self._folder / "trace.csv")
        self._begins_s = time.time() + 5.0
        options = {"file": str(file), "begins": repr(self._begins_s)}
        frames = {name: spark.readStream.format("trace_rows").options(**options).load() for name in ROW_S}
        waited = {name: one.mapInArrow(waits(ROW_S[name]), one.schema) for name, one in frames.items()}
        window, by_key = sql.window("due", "10 seconds"), (sql.col("number") % 16).alias("key")
        counted = waited["counts"].withWatermark("due", "30 seconds").groupBy(window, by_key).count()
        outputs: dict[str, tuple[DataFrame, str]] = {
            "score": (waited["score"], "append"),
            "counts": (counted, "update"),
        }
        return [
            frame.writeStream.format("noop")
            .outputMode(mode)
            .queryName(name)
            .trigger(processingTime=TRIGGER[name])
            .option("checkpointLocation", str(self._folder / name))
            .start()
            for name, (frame, mode) in outputs.items()
        ]

    def _look(self, spark: SparkSession, queries: list[Any], stopped: threading.Event) -> None:
        """Add up executors times time, and note which rows each batch had and when it ended."""
        executors, last_s = Executors(spark), self._begins_s + WARM_UP_S
        while not stopped.wait(LOOK_S):
            for query in queries:
                with contextlib.suppress(Exception):
                    self._note(query)
            now_s, count = time.time(), len(executors.ids())
            if now_s > last_s:
                self._seconds += count * (now_s - last_s)
                self._changes += abs(count - (self._count or count))
                self._count, last_s = count, now_s

    def _note(self, query: Any) -> None:
        for one in query._jsq.recentProgress()[-4:]:
            told = json.loads(str(one.json()))
            first, last = (told["sources"][0][which] or {"rows": 0} for which in ("startOffset", "endOffset"))
            if last["rows"] > first["rows"]:
                self._progress[query.name][told["batchId"]] = first["rows"], last["rows"], parse_progress(told).end_s

    def _done(self, name: str) -> int:
        return max((last for _, last, _ in self._progress[name].values()), default=0)

    def _figures(self, total: int) -> dict[str, Any]:
        due_s, delays, missing = self._begins_s + due_times_s(self._trace), [], 0
        for batches in self._progress.values():
            known = np.full(total, np.nan)
            for first, last, end_s in batches.values():
                known[first:last] = end_s - due_s[first:last]
            known = known[self._skipped :]
            missing += int(np.isnan(known).sum())
            delays.append(known[~np.isnan(known)])
        found = np.concatenate(delays)
        rows = found.size + missing
        return {
            "rows": rows,
            "unfinished": missing,
            "executor_seconds": round(self._seconds, 1),
            "changes": self._changes,
            "delay_ms": {name: round(1000 * float(np.quantile(found, q))) for name, q in (("p50", 0.5), ("p99", 0.99))},
            "late_ratio": round((int((found > self._target_s).sum()) + missing) / rows, 5),
        }


def _session(cluster: StandaloneCluster, first: int, most: int, *, dynamic: bool) -> SparkSession:
    settings: dict[str, Any] = {
        "spark.executor.cores": str(SLOTS_EACH),
        "spark.executor.memory": "512m",
        "spark.executor.instances": str(first),
        "spark.sql.shuffle.partitions": str(PARTS),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.scheduler.mode": "FAIR",
        "spark.python.daemon.module": "penstock.engine.worker.daemon",  # workers are forked, for all systems alike
        **penstock.executor_settings(),
        **cluster.settings,
    }
    if dynamic:
        allocation = {"enabled": True, "shuffleTracking.enabled": True, "minExecutors": 1, "maxExecutors": most}
        settings |= {f"spark.dynamicAllocation.{name}": str(value).lower() for name, value in allocation.items()}
        settings["spark.dynamicAllocation.initialExecutors"] = str(first)
    return SparkSession.builder.appName("attach").master(cluster.url).config(map=settings).getOrCreate()
