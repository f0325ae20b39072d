"""What runs in a partition that is a replica of an operator."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import pyarrow as pa

from penstock.engine.direct.receiver import Listener
from penstock.engine.online.receiver import online_receiver
from penstock.engine.plan.program import Program
from penstock.engine.protocol.bundle import Barrier, Events, Unpacker, read_header
from penstock.engine.protocol.messages import Done, OperatorRouting, Report, RestoreQuery, TablesQuery
from penstock.engine.protocol.progress import Progress
from penstock.engine.pull.post import RoomNote
from penstock.engine.pull.receiver import rooms_of
from penstock.engine.worker.agent import agent_for
from penstock.engine.worker.alignment import Alignment
from penstock.engine.worker.guard import guard
from penstock.engine.worker.inbox import WAKE, Arrival, Inbox
from penstock.engine.worker.keyed_replica import KeyedReplica
from penstock.engine.worker.lifecycle import opened
from penstock.engine.worker.microbatch import agent_of
from penstock.engine.worker.outbox import Outbox
from penstock.engine.worker.processing import Processing, flush_s
from penstock.engine.worker.role import Role
from penstock.errors import EngineError
from penstock.metrics.counters import ReplicaCounters
from penstock.state.handover import Table

ROUTING_TIMEOUT_S = 10.0
TURN_S = 0.01
EASE_S = 0.05  # while too much is held, room and news are looked for at least so often
TOGETHER_BYTES = 16 << 20  # of events, encoded, that process_many may get at once


class OperatorReplica:
    """One replica of an operator in one attempt, or in one micro-batch."""

    def __init__(self, program: Program, level: int, name: str, replica: int, batch: int) -> None:
        self._program = program
        self._name = name
        self._counters = ReplicaCounters()
        self._agent = agent_of(program)
        self._outbox = Outbox(program, level, name, replica, self._counters)
        self._operator = opened(program, name, replica, batch)
        guard(self._operator, program, self._agent)
        self._outbox.declare(self._operator.spec.outputs)
        self._operator.context.counters = self._counters
        self._unpack = Unpacker(self._operator.event_type)
        sink, self._failures = program.is_sink(name), self._outbox.failures
        self._processing = Processing(self._operator, program.limits.t_out_s, self._outbox, self._counters, sink=sink)
        self._processing.online = self._online = online_receiver(program, name, self._outbox.mail)
        self._report = report_of(program, name, replica, batch, self._counters)
        self._role = Role(self._report, self._refresh, self._outbox.mail)
        self._rooms = rooms_of(program, name, replica, self._agent.post)
        self._outbox.post = self._agent.post
        self._role.on_room = self._hear
        self._listener: Listener | None = None  # for what comes straight from other replicas
        self._eased = threading.Event()  # there is room, or news
        self._easing = False  # it waits for that, and for nothing else
        self._blocked_s = 0.0  # since events were last processed
        members = program.layout.unpacked
        self._alignment = Alignment(program.senders_to(name), program.senders, program.queue_bytes, members)
        self._joined = not program.realtime or self._receives(program.routing)  # so checkpoints are of it, too
        self._reached: Barrier | None = None  # to be passed on behind what has been emitted
        shown = max(0, program.checkpoint - 1)  # what earlier attempts have committed is not this one's to show
        self._done = self._unsaid = Done(program.generation, name, replica, shown=shown)
        self._part: Any = None  # of a sink, in the checkpoint that was reached last
        self._next_up: Arrival | Barrier | None = None  # taken, and to be looked at first
        self._over = False
        self._heard: Progress | None = None  # what was last heeded
        self._tables: dict[str, Table] = {}
        self._stateful: KeyedReplica | None = None
        if self._operator.spec.state is not None:
            self._stateful = KeyedReplica(program, self._operator, self._report, self._agent)
            self._processing.keep_state(self._stateful)

    def run(self, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        """Work off what comes, until Spark ends the batch."""
        try:
            yield from self._run(batches)
        finally:
            self._role.end()
            self._outbox.close()
            if self._listener is not None:
                self._listener.close()
            if self._stateful is not None:
                self._stateful.close()

    def _run(self, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        program, agent, role = self._program, self._agent, self._role
        inbox = self._inbox = Inbox(batches, self._counters, program.senders, program.queue_bytes)
        if self._rooms is not None:
            self._rooms.watch(inbox.lost)
        self._bound(inbox)
        if program.direct:
            straight = agent_for(program)
            self._listener = straight.listener(program, self._name, self._report.replica)
            self._report.place = self._listener.address
            self._outbox.lines = straight.lines(program, lambda: inbox.ended)
        inbox.start(self._listener)
        if program.needs_tables(self._name):
            self._tables = agent.ask_tables(TablesQuery(program.generation))
            self._outbox.begin(self._tables)
        role.on_news = self._wake
        inbox.wake()  # something may have changed already
        agent.join(role)
        agent.wait_for_routing(ROUTING_TIMEOUT_S)
        if not self._await_turn():
            inbox.check()
            return
        if self._stateful is not None:
            self._stateful.begin(self._tables[self._name], role)
        while (events := self._next(inbox)) is not None:
            self._bound(inbox)
            yield from self._play(events, inbox)
        role.on_news = None
        yield from self._outbox.rows(agent.routing, agent.used)
        self._end()
        agent.wake()

    def _end(self) -> None:
        """A micro-batch is over: what belongs to it must be safe."""
        if self._program.microbatch is not None:
            if self._stateful is not None:
                self._stateful.write()
            if self._operator.prepare is not None:
                self._operator.prepare(self._operator.context.checkpoint)

    def _play(self, events: Events[Any], inbox: Inbox) -> Iterator[pa.RecordBatch]:
        """Work off events, and send what was emitted when it is time to; without events, at once, for switches' sake.

        State that moves does so in between, a little at a time, and may release more events.
        """
        index, stop = 0, len(events.ids)
        while True:
            if index < stop:
                index = self._work(events, index, stop, inbox)
            if self._stateful is not None and self._stateful.moving:
                self._stateful.move(events)
                stop = len(events.ids)
            barrier = self._reached if index >= stop else None
            if barrier is not None or not stop or self._due_s(inbox) <= 0.0:
                rows = self._outbox.rows(self._agent.routing, self._agent.used, barrier)
                if barrier is not None:
                    self._reached = None
                    self._passed_on(barrier)
                yield from rows
            if index >= stop:
                return

    def _work(self, events: Events[Any], index: int, stop: int, inbox: Inbox) -> int:
        """Process some of the events; the index of the next one."""
        busy_s = self._counters.busy_s
        done = self._processing.work(events, index, stop, inbox)
        inbox.finish(done - index)
        if self._agent.resting:
            self._agent.wake()
        if self._rooms is not None:
            spent_s, self._blocked_s = self._counters.busy_s - busy_s + self._blocked_s, 0.0
            self._rooms.finish(done - index, spent_s, self._agent.routing)
        return done

    def _wake(self) -> None:
        """There is news for the replica's own thread."""
        self._eased.set()
        if not self._easing:
            self._inbox.wake()

    def _hear(self, note: RoomNote) -> None:
        """A replica that it sends to has room."""
        if self._outbox.hear(note):
            self._wake()

    def _due_s(self, inbox: Inbox) -> float:
        """In how long what was emitted is to leave: each time costs all who get a part of it."""
        return self._outbox.left_s + flush_s(inbox.waiting) - time.perf_counter()

    # ── checkpoints ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _reach(self, barrier: Barrier) -> None:
        """All that belongs to a checkpoint is processed: have it safe, and pass the barrier on behind it."""
        number, operator = barrier.number, self._operator
        self._part = operator.prepare(number) if operator.prepare is not None else None
        operator.context.checkpoint = number + 1
        if self._stateful is not None:
            self._stateful.checkpoint(number, self._inbox.wake)
        self._reached = barrier

    def _passed_on(self, barrier: Barrier) -> None:
        """The barrier leaves: tell the driver what belongs to the checkpoint, once state is written, too."""
        counters, routing = copied(self._counters), self._agent.routing
        done = msgspec.structs.replace(self._done, number=barrier.number, counters=counters, part=self._part)
        done = msgspec.structs.replace(done, routing=routing.version)
        self._joined = self._receives(routing.operators)
        if self._stateful is None:
            self._say(done)
        else:
            self._unsaid = done

    def _receives(self, routing: Mapping[str, OperatorRouting]) -> bool:
        return self._report.replica in routing[self._name].receiving

    def _join(self) -> None:
        """Before the first events: they belong to none of the checkpoints that were made without this replica.

        The driver's answer comes behind all that it has published so far, so the routing is the one that has this
        replica among the active, or a later one.
        """
        committed = self._agent.ask_restore(RestoreQuery(self._program.generation, self._name)).checkpoint
        context = self._operator.context
        context.checkpoint = max(context.checkpoint, committed + 1)
        self._joined = True

    def _say(self, done: Done) -> None:
        """Tell the driver."""
        self._done = self._role.done = done
        self._agent.wake()

    def _heed(self) -> None:
        """Look what is new of checkpoints: written, given up, committed."""
        written = self._stateful.written() if self._stateful is not None else None
        if written is not None and written.number == self._unsaid.number:
            self._say(msgspec.structs.replace(self._unsaid, segments=written.segments, oldest=written.oldest))
        if (progress := self._agent.progress) is self._heard:
            return
        self._heard, committed = progress, progress.committed
        self._alignment.give_up(progress.given_up)
        if self._done.number >= committed > self._done.shown:
            if self._operator.commit is not None:
                self._operator.context.parts = progress.parts.get(self._operator.spec.name, {})
                self._operator.commit(committed)
            if self._stateful is not None:
                self._stateful.committed(committed)
            self._say(msgspec.structs.replace(self._done, shown=committed))

    def _refresh(self, counters: ReplicaCounters) -> None:
        counters.queued, counters.held = self._inbox.waiting, self._outbox.held()
        self._failures.tell()
        if self._rooms is not None:
            self._rooms.repeat()
        if self._stateful is not None:
            self._stateful.count()

    def _await_turn(self) -> bool:
        """Where order counts: process nothing before the shift before has finished. False if this one ends first."""
        waits = self._operator.spec.in_order
        while waits and not self._agent.progress.is_turn_of(self._program.shift):
            if self._inbox.ended:
                return False
            time.sleep(TURN_S)
        return True

    def _next(self, inbox: Inbox) -> Events[Any] | None:
        """The next events; for process_many, as many as wait and fit into one call."""
        nothing = Events[Any]([], [], [])
        self._heed()
        if self._over:
            return None
        if self._stateful is not None and self._stateful.moving and self._next_up is None and not self._more(inbox):
            return nothing
        arrival, self._next_up = self._next_up or self._alignment.take(lambda: self._take(inbox)), None
        if arrival is None:
            return None
        if isinstance(arrival, Barrier):
            self._reach(arrival)
            return nothing
        if not arrival.count:
            if self._stateful is not None:
                self._stateful.heed(arrival)
            return nothing
        if not self._joined:
            self._join()
        events, size = self._decode(arrival), len(arrival.bundle)
        if self._stateful is not None:
            return self._admit(events, self._stateful)
        many, fits = self._operator.many is not None, self._processing.at_once
        while many and len(events.ids) < fits and size < TOGETHER_BYTES:
            if inbox.ending() and not self._alignment.pending():
                break
            more = self._alignment.take(inbox.take_now)
            if not isinstance(more, Arrival) or not more.count:
                self._next_up, self._over = more, more is None
                break
            added, size = self._decode(more), size + len(more.bundle)
            events.ids += added.ids
            events.born += added.born
            events.events += added.events
        return events

    def _take(self, inbox: Inbox) -> Arrival | None:
        """What comes next, or nothing when it is time for what was emitted to leave, or when too much is held."""
        if self._outbox.full and not inbox.ended:
            return self._ease(inbox)
        return inbox.take(max(0.0, self._due_s(inbox)) if self._outbox.waiting else None)

    def _ease(self, inbox: Inbox) -> Arrival | None:
        """Wait until there may be room; whoever waits long is given less ahead, so that others hold it back, too."""
        began, self._easing = time.perf_counter(), True
        self._eased.wait(EASE_S)
        self._easing = False
        self._eased.clear()
        self._blocked_s += time.perf_counter() - began
        return Arrival(WAKE, 0) if self._outbox.full else inbox.take_now()

    def _more(self, inbox: Inbox) -> bool:
        """Whether something is here to be taken."""
        return self._alignment.pending() or not inbox.empty()

    def _bound(self, inbox: Inbox) -> None:
        """Each active replica may queue its part of the operator's q_size."""
        if self._program.limits.q_size is not None:
            active = len(self._agent.routing.operators[self._name].active)
            inbox.capacity = math.ceil(self._program.limits.q_size / active)

    def _decode(self, arrival: Arrival) -> Events[Any]:
        try:
            events = self._unpack(arrival.bundle)
        except Exception:
            events = self._failures.decode(arrival.bundle, arrival.count, self._operator.event_type)
            self._inbox.finish(arrival.count - len(events.ids))
        for column in (events.ids, events.born, events.events):
            del column[arrival.count :]
        if self._rooms is not None:
            self._rooms.arrive(read_header(arrival.bundle), events.back, len(events.ids))
        if self._online is not None and events.keys is not None and events.ids:
            sender = self._program.senders[read_header(arrival.bundle).sender]
            self._online.expect(sender, events.keys, len(events.ids))
        return events

    def _admit(self, events: Events[Any], state: KeyedReplica) -> Events[Any]:
        """The events that can be worked off now, without those that have no key."""
        try:
            return state.admit(events)
        except EngineError:
            raise
        except Exception:
            self._inbox.finish(self._failures.sift(events, state.key_of))
            return state.admit(events)


def copied(counters: ReplicaCounters) -> ReplicaCounters:
    """As they are now."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(counters), type=ReplicaCounters)


def report_of(program: Program, name: str, replica: int, batch: int, counters: ReplicaCounters) -> Report:
    """How a replica introduces itself."""
    return Report(program.generation, batch, name, replica, counters)
