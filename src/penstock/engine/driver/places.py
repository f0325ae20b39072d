"""On which Spark executor each replica sits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from penstock.engine.plan.layout import Layout


@dataclass(frozen=True, slots=True)
class ReplicaPlace:
    """Where a replica sits; the executor is None while Spark does not say."""

    executor: str | None
    host: str
    pid: int
    batch: int


def executors_of(spark: SparkSession, layout: Layout) -> dict[tuple[str, int], str]:
    """The executor of every replica of the real-time query now running, from Spark's own book of tasks.

    The stages of a query run at once and are numbered in the order of the levels.
    """
    context: Any = spark.sparkContext._jsc.sc()
    running = sorted(spark.sparkContext.statusTracker().getActiveStageIds())
    if len(running) != len(layout.stages):
        return {}
    found: dict[tuple[str, int], str] = {}
    for stage_id, slots in zip(running, layout.stages, strict=True):
        tasks = context.statusStore().taskList(stage_id, 0, len(slots))
        for number in range(tasks.size()):
            task = tasks.apply(number)
            slot = slots[task.index()] if task.index() < len(slots) else None
            if slot is not None and slot.operator is not None:
                found[slot.operator, slot.replica] = str(task.executorId())
    return found
