"""A replica's own queue: a thread takes bundles in as they come, the replica works them off one by one.

Without it a busy replica would leave its events in the buffers of its connections, and the senders, once those are
full, would stand still for all other replicas too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from queue import Empty, SimpleQueue
from typing import Any

from penstock.engine.direct.receiver import Listener
from penstock.engine.protocol.bundle import read_checked
from penstock.metrics.counters import ReplicaCounters
from penstock.topology import ReplicaId

WAKE = b""  # of nobody: whoever waits is to look round


class Arrival:
    """A bundle in the queue; `count` of its events are kept, the rest found the queue full. 0: a sign, or a wake."""

    __slots__ = ("bundle", "count")

    def __init__(self, bundle: bytes, count: int) -> None:
        self.bundle = bundle
        self.count = count


class Inbox:
    """The queue and the thread that fills it."""

    def __init__(
        self, batches: Iterable[Any], counters: ReplicaCounters, senders: tuple[str, ...], queue_bytes: int
    ) -> None:
        self._counters = counters
        self._senders = senders
        self._queue: SimpleQueue[Arrival | BaseException | None] = SimpleQueue()
        self._queue_bytes = queue_bytes
        self._room = threading.Event()
        self._arrived = self._taken = self._finished = 0  # events
        self._bytes_in = self._bytes_out = 0
        self.capacity: int | None = None  # events this queue may hold
        self.lost: dict[ReplicaId, int] = {}  # by sender: events that found it full
        self.ended = False  # Spark has ended the batch, or is gone
        self._error: BaseException | None = None
        self._batches = batches

    def start(self, listener: Listener | None = None) -> None:
        """Begin to take in what comes to the listener, or else rows of a micro-batch, until Spark ends the batch."""
        if listener is not None:
            listener.start(self._arrive, self._fail)
        threading.Thread(target=self._fill, name="penstock-inbox", daemon=True).start()

    @property
    def waiting(self) -> int:
        """Events that have arrived and are not finished."""
        return self._arrived - self._finished

    def finish(self, count: int) -> None:
        """So many events have been processed or dropped."""
        self._finished += count

    def empty(self) -> bool:
        """Whether nothing waits."""
        return self._queue.empty()

    def ending(self) -> bool:
        """Whether nothing waits, or only the end of the batch."""
        return self._queue.empty() or self._arrived == self._taken

    def check(self) -> None:
        """Raise what broke the stream, if that is how it ended."""
        if self._error is not None:
            raise self._error

    def wake(self) -> None:
        """Have the one who waits for a bundle go on, with an empty one."""
        self._queue.put(Arrival(WAKE, 0))

    def take_now(self) -> Arrival | None:
        """The next bundle, or an empty one if there is none."""
        return Arrival(WAKE, 0) if self._queue.empty() else self.take()

    def take(self, within_s: float | None = None) -> Arrival | None:
        """The next bundle, waiting for it, or an empty one after so long; None when the batch is over.

        Raises what broke the stream.
        """
        try:
            item = self._queue.get(timeout=within_s)
        except Empty:
            return Arrival(WAKE, 0)
        if isinstance(item, BaseException):
            raise item
        if item is not None:
            self._taken += item.count
            self._bytes_out += len(item.bundle)
            if not self._room.is_set():
                self._room.set()
        return item

    def _fill(self) -> None:
        try:
            for batch in self._batches:
                for bundle in batch.column(1).to_pylist():
                    self._arrive(bundle)
            self._queue.put(None)
        except BaseException as error:  # it belongs to the replica's own thread
            self._fail(error)
        finally:
            self.ended = True

    def _fail(self, error: BaseException) -> None:
        self._error = error
        self._queue.put(error)

    def _arrive(self, bundle: bytes) -> None:
        header = read_checked(bundle)
        sender = self._senders[header.sender]
        self._counters.received[sender] = self._counters.received.get(sender, 0) + header.events
        kept = header.events
        if self.capacity is not None:
            kept = max(0, min(kept, self.capacity - self.waiting))
            if kept < header.events:
                dropped = self._counters.dropped
                dropped["q_size"] = dropped.get("q_size", 0) + header.events - kept
        if not kept:
            if header.events:
                self.lost[sender, header.replica] = self.lost.get((sender, header.replica), 0) + header.events
            if not header.events:
                self._bytes_in += len(bundle)
                self._queue.put(Arrival(bundle, 0))  # a switch or barrier, in its place
            return
        self._arrived += kept
        self._bytes_in += len(bundle)
        self._queue.put(Arrival(bundle, kept))
        while self._bytes_in - self._bytes_out > self._queue_bytes:
            self._room.clear()
            self._room.wait(0.05)
