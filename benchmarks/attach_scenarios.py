"""Queries on a Standalone cluster under a trace, with executors that somebody keeps, Spark keeps, or nobody."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from attach_source import FedRows, rows_between, waited_in_java, waits
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

import penstock
from penstock.attached.model.progress import parse_progress
from penstock.infra.cluster_workers import await_workers
from penstock.infra.executors import Executors
from penstock.infra.standalone import LIGHT, StandaloneCluster, StandaloneOptions
from penstock.workload import Trace, data_file, load_trace

SLOTS_EACH, STATE_PARTS = 2, 4
ROW_S = {"score": 0.12, "counts": 0.04}  # that a row waits
TRIGGER = "5 seconds"
WARM_UP_S = 60.0  # at the trace's first rate, which does not count
PATIENCE_S = 60.0  # after the last row was due
COARSE_S = 6.0
LOOK_S = 0.5


def load_of(name: str, rate: float, duration_s: float) -> Trace:
    """So long a part of a real trace, the one whose rates differ most, scaled to a mean rate.

    One of long steps is compressed until they last six seconds.
    """
    trace = load_trace(data_file("traces", name))
    if trace.step_s > COARSE_S:
        trace = trace.compressed(trace.step_s / COARSE_S)
    parts = np.lib.stride_tricks.sliding_window_view(trace.rates, round(duration_s / trace.step_s))
    begin_s = int(np.argmax(parts.std(axis=1) / parts.mean(axis=1))) * trace.step_s
    return trace.window(begin_s, begin_s + duration_s).scaled(rate)


def due_times_s(trace: Trace) -> np.ndarray[Any, Any]:
    """When each row is due."""
    edges = np.arange(0.0, trace.duration_s + trace.step_s / 2, trace.step_s)
    found: np.ndarray[Any, Any] = np.interp(np.arange(1, int(trace.events + 1e-6) + 1), trace.cumulated(edges), edges)
    return found


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What is played: rows, to which queries, and with what promise. `kept` are further options of `attach`."""

    trace: Trace
    most: int
    target_s: float
    kept: Mapping[str, Any] = field(default_factory=dict)
    queries: tuple[str, ...] = tuple(ROW_S)
    logs: Path | None = None  # where Spark writes its event log

    def first(self, system: str) -> int:
        """How many executors a system begins with: those of the peak or the mean, or of the first rate."""
        rates = {"peak": self.trace.peak, "mean": self.trace.mean}
        slots = float(rates.get(system, self.trace.rates[0])) * sum(ROW_S[name] for name in self.queries)
        return max(1, min(self.most, math.ceil(slots / SLOTS_EACH)))


