"""Executors of a Standalone cluster: one leaves after its long task, and comes back when it is asked for."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.engine.session import open_session
from penstock.errors import EngineError
from penstock.infra.cluster_workers import await_workers
from penstock.infra.executors import SETTINGS, Executors
from penstock.infra.standalone import StandaloneCluster, StandaloneOptions
from penstock.infra.worker import executor_here
from tests.waiting import LONG_S, until


def told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"executor": [executor_here() or "none"]})


class ToldLate:
    """Answers when its executor's file is in the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        until(lambda: (self.folder / (executor_here() or "none")).exists())
        yield from told(batches)


def asked(spark: SparkSession, function: Callable[..., Any], count: int) -> list[str]:
    rows = spark.range(count, numPartitions=count).mapInArrow(function, "executor string").collect()
    return [row.executor for row in rows]


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (*sys.path, str(Path(__file__).parent)))))
    settings = {"spark.executor.cores": "2", "spark.executor.memory": "512m", "spark.task.maxFailures": "1"}
    with StandaloneCluster(tmp_path / "cluster", StandaloneOptions(cores=2, memory_mb=600)) as cluster:
        await_workers(cluster, 2, LONG_S)
        master = {"spark.master": cluster.url, **cluster.settings}
        session = open_session(4, {**settings, **SETTINGS, **master}, tmp_path / "spark.log")
        yield session
        session.stop()
    check_local_session(tmp_path)


def check_local_session(folder: Path) -> None:
    """One that came after a session with a secret made a secret of its own, which all later ones had then as well.

    Its executors are not for us.
    """
    local = open_session(1, {}, folder / "local.log")
    try:
        assert local.sparkContext.getConf().get("spark.authenticate") is None
        with pytest.raises(EngineError, match=r"must run on a cluster; its master is local\[1\]"):
            Executors(local)
    finally:
        local.stop()


def test_an_executor_leaves_when_its_tasks_have_ended_and_another_comes_when_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    executors = Executors(spark)
    until(lambda: executors.ready() == {"0", "1"})
    check_secret(spark)
    assert executors.ids() == ("0", "1")
    assert set(asked(spark, told, 4)) == {"0", "1"}

    long: list[str] = []
    running = threading.Thread(target=lambda: long.extend(asked(spark, ToldLate(tmp_path), 4)))
    running.start()
    tracker = spark.sparkContext.statusTracker()
    until(lambda: any(tracker.getStageInfo(one).numActiveTasks == 4 for one in tracker.getActiveStageIds()))  # type: ignore[union-attr]
    executors.decommission("0")
    executors.decommission("0")  # once more changes nothing
    assert executors.leaving() == {"0"}
    assert executors.ids() == ("0", "1")
    (tmp_path / "1").touch()
    assert set(asked(spark, told, 6)) == {"1"}  # no new tasks there
    assert executors.ids() == ("0", "1")
    (tmp_path / "0").touch()
    running.join()
    assert sorted(long) == ["0", "0", "1", "1"]  # the long ones were not killed

    until(lambda: executors.ids() == ("1",))
    assert executors.leaving() == frozenset()
    time.sleep(3)
    assert executors.ids() == ("1",)  # nor is one started in its place
    executors.request(2)
    until(lambda: executors.ids() == ("1", "2"))
    with pytest.raises(EngineError, match="executor '0': is not registered; known: 1, 2"):
        executors.decommission("0")


def check_secret(spark: SparkSession) -> None:
    """Everyone on the machine can read command lines; PySpark puts all settings on Java's."""
    secret = spark.sparkContext.getConf().get("spark.authenticate.secret")
    assert secret is not None
    commands = [" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])]
    assert [one for one in commands if "CoarseGrainedExecutorBackend" in one]
    assert not [one for one in commands if secret in one]
