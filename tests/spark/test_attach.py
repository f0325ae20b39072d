"""Queries that are attached to, on a Standalone cluster: executors follow the load, and results stay the same."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

import penstock
from penstock.engine.session import open_session
from penstock.errors import InputError
from penstock.infra.cluster_workers import await_workers
from penstock.infra.standalone import StandaloneCluster, StandaloneOptions
from penstock.metrics.store import Store
from tests.waiting import LONG_S, until

SLOW, FAST = 1, 30  # rows in a file, of which two come every second
FILE_S, ROW_S = 0.5, 0.04  # between two files; what a row takes
WINDOW, KEYS = 100, 4  # numbers of a window, and what they are counted by
LONG_AFTER = 10**6  # a number that comes after all others, and so ends their windows


class Feeder(threading.Thread):
    """Writes the numbers in turn into files of a folder, as many into each as a test wants."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.rows = SLOW
        self.written = 0
        self._folder = folder
        self._stopped = threading.Event()
        folder.mkdir()

    def run(self) -> None:
        while not self._stopped.wait(FILE_S):
            self.write(range(self.written, self.written + self.rows))
            self.written += self.rows

    def write(self, numbers: Sequence[int]) -> None:
        whole = self._folder / f".{numbers[0]}"  # Spark does not see it
        whole.write_text("".join(f'{{"number": {number}}}\n' for number in numbers))
        whole.rename(self._folder / f"{numbers[0]}.json")

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def squared(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        time.sleep(ROW_S * batch.num_rows)
        yield pa.RecordBatch.from_pydict({"square": [number**2 for number in batch["number"].to_pylist()]})


def waited(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        time.sleep(ROW_S * batch.num_rows)
        yield batch


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (*sys.path, str(Path(__file__).parent)))))
    settings = {
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": "2",
    }
    with StandaloneCluster(tmp_path / "cluster", StandaloneOptions(cores=1, memory_mb=600)) as cluster:
        await_workers(cluster, 3, LONG_S)
        master = {"spark.master": cluster.url, **cluster.settings}
        session = open_session(4, {**settings, **penstock.executor_settings(), **master}, tmp_path / "spark.log")
        try:
            yield session
        finally:
            session.stop()


