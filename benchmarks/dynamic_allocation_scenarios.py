"""The word count as a plain Structured Streaming query, on a trace, under Spark's own dynamic allocation."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from penstock.apps import find_app
from penstock.apps.app import PayloadOptions
from penstock.apps.events.sentences import WORDS_PER_SENTENCE
from penstock.apps.waiting import wait
from penstock.apps.wordcount import WordCounter, split
from penstock.infra.cluster_workers import await_workers
from penstock.infra.executors import SETTINGS, Executors
from penstock.infra.standalone import StandaloneCluster, StandaloneOptions
from penstock.sources import TraceSource
from penstock.workload import Trace, load_trace, save_trace

TIMES_MS = {"split": 9.0, "counter": 4.0, "consumer": 6.0}  # with the application's own, one worker would do
WARM_UP_S = 30  # events of the trace's first rate, which do not count
IDLE_S = 10
PATIENCE_S = 60.0  # after the last event was due
LOOK_EVERY_S = 0.25
FEWEST_BATCHES = 3


@dataclass(frozen=True, slots=True)
class Sizes:
    """Executors at least and at most, and the tasks that each runs at once."""

    least: int
    most: int
    capacity: int

    @property
    def partitions(self) -> int:
        """As many tasks as all executors can run at once."""
        return self.most * self.capacity


class TraceData(DataSource):
    """Sentences, each with the time at which it is due, from the moment on at which the trace begins."""

    @classmethod
    def name(cls) -> str:
        """As which it is registered."""
        return "trace"

    def schema(self) -> str:
        """The columns."""
        return "due double, sentence string"

    def streamReader(self, schema: Any) -> TraceReader:  # noqa: N802, ARG002 - Spark's name
        """What reads it."""
        return TraceReader(self.options)


class TraceReader(DataSourceStreamReader):
    """An offset is a number of events; those that are due are there."""

    def __init__(self, options: Mapping[str, str]) -> None:
        payloads = find_app("wordcount").payloads(PayloadOptions())
        self._source = TraceSource(load_trace(Path(options["file"])), payloads)
        self._begins_s = float(options["begins"])
        self._partitions = int(options["partitions"])

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """None yet."""
        return {"events": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802, ARG002
        """What is due by now."""
        return {"events": self._source.due(time.time() - self._begins_s)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """The events in turn."""
        first, last, step = start["events"], end["events"], self._partitions
        return [InputPartition((first + n, last, step)) for n in range(min(step, last - first))]

    def read(self, partition: InputPartition) -> Iterator[tuple[float, str]]:
        """Some of the events."""
        numbers = range(*partition.value)
        for due_s, payload in zip(self._source.due_times(numbers), self._source.read(numbers), strict=True):
            yield self._begins_s + due_s, payload["sentence"]


def split_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The application's `split` on every sentence, and its wait."""
    for batch in batches:
        due, words = [], []
        for row in batch.to_pylist():
            found = [one["word"] for one in split(row)]
            wait(TIMES_MS["split"])
            words += found
            due += [row["due"]] * len(found)
        yield pa.RecordBatch.from_pydict({"due": pa.array(due, pa.float64()), "word": pa.array(words, pa.string())})


