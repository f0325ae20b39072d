"""How a replica has its operator process events: one by one, or several in a call."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from penstock.engine.online.receiver import OnlineReceiver
from penstock.engine.protocol.bundle import Events
from penstock.engine.worker.inbox import Inbox
from penstock.engine.worker.lifecycle import Opened
from penstock.engine.worker.outbox import Outbox
from penstock.errors import EngineError
from penstock.metrics.counters import ReplicaCounters

FLUSH_S = 0.004  # what has been emitted leaves at the latest after this long,
BUSY_FLUSH_S = 0.03  # or after this long, in larger bundles, when many events wait
MANY_WAITING = 100
TOGETHER_S = 0.02  # process_many gets no more events than take about this long,
BEHIND_S = 0.25  # or this long when many more wait
MOST_AT_ONCE = 4096


class Processing:
    """Events in, what comes of them into the outbox; counts them, and drops those that are too old or fail."""

    def __init__(
        self, operator: Opened, t_out_s: float | None, outbox: Outbox, counters: ReplicaCounters, *, sink: bool
    ) -> None:
        self._operator = operator
        self._t_out_s = t_out_s
        self._outbox = outbox
        self._counters = counters
        self._is_sink = sink
        self.one: Callable[[Any], Any] = operator.one
        self.at_once = 1  # events given to process_many in one call
        self.online: OnlineReceiver | None = None  # if the grouping is online shuffle

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
        run, ids, born = self.one, events.ids, events.born
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