class Collected:
    """What a query has put out, by batch: one that is done again replaces itself."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[int, ...]]] = {}

    def __call__(self, batch: DataFrame, number: int) -> None:
        self.batches[number] = [tuple(row) for row in batch.collect()]

    @property
    def rows(self) -> int:
        return sum(map(len, list(self.batches.values())))  # batches come meanwhile

    @property
    def counter(self) -> Counter[tuple[int, ...]]:
        return Counter(row for rows in self.batches.values() for row in rows)


def started(spark: SparkSession, kept: Collected, folder: Path) -> Any:
    frame = spark.readStream.schema("number long").json(str(folder / "numbers"))
    writer = frame.mapInArrow(squared, "square long").writeStream.foreachBatch(kept).queryName("squares")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    return writer.start()


def executor_processes(spark: SparkSession) -> list[psutil.Process]:
    """Those of this session: their command lines name its driver."""
    driver = re.compile(rf"CoarseGrainedScheduler@\S+:{spark.sparkContext.getConf().get('spark.driver.port')}\b")
    commands = {one: " ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])}
    return [one for one, told in commands.items() if driver.search(told)]


def test_executors_follow_the_load_of_a_query_and_its_results_stay_the_same(
    spark: SparkSession, tmp_path: Path
) -> None:
    feeder, kept = Feeder(tmp_path / "numbers"), Collected()
    feeder.start()
    query = started(spark, kept, tmp_path)
    keeper = penstock.attach(
        query, "1..3", 16_000, policy="psps", forecaster=None, td_s=2.0, cooldown_s=4.0, store=tmp_path / "metrics.db"
    )
    with pytest.raises(InputError, match="queries of one session share its executors"):
        penstock.attach(query, "1..2")
    until(lambda: keeper.application.count() == 1)  # of the three that a session on Standalone begins with
    feeder.rows = FAST
    until(lambda: keeper.application.count() == 3)  # 60 rows a second of 40 ms are 2.4 slots
    executors = keeper.application.executors
    before = {*executors.ids()}
    executor_processes(spark)[-1].kill()  # as a cluster may take one away
    until(lambda: {*executors.ids()} - before and keeper.application.count() == 3)  # another has come
    query.stop()
    again = started(spark, kept, tmp_path)  # under a new run id
    until(lambda: keeper.queries["squares"].restarts == 1)
    feeder.stop()
    until(lambda: kept.rows >= feeder.written)
    until(lambda: keeper.application.count() == 1)
    assert kept.counter == Counter((number**2,) for number in range(feeder.written))
    assert again.exception() is None
    check_summary(keeper)
    again.stop()
    keeper.stop()
    store = Store(str(tmp_path / "metrics.db"), must_exist=True)
    run = store.run()
    assert (run.topology, run.policy, run.finished_at is not None) == ("squares", "psps", True)
    assert {row.state for row in store.workers(run.run)} >= {"available"}
    assert any("slots that are wanted" in row.reason for row in store.managers(run.run))
    assert max(row.replicas for row in store.operators(run.run)) > 1
    store.close()


def counted(spark: SparkSession, kept: Collected, folder: Path) -> Any:
    """Numbers by window and key, once the window is over; a number is a second of event time."""
    frame = spark.readStream.schema("number long").json(str(folder / "numbers")).mapInArrow(waited, "number long")
    timed = frame.withColumn("at", sql.timestamp_seconds("number")).withWatermark("at", f"{WINDOW} seconds")
    counts = timed.groupBy(sql.window("at", f"{WINDOW} seconds"), (timed.number % KEYS).alias("key")).count()
    since = (sql.unix_seconds("window.start") / WINDOW).cast("long").alias("since")
    writer = counts.select(since, "key", "count").writeStream.foreachBatch(kept).queryName("counts")
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()


def test_a_count_by_window_comes_to_the_same_while_executors_go_and_come(spark: SparkSession, tmp_path: Path) -> None:
    feeder, kept = Feeder(tmp_path / "numbers"), Collected()
    feeder.start()
    query = counted(spark, kept, tmp_path)
    with penstock.attach(query, "1..3", 16_000, policy="psps", forecaster=None, td_s=2.0, cooldown_s=4.0) as keeper:
        until(lambda: keeper.application.count() == 1)  # of three, whose state others take over
        feeder.rows = FAST // 2
        until(lambda: keeper.application.count() == 2)  # 30 rows a second of 40 ms are 1.2 slots
        feeder.stop()
        feeder.write([LONG_AFTER])
        wanted = Counter((number // WINDOW, number % KEYS) for number in range(feeder.written))
        until(lambda: kept.rows >= len(wanted))
        assert kept.counter == Counter((*place, count) for place, count in wanted.items())
        assert keeper.summary()["queries"]["counts"]["most_slots"] == 2  # the partitions of its state
    assert query.exception() is None
    query.stop()


def check_summary(keeper: Any) -> None:
    told = keeper.summary()
    assert (told["alive"], told["deaths"], told["reason"]) == (True, 0, None)
    assert told["queries"]["squares"]["cost"]["by_row_s"] > 0
    assert told["changes"] >= 4
    assert told["executor_seconds"] > 0
    assert "query 'squares'" in str(keeper)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[SparkSession]:
    session = open_session(2, {"spark.sql.streaming.noDataProgressEventInterval": "1000"}, tmp_path / "spark.log")
    try:
        yield session
    finally:
        session.stop()


def test_advice_goes_with_any_session_and_the_rest_is_refused_with_a_sentence(
    local: SparkSession, tmp_path: Path
) -> None:
    check_what_is_asked_of_spark(local)
    rates = local.readStream.format("rate").option("rowsPerSecond", 20).load()
    writer = rates.writeStream.format("noop").queryName("rates").option("checkpointLocation", str(tmp_path / "one"))
    query = writer.trigger(processingTime="500 milliseconds").start()
    with pytest.raises(InputError, match=r"attach: the session must run on a cluster.*its master is local\[2\]"):
        penstock.attach(query)
    with pytest.raises(InputError, match="query 'rates': target_ms must be above its trigger's interval of 500 ms"):
        penstock.attach(query, target_ms=400, mode="advise")
    with penstock.attach(query, "1..4", 5000, mode="advise", forecaster="drift", td_s=1.0) as keeper:
        until(lambda: keeper.decisions and keeper.summary()["queries"]["rates"]["cost"])
        told = keeper.summary()
        assert told["executors"] == 1
        assert told["queries"]["rates"]["trigger_s"] == 0.5
        assert told["queries"]["rates"]["cost"]["by_row_s"] > 0
        assert "would have" in str(keeper)
        query.stop()
        writer.trigger(processingTime="500 milliseconds").start()  # under a new run id
        until(lambda: keeper.queries["rates"].restarts)
        rows = keeper.summary()["queries"]["rates"]["rows"]
        until(lambda: keeper.summary()["queries"]["rates"]["rows"] > rows)
        assert keeper.queries["rates"].restarts == 1
        counts = rates.groupBy((rates.value % 3).alias("third")).count().writeStream.outputMode("update")
        kept = counts.format("noop").queryName("counts").option("checkpointLocation", str(tmp_path / "two"))
        second = kept.start()
        same = penstock.attach(second, "1..4", 5000, mode="advise", forecaster="drift", cooldown_s=30.0)
        assert same is keeper
        until(lambda: keeper.summary()["queries"]["counts"]["most_slots"] == 1)  # `open_session` has one partition
        local.stop()
        until(lambda: not keeper.alive)
    assert keeper.reason == "the Spark session has ended"
    with pytest.raises(
        InputError, match=r"attach: must be given a query whose driver is this process; got builtins\.str"
    ):
        penstock.attach("rates")


BACKENDS = {
    "Standalone": "org.apache.spark.scheduler.cluster.StandaloneSchedulerBackend",
    "Kubernetes": "org.apache.spark.scheduler.cluster.k8s.KubernetesClusterSchedulerBackend",
    "YARN": "org.apache.spark.scheduler.cluster.YarnSchedulerBackend",
}
ASKED = {  # of a backend, by `infra/executors.py`: what it takes
    "getExecutorIds": (),
    "executorsPendingDecommission": (),
    "getRequestedTotalExecutors": (),
    "requestTotalExecutors": ("Map", "Map", "Map"),
    "decommissionExecutor": ("String", "ExecutorDecommissionInfo", "boolean", "boolean"),
}
TRIGGERS = ("ProcessingTimeTrigger", "OneTimeTrigger$", "AvailableNowTrigger$", "ContinuousTrigger", "RealTimeTrigger")


def check_what_is_asked_of_spark(local: SparkSession) -> None:
    """Kubernetes and YARN are not run here: their backends have the methods that are called, with these arguments."""
    jvm: Any = local.sparkContext._jvm
    loader = jvm.org.apache.spark.util.Utils.getSparkClassLoader()

    def java(name: str) -> Any:
        return jvm.java.lang.Class.forName(name, False, loader)

    for cluster, name in BACKENDS.items():
        backend = java(name)
        assert java("org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend").isAssignableFrom(backend)
        taken = {
            (str(one.getName()), tuple(str(kind.getSimpleName()) for kind in one.getParameterTypes()))
            for one in backend.getMethods()
            if str(one.getName()) in ASKED
        }
        assert taken >= set(ASKED.items()), cluster
    places = ("org.apache.spark.sql.execution.streaming.", "org.apache.spark.sql.streaming.")
    for trigger in TRIGGERS:
        assert any(_is_there(java, place + trigger) for place in places), trigger


def _is_there(java: Callable[[str], Any], name: str) -> bool:
    try:
        return java(name) is not None
    except Exception:
        return False
