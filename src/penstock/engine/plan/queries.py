"""The Spark queries of the two modes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.driver.positions import Positions
from penstock.engine.plan.compile import compile_program
from penstock.engine.plan.layout import lay_out
from penstock.engine.plan.program import Program
from penstock.engine.protocol.messages import OperatorRouting
from penstock.sources.base import Source
from penstock.topology import Topology

IDLE_S = 0.02  # micro-batch: wait this long when nothing is due
MOST_EVENTS = 100_000  # micro-batch: of one source in one batch


class SourcesStopped(Exception):  # noqa: N818 - an end, not a fault
    """Ends a query over a DataFrame before its next batch."""


class Query(Protocol):
    """A way to run a program; started again, with a program of a later generation, after it died."""

    unfinished: bool  # a batch has begun and not ended, whatever counters say

    def start(self, program: Program) -> StreamingQuery:
        """Start from the checkpoint."""


@dataclass
class RealTimeQuery:
    """One long query over the full pools. Its Spark source has no rows: it only marks where batches end."""

    spark: SparkSession
    checkpoint: Path
    every_s: float
    unfinished: bool = field(default=False, init=False)  # its sources tell where they are

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


@dataclass
class MicroBatchQuery:
    """A query that compiles every batch anew over the active replicas only."""

    spark: SparkSession
    checkpoint: Path
    topology: Topology
    sources: Mapping[str, Source | DataFrame]
    positions: Positions
    routing: Callable[[], tuple[Mapping[str, OperatorRouting], float, bool]]  # routing, epoch, stopping
    unfinished: bool = field(default=False, init=False)

    def start(self, program: Program) -> StreamingQuery:
        """Start from the checkpoint."""
        frames = [source for source in self.sources.values() if isinstance(source, DataFrame)]
        clock = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        trigger = frames[0] if frames else clock
        return (
            trigger.writeStream.foreachBatch(lambda frame, batch: self._run_batch(program, frame, batch))
            .option("checkpointLocation", str(self.checkpoint))
            .start()
        )

    def _run_batch(self, program: Program, frame: DataFrame, batch: int) -> None:
        died, self.unfinished = self.unfinished, True  # before it looks whether sources are stopped
        routing, epoch_s, stopping = self.routing()
        slots = len(program.layout.stages[0])
        layout = lay_out(self.topology, {n: r.active for n, r in routing.items()}, slots // len(self.sources))
        program = replace(program, layout=layout, routing=routing, batch=batch, epoch_s=epoch_s)
        if program.frame_source is not None and stopping:
            self.unfinished = died
            raise SourcesStopped  # the batch has not begun and stays in the DataFrame's source
        if program.frame_source is None:
            ranges = self._ranges(batch, layout.stages[0], epoch_s, stopping)
            if not any(ranges.values()):
                self.unfinished = False
                time.sleep(IDLE_S)
                return
            program = replace(program, ranges=ranges)
            frame = self.spark.range(0, slots, 1, slots).toDF("slot")
        compile_program(frame, program).write.format("noop").mode("append").save()
        self.unfinished = False

    def _ranges(
        self, batch: int, slots: tuple[Any, ...], epoch_s: float, stopping: bool
    ) -> dict[tuple[str, int], range]:
        """The events of this batch: from where the last one ended to what is due now; the same when done again."""
        ranges = {}
        for slot in slots:
            key = (slot.operator, slot.replica)
            start = self.positions.start(batch, key)
            end = self.positions.known_end(batch, key)
            if end is None:
                source: Any = self.sources[slot.operator]
                due = 0 if stopping else source.due(time.time() - epoch_s)
                of = sum(s.operator == slot.operator for s in slots)
                end = min(max(start, math.ceil((due - slot.replica) / of)), start + MOST_EVENTS // of)
                self.positions.end(batch, key, end)
            ranges[key] = range(start, end)
        return ranges
