"""A sink that publishes events to a queue, for whoever works on them next."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from penstock.common.secrets import masked_url
from penstock.errors import InputError
from penstock.sinks.amqp import AmqpQueue
from penstock.sinks.queue_table import QueueTable
from penstock.sinks.waiting import PATIENCE_S
from penstock.topology import Context

SCHEMES = ("amqp", "amqps", "sqlite")


class Queue(Protocol):
    """Where events are published. Nothing connects before `open`, so that it can be shipped."""

    def check(self) -> None:
        """Raise an InputError if it cannot be reached now."""

    def open(self, run: str) -> None:
        """Connect; `run` goes with every event, as ids are unique within a run only."""

    def publish(self, events: Mapping[str, bytes]) -> int:
        """Return once all are safe, by id; how many of them are known to have been there before."""

    def close(self) -> None:
        """Disconnect."""


class QueueSink:
    """One message an event, as JSON, with the event's id: consumers drop what they have seen under the same id.

    By URL: `amqp://user:${env:PASSWORD}@host:5672/` is RabbitMQ, `sqlite:///file` a table that has each id once. Both
    deliver at least once. After a failure events are done again, and a message that was published cannot be taken back,
    nor can RabbitMQ publish to several queues, or once only: so consumers may see an event twice, and under other ids
    or with other values where order or time play a part. Who needs one history takes `KafkaSink` or `DatabaseSink`.

    A broker that is away is waited for, up to `patience_s`. `service_ms` is waited for each event.

    >>> QueueSink("http://127.0.0.1/")
    Traceback (most recent call last):
    penstock.errors.InputError: queue sink: must be amqp, amqps or sqlite; got 'http'
    """

    def __init__(
        self, url: str, queue: str = "events", *, service_ms: float = 0.0, patience_s: float = PATIENCE_S
    ) -> None:
        self._queue = queue_at(url, queue, patience_s)
        self._service_s = service_ms / 1000
        self._context: Context | None = None

    def check(self) -> None:
        """Raise an InputError if the queue cannot be reached now."""
        self._queue.check()

    def open(self, context: Context) -> None:
        """Connect, and make the queue if it is not there."""
        self._context = context
        self._queue.open(context.run)

    def process(self, event: Any) -> None:
        """Publish one event."""
        self.process_many([event])

    def process_many(self, events: list[Any]) -> None:
        """Publish these events, and return once all of them are safe."""
        if self._context is None:
            raise RuntimeError("a sink is opened before it gets events")
        if self._service_s:
            time.sleep(self._service_s * len(events))
        ids = self._context.event_ids
        messages = {event_id: msgspec.json.encode(event) for event_id, event in zip(ids, events, strict=True)}
        again = len(events) - len(messages) + self._queue.publish(messages)
        self._context.repeated(again)

    def close(self) -> None:
        """Disconnect."""
        self._queue.close()


def queue_at(url: str, queue: str, patience_s: float = PATIENCE_S) -> Queue:
    """The queue that a URL stands for."""
    scheme, colon, _ = url.partition("://")
    if not colon or scheme not in SCHEMES:
        shown = scheme if colon else masked_url(url)
        raise InputError(f"queue sink: must be {', '.join(SCHEMES[:-1])} or {SCHEMES[-1]}; got {shown!r}")
    kind = QueueTable if scheme == "sqlite" else AmqpQueue
    return kind(url, queue, patience_s=patience_s)
