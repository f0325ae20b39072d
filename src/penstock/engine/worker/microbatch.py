"""Micro-batch mode, in the workers: rows of a DataFrame as events, and routing that is fixed while a batch lasts.

A replica does the same in both modes. In a micro-batch it is only told nothing new: its program has everything that the
batch was laid out for.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from penstock.engine.plan.program import MicroBatch, Program
from penstock.engine.protocol.bundle import read_checked
from penstock.engine.protocol.messages import Report, Restore, RestoreQuery, Routing, TablesQuery
from penstock.engine.protocol.progress import not_heard
from penstock.engine.worker.agent import Agent, agent_for
from penstock.engine.worker.outbox import Outbox, rows_of
from penstock.engine.worker.role import Role
from penstock.metrics.counters import ReplicaCounters
from penstock.state.files import StateFiles
from penstock.state.handover import Table
from penstock.state.segments import newest_first


class FixedAgent:
    """What a replica hears in a micro-batch: always the same; what it reports goes to the driver as ever."""

    def __init__(self, agent: Agent, program: Program, batch: MicroBatch) -> None:
        self.routing = Routing(0, dict(program.routing))
        self.used = batch.used
        self.progress = not_heard()
        self._batch, self._state = batch.number, program.storage / "state"
        self._agent = agent
        self.join = agent.join
        self.wake = agent.wake
        self.post = agent.post
        self.tell = agent.tell

    @property
    def resting(self) -> bool:
        """Whether who has something to report must wake it."""
        return self._agent.resting

    def wait_for_routing(self, timeout_s: float) -> bool:  # noqa: ARG002 - as an agent's
        """It is known already."""
        return True

    def ask_tables(self, question: TablesQuery) -> dict[str, Table]:  # noqa: ARG002 - as an agent's
        """Who owns which key groups, from the beginning of the batch to its end."""
        return {name: one.table for name, one in self.routing.operators.items() if one.table is not None}

    def ask_restore(self, question: RestoreQuery) -> Restore:
        """The segments of the batches before this one."""
        found = StateFiles(self._state / question.operator).found()
        return Restore(self._batch, newest_first(found, self._batch))


AnyAgent = Agent | FixedAgent


def agent_of(program: Program) -> AnyAgent:
    """Through whom a replica hears and reports."""
    agent = agent_for(program)
    return agent if program.microbatch is None else FixedAgent(agent, program, program.microbatch)


def send_rows(program: Program, partition: int, batch: int, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """The rows of one partition of a DataFrame as events, numbered by batch, partition and row."""
    assert program.microbatch is not None
    name, counters, agent = program.microbatch.source, ReplicaCounters(), agent_of(program)
    outbox = Outbox(program, 0, name, partition, counters)
    agent.join(Role(Report(program.generation, batch, name, partition, counters), lambda _: None))
    row = 0
    for rows in batches:
        now = time.time()
        for event in rows.to_pylist():
            outbox.add_one(f"{batch}-{partition}-{row}", now, event)
            row += 1
        counters.processed += rows.num_rows
        yield from outbox.rows(agent.routing, agent.used)
    agent.wake()


def pass_by(program: Program, level: int, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """What runs in a partition that is the way past a stage: send bundles that skip it on their way."""
    for batch in batches:
        bundles: list[bytes] = batch.column(1).to_pylist()
        headers = map(read_checked, bundles)
        firsts = [program.layout.next_partition(level, one.level, one.partition) for one in headers]
        yield from rows_of(list(zip(firsts, bundles, strict=True)))
