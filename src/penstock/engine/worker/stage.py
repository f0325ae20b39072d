"""The function of a stage: from its partition number it knows which part to play."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from penstock.engine.plan.program import Program
from penstock.engine.protocol.numbers import first_batch

Batches = Iterable[Any]


def stage_function(program: Program, level: int) -> Callable[[Batches], Iterator[Any]]:
    """What Spark runs in every partition of a stage."""

    def run(batches: Batches) -> Iterator[Any]:
        from penstock.engine.worker.stage import play

        yield from play(program, level, batches)

    return run


def play(program: Program, level: int, batches: Batches) -> Iterator[Any]:
    """Play the part of this partition."""
    from pyspark import TaskContext

    from penstock.engine.worker.pass_by import pass_by
    from penstock.engine.worker.replica import OperatorReplica
    from penstock.engine.worker.source_slot import SourceSlot, ingest_rows

    task = TaskContext.get()
    if task is None:
        raise RuntimeError("a stage runs in a Spark task only")
    sys.path += [entry for entry in program.path if entry not in sys.path]
    number = program.batch if program.batch is not None else int(task.getLocalProperty("streaming.sql.batchId") or 0)
    batch = first_batch(program.shift) + number
    if level == 0 and program.frame_source is not None:
        yield from ingest_rows(program, task.partitionId(), batch, batches)
        return
    slot = program.layout.stages[level][task.partitionId()]
    if slot.operator is None:
        yield from pass_by(program, level, batches)
    elif level > 0:
        yield from OperatorReplica(program, level, slot.operator, slot.replica, batch).run(batches)
    elif program.realtime:
        yield from SourceSlot(program, slot.operator, slot.replica, batch).run(batches)
    else:
        for _ in batches:  # the rows only say which slot this is, and that is known
            pass
        yield from SourceSlot(program, slot.operator, slot.replica, batch).run_range()
