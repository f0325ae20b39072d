"""How a replica has its operator process events: one by one, or several in a call."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from penstock.engine.online.receiver import OnlineReceiver
from penstock.engine.protocol.bundle import Events
from penstock.engine.worker.failures import Cause, described
from penstock.engine.worker.inbox import Inbox
from penstock.engine.worker.keyed_replica import KeyedReplica
from penstock.engine.worker.lifecycle import Opened
from penstock.engine.worker.outbox import Outbox
from penstock.errors import EngineError
from penstock.metrics.counters import ReplicaCounters

FLUSH_S = 0.004  # what has been emitted leaves at the latest after this long, and not before so long after the last,
BUSY_FLUSH_S = 0.03  # or after this long, in larger bundles, when many events wait
MANY_WAITING = 100
TOGETHER_S = 0.02  # process_many gets no more events than take about this long,
BEHIND_S = 0.25  # or this long when many more wait
MOST_AT_ONCE = 4096


class Processing:
    """Events in, what comes of them into the outbox; counts them, drops those too old, rejects those that fail."""

    def __init__(
        self, operator: Opened, t_out_s: float | None, outbox: Outbox, counters: ReplicaCounters, *, sink: bool
    ) -> None:
        self._operator = operator
        self._t_out_s = t_out_s
        self._outbox = outbox
        self._counters = counters
        self._is_sink = sink
        self._failures = outbox.failures
        self._state: KeyedReplica | None = None
        self._one: Callable[[Any], Any] = operator.one
        self.at_once = 1  # events given to process_many in one call
        self.online: OnlineReceiver | None = None  # if the grouping is online shuffle

    def keep_state(self, state: KeyedReplica) -> None:
        """The operator keeps state: what it gets are calls, and what one of them did to the state can be undone."""
        self._state, self._one, state.saves = state, state.process, not self._failures.at_once

    def work(self, events: Events[Any], index: int, stop: int, inbox: Inbox) -> int:
        """Process events until the bundle ends or it is time to send; the index of the next one."""
        started, cpu = time.perf_counter(), time.thread_time()
        if self._operator.many is not None:
            stop = min(stop, index + self.at_once)
            tried = self._work_many(events, index, stop)
            took_s = time.perf_counter() - started
            if self.online is not None:
                self.online.executed(shared(took_s, tried, range(index, stop)))
            index = stop
            self._adapt(took_s, inbox.waiting)
        else:
            index = self._work_each(events, index, stop, started + flush_s(inbox.waiting))
        self._counters.busy_s += time.perf_counter() - started
        self._counters.cpu_s += time.thread_time() - cpu
        return index

    def _adapt(self, took_s: float, waiting: int) -> None:
        """Give process_many more events at once while it is quick, fewer when the first have to wait for the rest."""
        limit_s = BEHIND_S if waiting > self.at_once else TOGETHER_S
        if took_s < limit_s / 2:
            self.at_once = min(2 * self.at_once, MOST_AT_ONCE)
        elif took_s > limit_s:
            self.at_once = max(1, self.at_once // 2)

    def _work_each(self, events: Events[Any], index: int, stop: int, deadline: float) -> int:
        run, ids, born, keyed = self._one, events.ids, events.born, self._state is not None
        t_out_s, context = self._t_out_s, self._operator.context
        processed, started = 0, time.perf_counter()
        ages_ms: list[float] = []
        times_s: list[float] | None = [] if self.online is not None else None
        while index < stop:
            event_id, since = ids[index], born[index]
            if t_out_s is not None and time.time() - since > t_out_s:
                self._drop("t_out", 1)
                index += 1
                if times_s is not None:
                    times_s.append(math.nan)
                continue
            event = events.events[index]
            context.event_ids = (event_id,)
            try:
                output = run(event)
                if output is not None:
                    self._emit((event_id, since, event.event if keyed else event), output)
                done = True
            except EngineError:
                raise
            except Exception as error:
                done = self._again(event_id, since, event, error)
            if done:
                processed += 1
                if self._is_sink:
                    ages_ms.append((time.time() - since) * 1000)
            index += 1
            now = time.perf_counter()
            if times_s is not None:
                times_s.append(now - started)
                started = now
            if now >= deadline:
                break
        if self.online is not None and times_s:
            self.online.executed(times_s)
        self._counters.processed += processed
        self._counters.latency.add_many(ages_ms)
        return index

    def _work_many(self, events: Events[Any], index: int, stop: int) -> list[int]:
        """Process events in one call; those that were not too old for it."""
        keep = list(range(index, stop))
        if (t_out_s := self._t_out_s) is not None:
            now = time.time()
            keep = [i for i in keep if now - events.born[i] <= t_out_s]
            self._drop("t_out", stop - index - len(keep))
        if not keep:
            return keep
        try:
            outputs = self._call_many(keep, events)
        except EngineError:
            raise
        except Exception as error:
            if len(keep) > 1:
                self._one_by_one(events, keep, error)
                return keep
            done = keep if self._again(*_cause(events, index), error) else []
        else:
            done = [i for i, output in zip(keep, outputs, strict=True) if self._came(events, i, output)]
        self._counters.processed += len(done)
        if self._is_sink:
            now = time.time()
            self._counters.latency.add_many([(now - events.born[i]) * 1000 for i in done])
        return keep

    def _came(self, events: Events[Any], i: int, output: Any) -> bool:
        """Emit what came of an event in a call for many; whether the event did not fail."""
        if output is None:
            return True
        cause = _cause(events, i)
        try:
            self._emit(cause, output)
        except EngineError:
            raise
        except Exception as error:  # a generator may
            return self._again(*cause, error)
        return True

    def _one_by_one(self, events: Events[Any], keep: list[int], error: Exception) -> None:
        """A call for many has failed: call for each alone.

        Where the first failure ends the run, this only tells which event it was. It does not try with a sink: that may
        have written some, and what it writes to may be away.
        """
        if self._failures.at_once:
            for i in () if self._is_sink else keep:
                try:
                    self._call_many([i], events)
                except Exception as alone:
                    self._failures.reject(_cause(events, i), alone)
            first, others = keep[0], f"or one of the {len(keep) - 1} after it"
            self._failures.fail(described(error), f"{events.ids[first]} {others}", events.events[first], error)
        for i in keep:
            self._work_many(events, i, i + 1)

    def _call_many(self, chosen: list[int], events: Events[Any]) -> list[Any]:
        assert self._operator.many is not None
        self._operator.context.event_ids = tuple(events.ids[i] for i in chosen)
        outputs = self._operator.many([events.events[i] for i in chosen])
        if outputs is None:
            return [None] * len(chosen)
        if len(outputs := list(outputs)) != len(chosen):
            raise EngineError(
                f"{self._operator.spec}: process_many must give one output for each event; "
                f"got {len(outputs)} for {len(chosen)}"
            )
        return outputs

    def _again(self, event_id: str, born: float, event: Any, error: Exception) -> bool:
        """Try an event that has failed as often again as its operator says, then reject it; whether it came well."""
        keyed, one = self._state is not None, Events([event_id], [born], [event])
        cause = (event_id, born, event.event if keyed else event)
        for pause_s in self._failures.pauses_s():
            self._undo()
            time.sleep(pause_s)
            try:
                output = self._one(event) if self._operator.many is None else self._call_many([0], one)[0]
                if output is not None:
                    self._emit(cause, output)
            except EngineError:
                raise
            except Exception as again:
                error = again
            else:
                return True
        self._undo()
        self._failures.reject(cause, error)
        return False

    def _undo(self) -> None:
        if self._state is not None:
            self._state.undo()

    def _emit(self, cause: Cause, output: Any) -> None:
        several = type(output) is not dict and (isinstance(output, list | tuple) or hasattr(output, "__next__"))
        if self._state is not None and self._state.saves:  # later it would be too late to undo what the event did
            output = list(output) if several else output
            for one in output if several else (output,):
                self._outbox.check(one)
        if several:
            self._outbox.add_many(cause[0], cause[1], output, cause)
        else:
            self._outbox.add_one(cause[0], cause[1], output, cause)

    def _drop(self, cause: str, count: int) -> None:
        if count:
            self._counters.dropped[cause] = self._counters.dropped.get(cause, 0) + count


def _cause(events: Events[Any], index: int) -> Cause:
    return events.ids[index], events.born[index], events.events[index]


def flush_s(waiting: int) -> float:
    """How long what has been emitted may wait for more when so many events wait.

    >>> flush_s(0), flush_s(5000)
    (0.004, 0.03)
    """
    return BUSY_FLUSH_S if waiting > MANY_WAITING else FLUSH_S


def shared(took_s: float, tried: list[int], events: range) -> list[float]:
    """The time of one call shared out over the events that it was for; NaN for the others.

    >>> shared(0.6, [3, 5], range(3, 6))
    [0.3, nan, 0.3]
    """
    each = set(tried)
    return [took_s / len(tried) if index in each else math.nan for index in events]
