"""The function of a stage: from its partition number it knows which part to play."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from penstock.engine.plan.program import Program
from penstock.engine.protocol.progress import first_batch
from penstock.engine.worker.sight import check_sight
from penstock.topology import ReplicaId

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

    from penstock.engine.worker.microbatch import pass_by, send_rows
    from penstock.engine.worker.overdue import Overdue
    from penstock.engine.worker.replica import OperatorReplica

    task = TaskContext.get()
    if task is None:
        raise RuntimeError("a stage runs in a Spark task only")
    sys.path += [entry for entry in program.path if entry not in sys.path]
    check_sight(program)
    batch = _batch(program)
    if level == 0 and not program.realtime:
        yield from send_rows(program, task.partitionId(), batch, batches)
        return
    slot = program.layout.stages[level][task.partitionId()]
    if slot.operator is None:
        yield from pass_by(program, level, batches)
        return
    if not program.realtime:
        yield from OperatorReplica(program, level, slot.operator, slot.replica, batch).run(batches)
        return
    given = Overdue(batches)
    try:
        yield from _take_part(program, level, (slot.operator, slot.replica), given)
    finally:
        given.over()


def _take_part(program: Program, level: int, me: ReplicaId, batches: Batches) -> Iterator[Any]:
    """One replica, or slot of a source, in one attempt."""
    from penstock.engine.protocol.messages import AtWork
    from penstock.engine.worker.agent import agent_for
    from penstock.engine.worker.replica import OperatorReplica
    from penstock.engine.worker.source_slot import SourceSlot
    from penstock.engine.worker.standby import Waiting

    batch = _batch(program)
    if program.standby:
        waiting = Waiting(program, me, batch, batches)
        batches = waiting.batches
        if (called := waiting.await_call()) is None:
            return
        program = called
    try:
        if level == 0:
            yield from SourceSlot(program, *me, batch).run(batches)
        else:
            yield from OperatorReplica(program, level, *me, batch).run(batches)
    except Exception:  # or else the driver takes it for one that was ended from outside
        agent_for(program).tell(AtWork(program.generation, *me, fails=True))
        raise


def _batch(program: Program) -> int:
    """The number of the batch, as in counters; Spark never ends that of a real-time query."""
    return program.microbatch.number if program.microbatch is not None else first_batch(program.shift)
