"""A program as a Spark query: the plan of its stages, and the long query of real-time mode."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.plan.program import Program
from penstock.engine.protocol.bundle import ROW_SCHEMA
from penstock.engine.worker.stage import stage_function


def compile_program(frame: DataFrame, program: Program) -> DataFrame:
    """Stage 0 on the frame's partitions, then one shuffle by partition number and one stage for each level."""
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


@dataclass
class RealTimeQuery:
    """One long query over the full pools. Its Spark source has no rows: it only marks where batches end."""

    spark: SparkSession
    checkpoint: Path
    every_s: float
    finishing: bool = False  # it never ends by itself

    def __post_init__(self) -> None:
        jvm: Any = self.spark._jvm
        self._memory = getattr(jvm, "org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream")
        self._strings = getattr(jvm, "org.apache.spark.sql.Encoders").STRING()
        self._stream: Any = None

    def start(self, program: Program) -> StreamingQuery:
        """Start from the checkpoint."""
        if self._stream is None:
            slots = len(program.layout.stages[0])
            self._stream = self._memory.apply(self.spark._jsparkSession, slots, self._strings)
        frame = compile_program(DataFrame(self._stream.toDF(), self.spark), program)
        writer: Any = frame.writeStream.format("noop").outputMode("update")  # its stubs do not know realTime yet
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        query: StreamingQuery = writer.trigger(realTime=f"{round(self.every_s * 1000)} milliseconds").start()
        return query
