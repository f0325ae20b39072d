"""What runs in a partition that is a replica of an operator."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from penstock.engine.agent import Agent, Role, agent_for
from penstock.engine.bundle import Events, Unpacker, read_header
from penstock.engine.inbox import Arrival, Inbox
from penstock.engine.lifecycle import opened
from penstock.engine.messages import Report, Routing
from penstock.engine.online_replica import online_replica
from penstock.engine.outbox import Outbox, warm_up
from penstock.engine.program import Program
from penstock.engine.stateful import StatefulReplica, tables_of
from penstock.errors import EngineError
from penstock.metrics.counters import ReplicaCounters
from penstock.state.handover import Table

FLUSH_S = 0.004  # what has been emitted leaves at the latest after this long,
BUSY_FLUSH_S = 0.03  # or after this long, in larger bundles, when many events wait
MANY_WAITING = 100
TOGETHER_S = 0.02  # process_many gets no more events than take about this long,
BEHIND_S = 0.25  # or this long when many more wait
MOST_AT_ONCE = 4096
ROUTING_TIMEOUT_S = 10.0
TURN_S = 0.01


class OperatorReplica:
    """One replica of an operator in one batch."""

    def __init__(self, program: Program, level: int, name: str, replica: int, batch: int) -> None:
        self._program = program
        self._level = level
        self._name = name
        self._counters = ReplicaCounters()
        self._agent: Agent = agent_for(program)
        self._outbox = Outbox(program, level, name, replica, self._counters)
        self._operator = opened(program, name, replica, batch)
        self._outbox.declare(self._operator.spec.outputs)
        self._operator.context.counters = self._counters
        self._unpack = Unpacker(self._operator.event_type)
        self._is_sink = not program.edges[name]
        self._fixed = Routing(0, dict(program.routing))
        self._at_once = 1  # events given to process_many in one call
        self._online = online_replica(program, name, self._outbox.mail)
        self._report = report_of(program, name, replica, batch, self._counters)
        self._tables: dict[str, Table] = {}
        self._stateful: StatefulReplica | None = None
        self._one: Callable[[Any], Any] = self._operator.one
        if self._operator.spec.state is not None:
            self._stateful = StatefulReplica(program, self._operator, self._report, self._agent)
            self._one = self._stateful.process

    def run(self, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        """Work off the batch."""
        try:
            yield from self._run(batches)
        finally:
            self._outbox.mail.close()

    def _run(self, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        program, outbox, agent = self._program, self._outbox, self._agent
        inbox = self._inbox = Inbox(batches, self._counters, program.senders, program.queue_bytes)
        self._bound(inbox)
        inbox.start()
        yield from warm_up(program, self._level, self._report.batch)
        role = Role(self._report, self._refresh, outbox.mail)
        if program.needs_tables(self._name):
            self._begin(role)
        agent.join(role)
        if program.realtime:
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
        if (rows := outbox.rows(self._routing())) is not None:
            yield rows
        role.on_tables = None
        if self._stateful is not None:
            self._stateful.write()
        agent.wake()

    def _play(self, events: Events[Any], inbox: Inbox) -> Iterator[pa.RecordBatch]:
        """Work off events, and send what was emitted when it is time to; markers leave with or without events."""
        index, stop = 0, len(events.ids)
        while True:
            if index < stop:
                done = self._work(events, index, stop)
                inbox.finish(done - index)
                index = done
            if time.perf_counter() - self._flushed >= self._flush_s() or (index >= stop and inbox.empty()):
                if (rows := self._outbox.rows(self._routing())) is not None:
                    yield rows
                self._flushed = time.perf_counter()
            if index >= stop:
                return

    def _begin(self, role: Role) -> None:
        """Learn who owns which key groups, from the driver, and look again whenever they change."""
        self._tables = tables_of(self._program, self._agent, self._report)
        self._outbox.begin(self._tables)
        if self._program.realtime:
            role.on_tables = self._inbox.wake
            self._inbox.wake()  # they may have changed already

    def _refresh(self, counters: ReplicaCounters) -> None:
        counters.queued = self._inbox.waiting
        if self._stateful is not None:
            self._stateful.count()

    def _await_turn(self) -> None:
        """Where order counts: process nothing before the shift before has finished."""
        if self._operator.spec.in_order:
            while self._agent.routing.turn < self._program.shift and not self._inbox.broken:
                time.sleep(TURN_S)

    def _next(self, inbox: Inbox) -> Events[Any] | None:
        """The next events; for process_many, as many as wait and fit into one call."""
        arrival = inbox.take()
        if arrival is None:
            return None
        if not arrival.count:
            return self._stateful.turn(arrival) if self._stateful is not None else Events([], [], [])
        events = self._decode(arrival)
        if self._stateful is not None:
            return self._stateful.admit(events)
        while self._operator.many is not None and len(events.ids) < self._at_once and not inbox.ending():
            if (more := inbox.take()) is not None:
                added = self._decode(more)
                events.ids += added.ids
                events.born += added.born
                events.events += added.events
        return events

    def _flush_s(self) -> float:
        return BUSY_FLUSH_S if self._inbox.waiting > MANY_WAITING else FLUSH_S

    def _routing(self) -> Routing:
        """The routing in force; in micro-batch mode, the one that the batch was laid out for."""
        return self._agent.routing if self._program.realtime else self._fixed

    def _bound(self, inbox: Inbox) -> None:
        """Each active replica may queue its part of the operator's q_size."""
        if self._program.limits.q_size is not None:
            active = len(self._routing().operators[self._name].active)
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

    def _work(self, events: Events[Any], index: int, stop: int) -> int:
        """Process events until the bundle ends or it is time to send; the index of the next one."""
        started, cpu = time.perf_counter(), time.thread_time()
        if self._operator.many is not None:
            stop = min(stop, index + self._at_once)
            tried = self._work_many(events, index, stop)
            took_s = time.perf_counter() - started
            if self._online is not None:
                self._online.executed(shared(took_s, tried, range(index, stop)))
            index = stop
            self._adapt(took_s)
        else:
            index = self._work_each(events, index, stop, started + self._flush_s())
        self._counters.busy_s += time.perf_counter() - started
        self._counters.cpu_s += time.thread_time() - cpu
        return index

    def _adapt(self, took_s: float) -> None:
        """Give process_many more events at once while it is quick, fewer when the first have to wait for the rest."""
        limit_s = BEHIND_S if self._inbox.waiting > self._at_once else TOGETHER_S
        if took_s < limit_s / 2:
            self._at_once = min(2 * self._at_once, MOST_AT_ONCE)
        elif took_s > limit_s:
            self._at_once = max(1, self._at_once // 2)

    def _work_each(self, events: Events[Any], index: int, stop: int, deadline: float) -> int:
        run, ids, born = self._one, events.ids, events.born
        t_out_s, context = self._program.limits.t_out_s, self._operator.context
        processed, started = 0, time.perf_counter()
        ages_ms: list[float] = []
        times_s: list[float] | None = [] if self._online is not None else None
        while index < stop:
            event_id, since = ids[index], born[index]
            if t_out_s is not None and time.time() - since > t_out_s:
                self._drop("t_out", 1)
                index += 1
                if times_s is not None:
                    times_s.append(math.nan)
                continue
            context.event_ids = (event_id,)
            try:
                output = run(events.events[index])
                if output is not None:
                    self._emit(event_id, since, output)
                processed += 1
                if self._is_sink:
                    ages_ms.append((time.time() - since) * 1000)
            except EngineError:
                raise
            except Exception as error:
                self._fail(event_id, events.events[index], error)
            index += 1
            now = time.perf_counter()
            if times_s is not None:
                times_s.append(now - started)
                started = now
            if now >= deadline:
                break
        if self._online is not None and times_s:
            self._online.executed(times_s)
        self._counters.processed += processed
        self._counters.latency.add_many(ages_ms)
        return index

    def _work_many(self, events: Events[Any], index: int, stop: int) -> list[int]:
        """Process events in one call; those that were not too old for it."""
        keep = list(range(index, stop))
        if (t_out_s := self._program.limits.t_out_s) is not None:
            now = time.time()
            keep = [i for i in keep if now - events.born[i] <= t_out_s]
            self._drop("t_out", stop - index - len(keep))
        if not keep:
            return keep
        self._operator.context.event_ids = tuple(events.ids[i] for i in keep)
        try:
            outputs = self._call_many([events.events[i] for i in keep])
        except EngineError:
            raise
        except Exception as error:
            if len(keep) == 1 or self._operator.spec.on_error == "fail":
                others = f" or one of the {len(keep) - 1} after it" if len(keep) > 1 else ""
                self._fail(f"{events.ids[keep[0]]}{others}", events.events[keep[0]], error)
                return keep
            for i in keep:  # find the one that is to blame
                self._work_many(events, i, i + 1)
            return keep
        for i, output in zip(keep, outputs, strict=True):
            if output is not None:
                self._emit(events.ids[i], events.born[i], output)
        self._counters.processed += len(keep)
        if self._is_sink:
            now = time.time()
            self._counters.latency.add_many([(now - events.born[i]) * 1000 for i in keep])
        return keep

    def _call_many(self, events: list[Any]) -> list[Any]:
        outputs = self._operator.many(events) if self._operator.many is not None else None
        if outputs is None:
            return [None] * len(events)
        if len(outputs := list(outputs)) != len(events):
            raise EngineError(
                f"{self._operator.spec}: process_many must give one output for each event; "
                f"got {len(outputs)} for {len(events)}"
            )
        return outputs

    def _emit(self, event_id: str, born: float, output: Any) -> None:
        if type(output) is not dict and (isinstance(output, list | tuple) or hasattr(output, "__next__")):
            self._outbox.add_many(event_id, born, output)
        else:
            self._outbox.add_one(event_id, born, output)

    def _drop(self, cause: str, count: int) -> None:
        if count:
            self._counters.dropped[cause] = self._counters.dropped.get(cause, 0) + count

    def _fail(self, event_id: str, event: Any, error: Exception) -> None:
        if self._operator.spec.on_error == "drop":
            self._drop("error", 1)
            return
        raise EngineError(
            f"{self._operator.spec}: {type(error).__name__}: {error}; on event {event_id}: {event!r}"
        ) from error


def shared(took_s: float, tried: list[int], events: range) -> list[float]:
    """The time of one call shared out over the events that it was for; NaN for the others.

    >>> shared(0.6, [3, 5], range(3, 6))
    [0.3, nan, 0.3]
    """
    each = set(tried)
    return [took_s / len(tried) if index in each else math.nan for index in events]


def report_of(program: Program, name: str, replica: int, batch: int, counters: ReplicaCounters) -> Report:
    """How a replica introduces itself."""
    return Report(program.generation, batch, name, replica, counters)
