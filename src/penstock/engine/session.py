"""The Spark session a run needs: enough slots, the settings real-time mode wants, logs in a file."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from penstock.common.secrets import is_telling, without
from penstock.engine.plan.layout import Layout
from penstock.errors import EngineError, InputError
from penstock.infra.executors import ready_executors

LEAST_JAVA = 17
CONNECT_S = 5.0  # to a master
_FOR_ONE = (  # session alone: a local one after it would make a secret of its own, which Spark keeps for all later ones
    "spark.authenticate",
    "spark.network.crypto",
)
SPARE_SLOTS = 2  # besides those of two shifts at once
_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?")
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

NEEDED = {  # by real-time mode, in any session: no row ever comes that would push what a task is to run out of a buffer
    "spark.python.daemon.module": "penstock.engine.worker.daemon",
    "spark.python.udf.pipelined.enabled": "true",
    "spark.sql.execution.pandas.udf.buffer.size": "64",
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",  # mapInArrow is not on its list, and works
}
OWN = {  # of a session that a run makes for itself: quiet and quick
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.rpc.netty.dispatcher.numThreads": "8",  # or else one for each slot
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1000",  # nothing goes through it: its timer ticks in vain
    "spark.shuffle.streaming.networkBufferSize": "256",
    "spark.shuffle.streaming.writerMaxMemory": "262144",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "4",
}


def spark_settings() -> dict[str, Any]:
    """What a Spark session of your own must be made with for a run in real-time mode.

    >>> from pyspark.sql import SparkSession
    >>> builder = SparkSession.builder.master("local[24]").config(map=spark_settings())
    """
    return dict(NEEDED)


def read_settings(file: Path) -> dict[str, str]:
    """Spark settings from a file as `spark-submit --properties-file` takes it: a key and a value on each line."""
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except OSError as error:
        raise InputError(f"Spark settings {str(file)!r}: cannot be read; {error.strerror or error}") from error
    settings = {}
    for number, line in enumerate(lines, start=1):
        if not line or line.startswith("#"):
            continue
        found = re.fullmatch(r"([^\s=:]+)\s*[=:\s]\s*(.*)", line)
        if found is None:
            raise InputError(f"Spark settings {str(file)!r}: line {number} must be a key and a value; got {line!r}")
        settings[found[1]] = found[2]
    return settings


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


def open_session(slots: int, settings: Mapping[str, str], log_file: Path) -> SparkSession:
    """A session of our own; its log, and its workers' output, go to the file.

    On the master that the settings name, or else the one that `spark-submit` was given, or else `local` with so many
    slots.
    """
    check_java()
    check_masters(settings.get("spark.master", ""))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if SparkSession.getActiveSession() is not None:
        raise EngineError("a Spark session is already open in this process: stop it, or give it to the run")
    ours: dict[str, Any] = OWN | dict(settings)
    try:
        with _standard_error_to(log_file), interrupts_held():
            ours["spark.master"] = settings.get("spark.master") or submitted_master() or f"local[{slots}]"
            session = _made(ours)
    except KeyboardInterrupt:
        if (opened := SparkSession.getActiveSession()) is not None:
            opened.stop()
        raise
    except Exception as error:  # whatever comes out of Java
        told = without(_first_line(error), [value for name, value in ours.items() if is_telling(name)])
        raise EngineError(f"Spark did not start on {ours['spark.master']}: {told}; its log is {log_file}") from None
    return session


def _made(settings: Mapping[str, Any]) -> SparkSession:
    """A session with these settings; those with secrets come by a way that others on this machine cannot see.

    PySpark gives all others to Java on its command line, where later sessions in this process find them, too.
    """
    hidden = {name: value for name, value in settings.items() if is_telling(name) or name.startswith(_FOR_ONE)}
    shown = {name: value for name, value in settings.items() if name not in hidden}
    if hidden:
        conf = SparkConf(loadDefaults=False)
        SparkContext._ensure_initialized(conf=conf.setAll(list(shown.items())))
    system: Any = SparkContext._jvm.java.lang.System if hidden else None  # type: ignore[union-attr]
    try:
        for name, value in hidden.items():
            system.setProperty(name, value)
        return SparkSession.builder.appName("penstock").config(map=shown).getOrCreate()
    finally:
        for name in hidden:
            system.clearProperty(name)


def _first_line(error: Exception) -> str:
    """What a Java error says, without the places it came by."""
    thrown = getattr(error, "java_exception", None)
    lines = str(thrown.toString() if thrown is not None else error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def check_masters(master: str) -> None:
    """Raise an EngineError if nobody listens where the masters of a Standalone cluster are said to be."""
    if not master.startswith("spark://"):
        return
    faults = []
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S).close()
        except (OSError, ValueError) as error:
            faults.append(f"{place}: {getattr(error, 'strerror', None) or error}")
        else:
            return
    raise EngineError(f"the Spark master {master} cannot be reached: {'; '.join(faults)}")


def submitted_master() -> str | None:
    """The master that this program was submitted to; None if it was not, or without a word about it.

    `spark-submit` starts the JVM, which then knows; a program that starts its own is told in PYSPARK_SUBMIT_ARGS.
    """
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return _master_in(shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")))
    SparkContext._ensure_initialized()
    system: Any = SparkContext._jvm.java.lang.System  # type: ignore[union-attr]
    master: str | None = system.getProperty("spark.master")
    named = master != "local[*]" or _master_in((system.getProperty("sun.java.command") or "").split())
    return master if named else None  # local[*] is what Spark says where nobody said anything


def _master_in(arguments: Sequence[str]) -> str | None:
    """The master in the arguments of spark-submit.

    >>> _master_in(["--master", "yarn", "pyspark-shell"]), _master_in(["--conf", "spark.master=local[4]"])
    ('yarn', 'local[4]')
    """
    for before, argument in zip(("", *arguments), arguments, strict=False):
        if before == "--master":
            return argument
        if argument.startswith(("--master=", "spark.master=")):
            return argument.partition("=")[2]
    return None


def slots_for(layout: Layout) -> int:
    """Slots that a session or a cluster must have for two shifts at once."""
    return 2 * layout.tasks + SPARE_SLOTS


def check_settings(settings: Mapping[str, str]) -> None:
    """Raise an InputError if a setting for a session of our own is other than real-time mode needs it."""
    wrong = [key for key, value in settings.items() if NEEDED.get(key, value) != value]
    if wrong:
        told = "; ".join(f"{key} must be {NEEDED[key]}; got {settings[key]}" for key in wrong)
        raise InputError(f"Spark settings: {told}")


def check_session(spark: SparkSession) -> None:
    """Raise an EngineError with all settings that real-time mode needs and a session someone else made has not got."""
    wrong = [f"{key}={value}" for key, value in NEEDED.items() if spark.conf.get(key, None) != value]
    if wrong:
        raise EngineError(
            f"the Spark session lacks settings that real-time mode needs: {', '.join(wrong)}; "
            "make it with all of penstock.spark_settings()"
        )


def check_python(spark: SparkSession) -> None:
    """Raise an EngineError if a local session that someone else made starts workers with a Python without Penstock."""
    python = spark.sparkContext.pythonExec
    if not _LOCAL.fullmatch(spark.sparkContext.master or ""):
        return
    tried = subprocess.run([python, "-c", "import penstock"], capture_output=True, text=True, check=False)
    if tried.returncode:
        raise EngineError(
            f"the Spark session starts its workers with {python!r}, which cannot import penstock: "
            f"set PYSPARK_PYTHON to {sys.executable} before the session is made"
        )


def await_slots(spark: SparkSession, needed: int, executors: int, timeout_s: float) -> None:
    """Wait until so many executors of a cluster, and so many slots on them, can be used; an EngineError if not in time.

    Replicas are spread over the executors that are there when their query starts. A local session has what it has.
    """
    master, deadline = spark.sparkContext.master or "", time.monotonic() + timeout_s
    if (local := _LOCAL.fullmatch(master)) is not None:
        offered = spark.sparkContext.defaultParallelism if local[1] == "*" else int(local[1] or 1)
        if offered < needed:
            raise EngineError(
                f"the pools need {needed} slots at once; {master} offers {offered}: "
                f"make it local[{needed}] or more (slots may be more than there are cores), or shrink the pools"
            )
        return
    while len(ready := ready_executors(spark)) < executors or sum(ready.values()) < needed:
        if time.monotonic() > deadline:
            raise EngineError(
                f"the pools need {needed} slots at once, on {executors} or more executors; after {timeout_s:g} s "
                f"{master} offers {sum(ready.values())} slots on {len(ready)}: have it offer more cores (they may be "
                "more than the machine has), or shrink the pools"
            )
        time.sleep(0.2)


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
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