class Stage:
    """A cluster with room for the most executors, queries, and who keeps them."""

    def __init__(self, folder: Path, scene: Scene) -> None:
        trace = scene.trace
        before = np.full(round(WARM_UP_S / trace.step_s), trace.rates[0])
        self._folder = folder
        self._scene = scene
        self._trace = Trace(trace.name, trace.step_s, np.concatenate([before, trace.rates]))
        self._times_s = due_times_s(self._trace)
        self._skipped = int(np.searchsorted(self._times_s, WARM_UP_S, side="right"))
        self._progress: dict[str, dict[int, tuple[int, int, float]]] = {name: {} for name in scene.queries}
        self._seconds, self._changes, self._count = 0.0, 0, 0
        self._begins_s = 0.0
        self._feeds: list[FedRows] = []

    def play(self, system: str) -> dict[str, Any]:
        """The trace under one system: `attached`, `dynamic`, `peak`, `mean`, or a number of executors."""
        os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
        paths = (str(Path(__file__).parent), os.environ.get("PYTHONPATH", ""))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        first = int(system) if system.isdecimal() else self._scene.first(system)
        sizes = StandaloneOptions(cores=SLOTS_EACH, memory_mb=600)
        with StandaloneCluster(self._folder / "cluster", sizes) as cluster:
            await_workers(cluster, self._scene.most if system == "dynamic" else first)
            spark = self._session(cluster, first, dynamic=system == "dynamic")
            try:
                if system == "attached":  # it begins with these, and has room for more
                    Executors(spark).request(first)
                    await_workers(cluster, self._scene.most)
                return self._played(spark, system)
            finally:
                spark.stop()

    def _played(self, spark: SparkSession, system: str) -> dict[str, Any]:
        queries = self._started(spark)
        scene, keeper = self._scene, None
        if system == "attached":
            keeper = penstock.attach(queries, f"1..{scene.most}", 1000 * scene.target_s, **scene.kept)
        stopped = threading.Event()
        looking = threading.Thread(target=self._look, args=(spark, queries, stopped))
        looking.start()
        total = self._times_s.size
        deadline_s = self._begins_s + self._trace.duration_s + PATIENCE_S
        while time.time() < deadline_s and any(self._done(name) < total for name in scene.queries):
            time.sleep(LOOK_S)
        stopped.set()
        looking.join()
        found = self._figures(total)
        if keeper is not None:
            found["keeper"] = keeper.summary()
            keeper.stop()
        for one in (*self._feeds, *queries):
            one.stop()
        return found

    def _started(self, spark: SparkSession) -> list[Any]:
        """The queries, whose rows begin to come."""
        self._feeds = [FedRows(spark, self._times_s) for _ in self._scene.queries]
        queries = [self._start(name, feed.frame) for name, feed in zip(self._scene.queries, self._feeds, strict=True)]
        self._begins_s = time.time()
        for feed in self._feeds:
            feed.begins_s = self._begins_s
            feed.start()
        return queries

    def _start(self, name: str, frame: DataFrame) -> Any:
        made = counted(frame) if name == "counts" else frame.mapInArrow(waits(ROW_S[name]), frame.schema)
        writer = made.writeStream.format("noop").outputMode("update" if name == "counts" else "append")
        named = writer.queryName(name).option("checkpointLocation", str(self._folder / name))
        return named.trigger(processingTime=TRIGGER).start()

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
            first, last = rows_between(told["sources"][0])
            if last > first:
                self._progress[query.name][told["batchId"]] = first, last, parse_progress(told).end_s

    def _done(self, name: str) -> int:
        return max((last for _, last, _ in self._progress[name].values()), default=0)

    def _figures(self, total: int) -> dict[str, Any]:
        due_s, delays, missing = self._begins_s + self._times_s, [], 0
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
            "late_ratio": round((int((found > self._scene.target_s).sum()) + missing) / rows, 5),
            "counted_from_s": self._begins_s + WARM_UP_S,
            "load": round(os.getloadavg()[1], 1),
        }

    def _session(self, cluster: StandaloneCluster, first: int, *, dynamic: bool) -> SparkSession:
        settings: dict[str, Any] = {
            "spark.executor.cores": str(SLOTS_EACH),
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": LIGHT,  # or to start them takes the machine for itself
            "spark.driver.extraJavaOptions": LIGHT,
            "spark.executor.instances": str(first),
            "spark.sql.shuffle.partitions": str(STATE_PARTS),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
            "spark.scheduler.mode": "FAIR",
            **penstock.executor_settings(),
            **cluster.settings,
        }
        if dynamic:
            settings |= {f"spark.dynamicAllocation.{key}": value for key, value in _dynamic(first, self._scene.most)}
        if self._scene.logs is not None:
            settings |= {"spark.eventLog.enabled": "true", "spark.eventLog.dir": self._scene.logs.absolute().as_uri()}
        return SparkSession.builder.appName("attach").master(cluster.url).config(map=settings).getOrCreate()


def _dynamic(first: int, most: int) -> Iterator[tuple[str, str]]:
    yield from {"enabled": "true", "shuffleTracking.enabled": "true", "minExecutors": "1"}.items()
    yield from {"maxExecutors": str(most), "initialExecutors": str(first)}.items()


def counted(frame: DataFrame) -> DataFrame:
    """Rows by window and key, which takes state."""
    window, by_key = sql.window("due", "10 seconds"), (sql.col("number") % 16).alias("key")
    return waited_in_java(frame, ROW_S["counts"]).withWatermark("due", "30 seconds").groupBy(window, by_key).count()
