"""The Spark session a run needs: enough slots, the settings real-time mode wants, logs in a file."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.engine.plan.layout import Layout
from penstock.errors import EngineError
from penstock.infra.executors import ready_executors

LEAST_JAVA = 17
SPARE_SLOTS = 2  # besides those of two shifts at once
_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?")
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

COMMON = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.python.daemon.module": "penstock.engine.worker.daemon",
    "spark.python.unix.domain.socket.enabled": "true",  # TCP holds small writes back for 40 ms (Nagle, delayed ACK)
    "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "4",
}
REALTIME = {
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",  # mapInArrow is not on its list, and works
    # without these a row waits in a buffer until the batch ends
    "spark.python.udf.pipelined.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.sql.execution.pandas.udf.buffer.size": "64",
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1",
}


def check_java() -> None:
    """Raise an EngineError unless a Java runtime that Spark can use is there."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    wanted = f"Spark needs a Java runtime of version {LEAST_JAVA} or later"
    if not java or not Path(java).exists():
        where = f"JAVA_HOME is {home!r} and holds none" if home else "none is on the PATH"
        raise EngineError(f"{wanted}; {where} (on Debian: apt-get install openjdk-17-jre-headless)")
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', shown)
    if found and int(found[1]) < LEAST_JAVA:
        raise EngineError(f"{wanted}; {java} is version {found[1]}")


def open_session(slots: int, settings: dict[str, str], log_file: Path) -> SparkSession:
    """A local session with that many slots; its log, and its workers' output, go to the file."""
    check_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if SparkSession.getActiveSession() is not None:
        raise EngineError("a Spark session is already open in this process: stop it, or give it to the run")
    builder = SparkSession.builder.appName("penstock")
    for key, value in {"spark.master": f"local[{slots}]", **COMMON, **settings}.items():
        builder = builder.config(key, value)
    try:
        with _standard_error_to(log_file), interrupts_held():
            session = builder.getOrCreate()
    except KeyboardInterrupt:
        if (opened := SparkSession.getActiveSession()) is not None:
            opened.stop()
        raise
    return session


def slots_for(layout: Layout) -> int:
    """Slots that a session or a cluster must have for two shifts at once."""
    return 2 * layout.tasks + SPARE_SLOTS


def check_session(spark: SparkSession, needed: int, settings: dict[str, str]) -> None:
    """Raise an EngineError if a session someone else made has too few slots or other settings than the mode needs."""
    wrong = [f"{key}={value}" for key, value in settings.items() if spark.conf.get(key, None) != value]
    if wrong:
        raise EngineError(f"the Spark session lacks settings that real-time mode needs: {', '.join(wrong)}")
    check_slots(spark.sparkContext.master or "", needed, spark.sparkContext.defaultParallelism)


def await_slots(spark: SparkSession, needed: int, executors: int, timeout_s: float) -> None:
    """Wait until so many executors of a cluster, and so many slots on them, can be used; an EngineError if not in time.

    Replicas are spread over the executors that are there when their query starts.
    """
    master, deadline = spark.sparkContext.master or "", time.monotonic() + timeout_s
    if _LOCAL.fullmatch(master):
        return
    while len(ready := ready_executors(spark)) < executors or sum(ready.values()) < needed:
        if time.monotonic() > deadline:
            raise EngineError(
                f"the pools need {needed} slots at once, on {executors} or more executors; after {timeout_s:g} s "
                f"{master} offers {sum(ready.values())} slots on {len(ready)}: have it offer more cores (they may be "
                "more than the machine has), or shrink the pools"
            )
        time.sleep(0.2)


def check_slots(master: str, needed: int, otherwise: int | None = None) -> None:
    """Raise an EngineError if all stages cannot run at once; `otherwise`: what a master that does not say offers."""
    local = _LOCAL.fullmatch(master)
    offered = int(local[1] or 1) if local and local[1] != "*" else otherwise
    if offered is not None and offered < needed:
        raise EngineError(
            f"the pools need {needed} slots at once; {master} offers {offered}: "
            "give Spark more cores or shrink the pools"
        )


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Ctrl-C has its effect afterwards: a JVM that loses its Python while it starts would never end.

    Whatever was to happen on Ctrl-C is so again: PySpark would cancel all jobs, and a run is to finish them first. A
    signal that was ignored before (SIGINT under nohup) is ignored throughout.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {one: signal.signal(one, lambda number, _: came.append(number)) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    if any(before[signal.Signals(one)] is not signal.SIG_IGN for one in came):
        raise KeyboardInterrupt


@contextmanager
def _standard_error_to(file: Path) -> Iterator[None]:
    """The JVM inherits our standard error when it starts, and keeps it."""
    sys.stderr.flush()
    kept = os.dup(2)
    with file.open("ab") as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
