"""Rows as Spark takes them, and the nudges behind them, without which they would wait in its buffers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from penstock.engine.plan.program import Program
from penstock.engine.protocol.bundle import NUDGE

_ARROW = pa.schema([("partition", pa.int32()), ("bundle", pa.binary())])
ROWS_BYTES = 4 << 20  # of bundles that Spark is given at once: Java has them in memory together
WARM_UP_ROUNDS = 24  # an even number
WARM_UP_ROWS = 4096  # from one stage to the next; more would only take time where pools are large
WARM_UP_PAUSE_S = 0.02


def first_nudges(program: Program, level: int, partition: int) -> Iterator[pa.RecordBatch]:
    """One row to every partition of the next stage, from the first of this one: it makes the number of rows odd."""
    if program.nudged and partition == 0 and level + 1 < len(program.layout.stages):
        yield _nudges(program, level)


def warm_up(program: Program, level: int, partition: int) -> Iterator[pa.RecordBatch]:
    """Nudges to every replica of the next stage when a shift starts, so that its first events find the paths warm."""
    starting = program.generation == program.first_generation
    if program.nudged and starting and level + 1 < len(program.layout.stages):
        senders, receivers = len(program.layout.stages[level]), len(program.layout.stages[level + 1])
        for _ in range(warm_up_rounds(senders, receivers, partition)):
            yield _nudges(program, level)
            time.sleep(WARM_UP_PAUSE_S)


def warm_up_rounds(senders: int, receivers: int, partition: int) -> int:
    """How often the sender of that number nudges all receivers; between large stages only some do.

    >>> warm_up_rounds(8, 8, 7), warm_up_rounds(64, 64, 31), warm_up_rounds(64, 64, 32)
    (24, 2, 0)
    """
    rounds = max(2, min(WARM_UP_ROUNDS, WARM_UP_ROWS // (senders * receivers) // 2 * 2))
    return rounds if partition < max(1, WARM_UP_ROWS // (rounds * receivers)) else 0


def _nudges(program: Program, level: int) -> pa.RecordBatch:
    partitions = list(range(len(program.layout.stages[level + 1])))
    return rows_of(partitions, [NUDGE] * len(partitions))


def nudged_rows(program: Program, partitions: list[int], bundles: list[bytes]) -> list[pa.RecordBatch]:
    """Bundles as rows, with nudges behind them to each of their partitions where rows must not wait.

    Spark hands two rows at a time to Python, and only once a third is there. So all that goes to a partition is even in
    number, but for one row at the beginning, and the row that waits is always a nudge.
    """
    if program.realtime:
        nudged = [partition for partition, rows in Counter(partitions).items() for _ in range(2 - rows % 2)]
        partitions, bundles = partitions + nudged, bundles + [NUDGE] * len(nudged)
    if sum(map(len, bundles)) <= ROWS_BYTES:
        return [rows_of(partitions, bundles)]
    starts, size = [0], 0
    for row, bundle in enumerate(bundles):
        if size and size + len(bundle) > ROWS_BYTES:
            starts.append(row)
            size = 0
        size += len(bundle)
    return [
        rows_of(partitions[start:end], bundles[start:end])
        for start, end in zip(starts, [*starts[1:], len(bundles)], strict=True)
    ]


def rows_of(partitions: list[int], bundles: list[bytes]) -> pa.RecordBatch:
    """Rows as Spark takes them."""
    return pa.RecordBatch.from_arrays([pa.array(partitions, pa.int32()), pa.array(bundles, pa.binary())], schema=_ARROW)
