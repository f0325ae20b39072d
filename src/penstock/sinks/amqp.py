"""A queue of RabbitMQ: what was not confirmed is published again, under the same id."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from penstock.common.secrets import masked_url
from penstock.errors import AwayError, InputError
from penstock.sinks.amqp_link import AmqpLink, LinkBroken, link_parameters
from penstock.sinks.waiting import PATIENCE_S, Waiting

_REFUSED = ("ACCESS_REFUSED", "NOT_ALLOWED", "PRECONDITION_FAILED", "RESOURCE_LOCKED")  # by a broker that is there


class AmqpQueue:
    """Publishes to a durable queue, and counts an event as published when the broker has confirmed it.

    Where the connection breaks, or the broker refuses an event or knows no such queue any more, it connects anew, and
    publishes what was not confirmed once more, after pauses that grow. An event whose confirmation was lost is then
    there twice; its message id is the same. `app_id` of a message has the run. After `patience_s` in which nothing was
    confirmed it gives up with an EngineError.
    """

    def __init__(self, url: str, queue: str, *, patience_s: float = PATIENCE_S) -> None:
        link_parameters(url)  # a mistake shows at once
        self._url = url
        self._name = queue
        self._waiting = Waiting(self, patience_s)
        self._run = ""
        self._link: AmqpLink | None = None

    def __str__(self) -> str:
        """Without the password."""
        parts = urlsplit(masked_url(self._url))
        return f"queue '{self._name}' at {parts.scheme}://{parts.hostname}:{parts.port or 5672}{parts.path or '/'}"

    def check(self) -> None:
        """Connect once."""
        try:
            AmqpLink(self._url, self._name, self._run).close()
        except LinkBroken as broken:
            kind = InputError if any(word in str(broken) for word in _REFUSED) else AwayError
            raise kind(f"{self}: cannot be reached; {broken}") from None

    def open(self, run: str) -> None:
        """Connect, and make the queue if it is not there."""
        self._run = run
        self.publish({})

    def publish(self, events: Mapping[str, bytes]) -> int:
        """Return once all are confirmed; whether one was there before, RabbitMQ does not tell."""
        left = dict(events)
        while left or self._link is None:
            before = len(left)
            try:
                self._linked().publish(left)
            except LinkBroken as broken:
                self._drop()
                if len(left) < before:
                    self._waiting.over()
                self._waiting.pause(f"{broken}; {len(left)} events are published again")
        self._waiting.over()
        return 0

    def close(self) -> None:
        """Disconnect."""
        self._drop()

    def _linked(self) -> AmqpLink:
        if self._link is None:
            self._link = AmqpLink(self._url, self._name, self._run)
        return self._link

    def _drop(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()
