"""A program as a Spark query: the plan of its stages, and the long query of real-time mode."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.plan.layout import Layout
from penstock.engine.plan.program import Program
from penstock.engine.protocol.bundle import ROW_SCHEMA
from penstock.engine.worker.stage import stage_function
from penstock.topology import ReplicaId

MOST_TASKS = 10_000  # of a stage
NEVER_MS = 10 * 365 * 24 * 3600 * 1000  # Spark relaunches every task when a batch ends


def compile_program(frame: DataFrame, program: Program) -> DataFrame:
    """Stage 0 on the frame's partitions, then for each other stage a shuffle by partition number.

    In real-time mode no row goes through it: it is there so that Spark runs the stage, and gives it its partitions.
    """
    frame = frame.mapInArrow(stage_function(program, 0), ROW_SCHEMA)
    for level in range(1, len(program.layout.stages)):
        frame = frame.repartitionById(len(program.layout.stages[level]), "partition")
        frame = frame.mapInArrow(stage_function(program, level), ROW_SCHEMA)
    return frame


class Query(Protocol):
    """A way to run a program; started again, with a program of a later generation, after it died."""

    finishing: bool  # told to end: a query that ends has done its work

    def start(self, program: Program) -> StreamingQuery:
        """Start from the checkpoint."""

    def complaints(self, query: StreamingQuery) -> list[str]:
        """What its tasks that failed said, each for itself; a query's own error has only one of them."""

    def can_start(self) -> bool:
        """Whether Spark is still there to run it."""


def is_there(spark: SparkSession) -> bool:
    """Whether Spark's JVM answers, and has not stopped the session's context."""
    try:
        return not spark.sparkContext._jsc.sc().isStopped()
    except Exception:  # py4j raises whatever the broken connection gives
        return False


def complaints_of(spark: SparkSession, query: StreamingQuery) -> list[str]:
    """What the failed tasks of a query said."""
    store = spark.sparkContext._jsc.sc().statusStore()
    found: list[str] = []
    for stage in _stages_of(spark, query):
        tasks = store.taskList(stage, 0, MOST_TASKS)
        all_ = [tasks.apply(number) for number in range(tasks.size())]
        said = [one.errorMessage() for one in all_ if one.status() == "FAILED"]  # others were killed for these
        found += [str(one.get()) for one in said if one.isDefined()]
    return found


def _stages_of(spark: SparkSession, query: StreamingQuery) -> list[int]:
    """Spark's jobs of a query are grouped by its run."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(str(query.runId))]
    return [stage for job in jobs if job is not None for stage in job.stageIds]


def executors_of(spark: SparkSession, query: StreamingQuery, layout: Layout) -> dict[ReplicaId, str]:
    """The executor of every replica of a real-time query that runs, from what Spark says of its tasks.

    The stages of a query run at once and are numbered in the order of the levels.
    """
    context: Any = spark.sparkContext._jsc.sc()
    running = sorted(_stages_of(spark, query))
    if len(running) != len(layout.stages):
        return {}
    found: dict[ReplicaId, str] = {}
    for stage_id, partitions in zip(running, layout.stages, strict=True):
        tasks = context.statusStore().taskList(stage_id, 0, len(partitions))
        for number in range(tasks.size()):
            task = tasks.apply(number)
            replica = partitions[task.index()].id if task.index() < len(partitions) else None
            if replica is not None:
                found[replica] = str(task.executorId())
    return found


@dataclass
class RealTimeQuery:
    """One long query over the full pools, whose only batch never ends. Its Spark source has no rows."""

    spark: SparkSession
    folder: Callable[[int], Path]  # for what Spark keeps of a generation, of which nothing is needed later
    finishing: bool = False  # it never ends by itself

    def __post_init__(self) -> None:
        jvm: Any = self.spark._jvm
        self._memory = getattr(jvm, "org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream")
        self._strings = getattr(jvm, "org.apache.spark.sql.Encoders").STRING()
        self._used: list[tuple[StreamingQuery, Path]] = []

    def start(self, program: Program) -> StreamingQuery:
        """Start it; where events go on, replicas are told by the driver."""
        self._clean_up()
        folder = self.folder(program.generation)
        stream: Any = self._memory.apply(self.spark._jsparkSession, len(program.layout.stages[0]), self._strings)
        frame = compile_program(DataFrame(stream.toDF(), self.spark), program)
        writer: Any = frame.writeStream.format("noop").outputMode("update")  # its stubs do not know realTime yet
        writer = writer.option("checkpointLocation", folder.as_uri())  # whatever fs.defaultFS is
        query: StreamingQuery = writer.trigger(realTime=f"{NEVER_MS} milliseconds").start()
        self._used.append((query, folder))
        return query

    def _clean_up(self) -> None:
        """Remove what Spark kept of those that have ended."""
        ended = [one for one in self._used if not one[0].isActive]
        for one in ended:
            shutil.rmtree(one[1], ignore_errors=True)
            self._used.remove(one)

    def complaints(self, query: StreamingQuery) -> list[str]:
        """What its tasks that failed said, each for itself."""
        return complaints_of(self.spark, query)

    def can_start(self) -> bool:
        """Whether Spark is still there to run it."""
        return is_there(self.spark)
