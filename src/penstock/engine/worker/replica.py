"""What runs in a partition that is a replica of an operator."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from penstock.engine.online.receiver import online_receiver
from penstock.engine.plan.program import Program
from penstock.engine.protocol.bundle import Events, Unpacker, read_header
from penstock.engine.protocol.messages import Report, TablesQuery
from penstock.engine.worker.inbox import Arrival, Inbox
from penstock.engine.worker.keyed_replica import KeyedReplica
from penstock.engine.worker.lifecycle import opened
from penstock.engine.worker.microbatch import agent_of
from penstock.engine.worker.outbox import Outbox, warm_up
from penstock.engine.worker.processing import Processing, flush_s
from penstock.engine.worker.role import Role
from penstock.errors import EngineError
from penstock.metrics.counters import ReplicaCounters
from penstock.state.handover import Table

ROUTING_TIMEOUT_S = 10.0
TURN_S = 0.01


class OperatorReplica:
    """One replica of an operator in one batch."""

    def __init__(self, program: Program, level: int, name: str, replica: int, batch: int) -> None:
        self._program = program
        self._level = level
        self._name = name
        self._counters = ReplicaCounters()
        self._agent = agent_of(program)
        self._outbox = Outbox(program, level, name, replica, self._counters)
        self._operator = opened(program, name, replica, batch)
        self._outbox.declare(self._operator.spec.outputs)
        self._operator.context.counters = self._counters
        self._unpack = Unpacker(self._operator.event_type)
        sink = not program.edges[name]
        self._processing = Processing(self._operator, program.limits.t_out_s, self._outbox, self._counters, sink=sink)
        self._processing.online = self._online = online_receiver(program, name, self._outbox.mail)
        self._report = report_of(program, name, replica, batch, self._counters)
        self._tables: dict[str, Table] = {}
        self._stateful: KeyedReplica | None = None
        if self._operator.spec.state is not None:
            self._stateful = KeyedReplica(program, self._operator, self._report, self._agent)
            self._processing.one = self._stateful.process

    def run(self, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        """Work off the batch."""
        role = Role(self._report, self._refresh, self._outbox.mail)
        try:
            yield from self._run(batches, role)
        finally:
            role.end()
            self._outbox.mail.close()

    def _run(self, batches: Iterable[Any], role: Role) -> Iterator[pa.RecordBatch]:
        program, outbox, agent = self._program, self._outbox, self._agent
        inbox = self._inbox = Inbox(batches, self._counters, program.senders, program.queue_bytes)
        self._bound(inbox)
        inbox.start()
        yield from warm_up(program, self._level, self._report.batch)
        if program.needs_tables(self._name):
            self._begin(role)
        agent.join(role)
        agent.wait_for_routing(ROUTING_TIMEOUT_S)
        self._await_turn()
        if self._stateful is not None:
            self._stateful.begin(self._tables[self._name], role)
        self._flushed = time.perf_counter()
        while (events := self._next(inbox)) is not None:
            self._bound(inbox)
            yield from self._play(events, inbox)
        role.on_tables = None
        if self._stateful is not None:
            role.on_tables = self._stateful.wake
            yield from self._play(self._stateful.end(), inbox)
        if (rows := outbox.rows(agent.routing, agent.used)) is not None:
            yield rows
        role.on_tables = None
        if self._stateful is not None:
            self._stateful.write()
        agent.wake()

    def _play(self, events: Events[Any], inbox: Inbox) -> Iterator[pa.RecordBatch]:
        """Work off events, and send what was emitted when it is time to; markers leave with or without events.

        State that moves does so in between, a little at a time, and may release more events.
        """
        index, stop = 0, len(events.ids)
        while True:
            if index < stop:
                done = self._processing.work(events, index, stop, inbox)
                inbox.finish(done - index)
                index = done
            if self._stateful is not None and self._stateful.moving:
                self._stateful.move(events)
                stop = len(events.ids)
            if time.perf_counter() - self._flushed >= flush_s(inbox.waiting) or (index >= stop and inbox.empty()):
                if (rows := self._outbox.rows(self._agent.routing, self._agent.used)) is not None:
                    yield rows
                self._flushed = time.perf_counter()
            if index >= stop:
                return

    def _begin(self, role: Role) -> None:
        """Learn who owns which key groups, from the driver, and look again whenever they change."""
        self._tables = self._agent.ask_tables(TablesQuery(self._report.generation, self._report.batch))
        self._outbox.begin(self._tables)
        role.on_tables = self._inbox.wake
        self._inbox.wake()  # they may have changed already

    def _refresh(self, counters: ReplicaCounters) -> None:
        counters.queued = self._inbox.waiting
        if self._stateful is not None:
            self._stateful.count()

    def _await_turn(self) -> None:
        """Where order counts: process nothing before the shift before has finished."""
        if self._operator.spec.in_order:
            while not self._agent.progress.is_turn_of(self._program.shift) and not self._inbox.broken:
                time.sleep(TURN_S)

    def _next(self, inbox: Inbox) -> Events[Any] | None:
        """The next events; for process_many, as many as wait and fit into one call."""
        if self._stateful is not None and self._stateful.moving and inbox.empty():
            return Events([], [], [])
        arrival = inbox.take()
        if arrival is None:
            return None
        if not arrival.count:
            if self._stateful is not None:
                self._stateful.heed(arrival)
            return Events([], [], [])
        events = self._decode(arrival)
        if self._stateful is not None:
            return self._stateful.admit(events)
        while self._operator.many is not None and len(events.ids) < self._processing.at_once and not inbox.ending():
            if (more := inbox.take()) is not None and more.count:
                added = self._decode(more)
                events.ids += added.ids
                events.born += added.born
                events.events += added.events
        return events

    def _bound(self, inbox: Inbox) -> None:
        """Each active replica may queue its part of the operator's q_size."""
        if self._program.limits.q_size is not None:
            active = len(self._agent.routing.operators[self._name].active)
            inbox.capacity = math.ceil(self._program.limits.q_size / active)

    def _decode(self, arrival: Arrival) -> Events[Any]:
        try:
            events = self._unpack(arrival.bundle)
        except Exception as error:
            wanted = getattr(self._operator.event_type, "__name__", "an event")
            raise EngineError(f"{self._operator.spec}: an event is not {wanted}: {error}") from error
        for column in (events.ids, events.born, events.events):
            del column[arrival.count :]
        if self._online is not None and events.keys is not None:
            sender = self._program.senders[read_header(arrival.bundle).sender]
            self._online.expect(sender, events.keys, arrival.count)
        return events


def report_of(program: Program, name: str, replica: int, batch: int, counters: ReplicaCounters) -> Report:
    """How a replica introduces itself."""
    return Report(program.generation, batch, name, replica, counters)
