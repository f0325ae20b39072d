"""What runs in a partition that is the way past a stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from penstock.engine.plan.program import Program
from penstock.engine.protocol.bundle import NUDGE, read_header
from penstock.engine.worker.outbox import rows_of


def pass_by(program: Program, level: int, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Send bundles that skip this stage on their way."""
    for batch in batches:
        partitions: list[int] = []
        bundles: list[bytes] = []
        for bundle in batch.column(1).to_pylist():
            if bundle:
                header = read_header(bundle)
                partition = program.layout.next_partition(level, header.level, header.partition)
                partitions += [partition] * (2 if program.realtime else 1)
                bundles += [bundle, NUDGE] if program.realtime else [bundle]
        if bundles:
            yield rows_of(partitions, bundles)