def count_and_consume(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The application's `counter` and a consumer that waits; how long after it was due each word was done.

    Counts are those of the batch: what keeping them would cost is not asked of Spark.
    """
    counter = WordCounter(TIMES_MS["counter"])
    states: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for batch in batches:
        latencies_s = []
        for row in batch.to_pylist():
            counter.process(row, states[row["word"]])
            wait(TIMES_MS["consumer"])
            latencies_s.append(time.time() - row["due"])
        yield pa.RecordBatch.from_pydict({"due": batch["due"], "latency_s": pa.array(latencies_s, pa.float64())})


def counted(sentences: DataFrame, partitions: int) -> DataFrame:
    """The whole word count: one shuffle, by word."""
    words = sentences.mapInArrow(split_all, "due double, word string").repartition(partitions, "word")
    return words.mapInArrow(count_and_consume, "due double, latency_s double")


def play(file: Path, folder: Path, sizes: Sizes) -> dict[str, Any]:
    """The trace in the file through the query: latencies of all words, and executor-seconds while it was played."""
    environment = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    paths = (str(Path(__file__).parent), os.environ.get("PYTHONPATH", ""))
    os.environ.update(environment, PYTHONPATH=os.pathsep.join(filter(None, paths)))
    with StandaloneCluster(folder / "cluster", StandaloneOptions(cores=sizes.capacity)) as cluster:
        await_workers(cluster, sizes.most)
        spark = _session(cluster, sizes)
        try:
            return _Player(spark, load_trace(file), folder).play(sizes)
        finally:
            spark.stop()


def _session(cluster: StandaloneCluster, sizes: Sizes) -> SparkSession:
    allocation = {
        "enabled": "true",
        "shuffleTracking.enabled": "true",
        "shuffleTracking.timeout": f"{IDLE_S}s",
        "executorIdleTimeout": f"{IDLE_S}s",
        "schedulerBacklogTimeout": "1s",
        "minExecutors": str(sizes.least),
        "maxExecutors": str(sizes.most),
    }
    builder = SparkSession.builder.appName("dynamic allocation").master(cluster.url)
    settings = {
        "spark.executor.cores": str(sizes.capacity),
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": str(sizes.partitions),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.python.daemon.module": "penstock.engine.worker.daemon",  # as Penstock has it: workers are forked
        **SETTINGS,
        **cluster.settings,
        **{f"spark.dynamicAllocation.{name}": value for name, value in allocation.items()},
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


class _Player:
    """Plays a trace after a stretch of its first rate, in which Java and Python learn the way."""

    def __init__(self, spark: SparkSession, trace: Trace, folder: Path) -> None:
        self._spark = spark
        self._trace = trace
        self._folder = folder
        before = np.full(round(WARM_UP_S / trace.step_s), trace.rates[0])
        self._whole = Trace(trace.name, trace.step_s, np.concatenate([before, trace.rates]))
        self._begins_s = 0.0  # the trace itself
        self._words = 0
        self._latencies_s: list[float] = []
        self._executor_seconds = 0.0
        self._most_executors = 0

    def play(self, sizes: Sizes) -> dict[str, Any]:
        self._warm_up(sizes)
        query = self._started(sizes)
        stopped = threading.Event()
        looking = threading.Thread(target=self._look, args=(stopped,))
        looking.start()
        expected = WORDS_PER_SENTENCE * round(self._whole.events)
        try:
            deadline = self._begins_s + self._trace.duration_s + PATIENCE_S
            while self._words < expected and time.time() < deadline and query.isActive:
                time.sleep(LOOK_EVERY_S)
        finally:
            stopped.set()
            looking.join()
            query.stop()
        return {
            "events": round(self._trace.events),
            "latencies_ms": [1000 * one for one in self._latencies_s],
            "unfinished": expected - self._words,
            "worker_seconds": self._executor_seconds,
            "most_workers": self._most_executors,
        }

    def _warm_up(self, sizes: Sizes) -> None:
        """Python and Java know the functions before the first event."""
        few = self._spark.createDataFrame([(0.0, "the river and the bridge")] * 8, "due double, sentence string")
        for _ in range(FEWEST_BATCHES):
            counted(few, sizes.partitions).collect()

    def _started(self, sizes: Sizes) -> Any:
        self._spark.dataSource.register(TraceData)
        file, now_s = save_trace(self._whole, self._folder / "whole.csv"), time.time()
        self._begins_s = now_s + WARM_UP_S
        reader = self._spark.readStream.format("trace").option("file", str(file))
        frame = reader.option("begins", repr(now_s)).option("partitions", str(sizes.partitions)).load()
        writer = counted(frame, sizes.partitions).writeStream.foreachBatch(self._keep)
        return writer.option("checkpointLocation", str(self._folder / "checkpoint")).start()

    def _keep(self, batch: DataFrame, number: int) -> None:  # noqa: ARG002 - Spark's signature
        rows = batch.toArrow()
        self._words += rows.num_rows
        pairs = zip(rows["due"].to_pylist(), rows["latency_s"].to_pylist(), strict=True)
        self._latencies_s += [latency_s for due_s, latency_s in pairs if due_s >= self._begins_s]

    def _look(self, stopped: threading.Event) -> None:
        """Add up executors times time, from when the first event of the trace is due."""
        executors, last_s = Executors(self._spark), self._begins_s
        while not stopped.wait(LOOK_EVERY_S):
            now_s = time.time()
            if now_s > self._begins_s:
                count = len(executors.ids())
                self._executor_seconds += count * (now_s - last_s)
                self._most_executors = max(self._most_executors, count)
                last_s = now_s
