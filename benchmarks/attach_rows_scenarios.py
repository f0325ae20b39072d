"""Two queries from files to files, while executors come, go and are killed; and what must come of them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
from attach_source import waits
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

import penstock
from penstock.infra.cluster_workers import await_workers
from penstock.infra.executors import Executors
from penstock.infra.standalone import StandaloneCluster, StandaloneOptions

SLOTS_EACH, PARTS = 2, 8
ROW_S = {"score": 0.06, "counts": 0.02}  # that a row waits
SLOWLY = 0.1  # of the rate
FILE_S = 0.25  # between two files
WINDOW_S, KEYS, ROWS_A_SECOND = 10, 16, 20  # of event time, which is the same in every run
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
PHASE_S = 400.0  # at most until what a phase waits for is there
SETTINGS = {
    "spark.executor.cores": str(SLOTS_EACH),
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": str(PARTS),
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.scheduler.mode": "FAIR",
}


def row(number: int) -> str:
    """A row as it comes."""
    return json.dumps(
        {"number": number, "at": f"{EPOCH + timedelta(seconds=number / ROWS_A_SECOND):%Y-%m-%dT%H:%M:%S.%fZ}"}
    )


def last_row(rows: int) -> str:
    """One that comes after all, a day later: windows end when time has gone on."""
    return row(rows + 86_400 * ROWS_A_SECOND)


def results(rows: int) -> dict[str, Counter[tuple[int, ...]]]:
    """What must come of so many rows and the last: all of them squared; and rows by window and key."""
    numbers = [*range(rows), rows + 86_400 * ROWS_A_SECOND]
    counts = Counter((number // (ROWS_A_SECOND * WINDOW_S), number % KEYS) for number in range(rows))
    return {
        "score": Counter((number, number**2) for number in numbers),
        "counts": Counter((window, key, count) for (window, key), count in counts.items()),
    }


def difference(found: Counter[tuple[int, ...]], wanted: Counter[tuple[int, ...]]) -> dict[str, int]:
    """How many results are missing, and how many are there that should not be, or once too often."""
    return {"missing": (wanted - found).total(), "too_many": (found - wanted).total()}


def digest(found: Counter[tuple[int, ...]]) -> str:
    """The results in one number."""
    return hashlib.sha256(repr(sorted(found.elements())).encode()).hexdigest()[:16]


class Feeder(threading.Thread):
    """Writes rows into files of a folder, so many a second, up to a number of them if there is one."""

    def __init__(self, folder: Path, rate: float, most: float = float("inf")) -> None:
        super().__init__(daemon=True)
        self.rate = rate
        self.written = 0
        self._folder = folder
        self._most = most
        self._owed = 0.0
        self._stopped = threading.Event()
        folder.mkdir()

    def run(self) -> None:
        """Write."""
        while self.written < self._most and not self._stopped.wait(FILE_S):
            self._owed += self.rate * FILE_S
            count = int(min(self._owed, self._most - self.written))
            if count:
                self._write([row(self.written + n) for n in range(count)])
                self._owed, self.written = self._owed - count, self.written + count

    def end(self) -> None:
        """Write no more than the row after all."""
        self._stopped.set()
        self.join()
        self._write([last_row(self.written)])

    def _write(self, rows: Iterable[str]) -> None:
        whole = self._folder / f".{self.written}"  # Spark does not see it
        whole.write_text("".join(f"{one}\n" for one in rows))
        whole.rename(self._folder / f"{self.written:08}.json")


class Comparison:
    """The queries on a cluster with room for the most executors."""

    def __init__(self, folder: Path, most: int, rate: float) -> None:
        self._folder = folder
        self._most = most
        self._rate = rate
        self._seen: list[int] = []  # executors, whenever their number changed

    def run(self, way: str, kills: int) -> dict[str, Any]:
        """With Penstock attached, or without it on so many rows."""
        os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
        paths = (str(Path(__file__).parent), os.environ.get("PYTHONPATH", ""))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        with StandaloneCluster(self._folder / "cluster", StandaloneOptions(cores=SLOTS_EACH, memory_mb=600)) as cluster:
            await_workers(cluster, self._most)
            settings: dict[str, Any] = {**SETTINGS, **penstock.executor_settings(), **cluster.settings}
            spark = SparkSession.builder.appName("rows").master(cluster.url).config(map=settings).getOrCreate()
            try:
                attached = way == "attached"
                feeder = self._changing(spark, kills) if attached else self._constant(spark, int(way))
                return {"rows": feeder.written, "executors": self._seen, **self._judged(spark, feeder.written)}
            finally:
                spark.stop()

    def _constant(self, spark: SparkSession, rows: int) -> Feeder:
        feeder = Feeder(self._folder / "rows", self._rate, rows)
        feeder.start()
        queries = self._started(spark)
        feeder.join()
        self._finished(feeder, queries)
        return feeder

    def _changing(self, spark: SparkSession, kills: int) -> Feeder:
        feeder = Feeder(self._folder / "rows", SLOWLY * self._rate)
        feeder.start()
        queries = self._started(spark)
        executors = Executors(spark)
        with penstock.attach(queries, f"1..{self._most}", 15_000, cooldown_s=10.0) as keeper:
            self._until(executors, lambda: len(executors.ids()) == 1)
            feeder.rate = self._rate
            self._until(executors, lambda: len(executors.ids()) >= self._most)
            for _ in range(kills):
                before = {*executors.ids()}
                executor_processes(spark)[-1].kill()
                self._until(executors, lambda before=before: {*executors.ids()} - before)  # type: ignore[misc]
            feeder.rate = SLOWLY * self._rate
            self._until(executors, lambda: len(executors.ids()) == 1)
            self._finished(feeder, queries)
            if keeper.deaths:
                raise RuntimeError(f"the keeper's loop died {keeper.deaths} times")
        return feeder

    def _until(self, executors: Executors, there: Callable[[], Any]) -> None:
        deadline_s = time.monotonic() + PHASE_S
        while not there():
            if time.monotonic() > deadline_s:
                raise RuntimeError(f"what was waited for did not come in {PHASE_S:g} s; executors: {self._seen}")
            time.sleep(0.2)
            count = len(executors.ids())
            if self._seen[-1:] != [count]:
                self._seen.append(count)

    def _started(self, spark: SparkSession) -> list[Any]:
        rows = spark.readStream.schema("number long, at timestamp").json(str(self._folder / "rows"))
        waited = {name: rows.mapInArrow(waits(row_s), rows.schema) for name, row_s in ROW_S.items()}
        frames = {"score": scored(waited["score"]), "counts": counted(waited["counts"])}
        return [
            frame.writeStream.format("json")
            .queryName(name)
            .trigger(processingTime="3 seconds")
            .option("checkpointLocation", str(self._folder / "checkpoints" / name))
            .start(str(self._folder / name))
            for name, frame in frames.items()
        ]

    def _finished(self, feeder: Feeder, queries: Iterable[Any]) -> None:
        feeder.end()
        for one in queries:
            one.processAllAvailable()
        for one in queries:
            one.stop()

    def _judged(self, spark: SparkSession, rows: int) -> dict[str, Any]:
        wanted = results(rows)
        found = {
            name: Counter(tuple(one) for one in spark.read.json(str(self._folder / name)).select(*columns).collect())
            for name, columns in (("score", ("number", "square")), ("counts", ("window", "key", "count")))
        }
        return {
            "results": {name: one.total() for name, one in found.items()},
            "wrong": {name: difference(one, wanted[name]) for name, one in found.items()},
            "digests": {name: digest(one) for name, one in found.items()},
        }


def scored(rows: DataFrame) -> DataFrame:
    """Rows with something made of them."""
    return rows.select("number", (sql.col("number") * sql.col("number")).alias("square"))


def counted(rows: DataFrame) -> DataFrame:
    """Rows by window and key, once the window is over."""
    window, key = sql.window("at", f"{WINDOW_S} seconds"), (sql.col("number") % KEYS).alias("key")
    counts = rows.withWatermark("at", "30 seconds").groupBy(window, key).count()
    since = (sql.unix_seconds(sql.col("window.start")) - int(EPOCH.timestamp())) / WINDOW_S
    return counts.select(since.cast("long").alias("window"), "key", "count")


def executor_processes(spark: SparkSession) -> list[psutil.Process]:
    """Those of this session: their command lines name its driver."""
    driver = re.compile(rf"CoarseGrainedScheduler@\S+:{spark.sparkContext.getConf().get('spark.driver.port')}\b")
    commands = {one: " ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])}
    return [one for one, told in commands.items() if driver.search(told)]
