"""A program as a Spark query plan: one function, for both modes."""

from __future__ import annotations

from pyspark.sql import DataFrame

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
