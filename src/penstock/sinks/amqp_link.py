"""One connection to RabbitMQ, used by one thread: it works while somebody waits for it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from penstock.common.secrets import resolve_url
from penstock.errors import InputError

CONNECT_S = 15.0
CONFIRM_S = 30.0
CLOSE_S = 2.0
_PERSISTENT = 2


class LinkBroken(Exception):  # noqa: N818 - what happened, and not yet an error
    """The connection cannot be used any more; the message says why."""


class AmqpLink:
    """Publishes many events at once, and waits until the broker has confirmed all of them.

    Heartbeats are off: between two calls nobody would answer them. A broker that does not answer in time is gone.
    """

    def __init__(self, url: str, queue: str, run: str) -> None:
        adapter = import_module("pika.adapters.select_connection")
        self._queue = queue
        self._run = run
        self._broken: str | None = None
        self._ready = False
        self._channel: Any = None
        self._sent = 0  # the delivery tag of the last message
        self._left: dict[str, bytes] = {}  # not confirmed yet, by event id
        self._waiting: dict[int, str] = {}  # event ids by delivery tag
        self._loop: Any = adapter.IOLoop()
        self._connection: Any = adapter.SelectConnection(
            link_parameters(url),
            on_open_callback=lambda connection: connection.channel(on_open_callback=self._prepare),
            on_open_error_callback=lambda _, error: self._end(error),
            on_close_callback=lambda _, error: self._end(error),
            custom_ioloop=self._loop,
        )
        try:
            self._wait(lambda: self._ready, CONNECT_S)
        except LinkBroken:
            self.close()
            raise

    def publish(self, left: dict[str, bytes]) -> None:
        """Publish these, and take out what is confirmed; LinkBroken where not all can be."""
        self._left = left
        self._waiting.clear()
        properties = import_module("pika").BasicProperties
        try:
            for event_id, body in left.items():
                about = properties("application/json", delivery_mode=_PERSISTENT, message_id=event_id, app_id=self._run)
                self._channel.basic_publish("", self._queue, body, about, mandatory=True)
                self._sent += 1
                self._waiting[self._sent] = event_id
        except import_module("pika.exceptions").AMQPError as error:
            self._end(error)
        self._wait(lambda: not self._waiting, CONFIRM_S)

    def close(self) -> None:
        """Say good-bye where there is somebody to say it to, and let go of the socket."""
        deadline_s = time.monotonic() + CLOSE_S
        if self._connection.is_open:
            self._connection.close()
        while self._connection.is_closing and time.monotonic() < deadline_s:
            self._work(CLOSE_S)
        self._work(0.0)  # what is left to be done, such as closing the socket
        self._loop.close()

    def _prepare(self, channel: Any) -> None:
        self._channel = channel
        channel.add_on_close_callback(lambda _, error: self._end(error))
        channel.add_on_return_callback(
            lambda _channel, about, *_: self._end(f"the broker returned it: {about.reply_text}")
        )
        channel.confirm_delivery(self._confirmed)
        channel.queue_declare(self._queue, durable=True, callback=self._declared)

    def _declared(self, _answer: Any) -> None:
        self._ready = True
        self._loop.stop()

    def _confirmed(self, frame: Any) -> None:
        """An answer for one message, or for all up to it."""
        answer = frame.method
        tags = (
            [tag for tag in self._waiting if tag <= answer.delivery_tag] if answer.multiple else [answer.delivery_tag]
        )
        if answer.NAME == "Basic.Nack":
            return self._end("the broker refused it")
        if self._broken is None:  # else what was returned would count as confirmed
            for tag in tags:
                self._left.pop(self._waiting.pop(tag), None)
        if not self._waiting:
            self._loop.stop()
        return None

    def _end(self, reason: object) -> None:
        """The connection is over, or not to be trusted any more; the first reason counts."""
        self._broken = self._broken or _words(reason)
        self._loop.stop()

    def _wait(self, done: Callable[[], bool], timeout_s: float) -> None:
        """Let the connection work until then."""
        deadline_s = time.monotonic() + timeout_s
        while self._broken is None and not done():
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                self._broken = f"no answer within {timeout_s:g} s"
                break
            self._work(left_s)
        if self._broken is not None:
            raise LinkBroken(self._broken)

    def _work(self, most_s: float) -> None:
        """Send and receive until something happens that somebody may wait for."""
        timer = self._loop.call_later(most_s, self._loop.stop)
        self._loop.start()
        self._loop.remove_timeout(timer)


def link_parameters(url: str) -> Any:
    """How to connect, by the URL; an InputError where that is wrong, or the package for it is missing."""
    try:
        pika: Any = import_module("pika")
    except ImportError:
        raise InputError(
            "queue sink: amqp needs the package pika; to install it: pip install 'penstock[queue]'"
        ) from None
    logging.getLogger("pika").setLevel(logging.CRITICAL)  # what breaks is said once, by whoever waits for it
    try:
        parameters = pika.URLParameters(resolve_url("queue sink", url))
    except (ValueError, TypeError, KeyError):  # what it says may have part of a password in it
        raise InputError(
            "queue sink: must be as amqp://user:password@host:5672/, with %XX for what is special in a password, "
            "or with ${env:NAME} or ${file:/path} in its place"
        ) from None
    parameters.heartbeat = 0
    return parameters


def _words(reason: object) -> str:
    """What the innermost error says, in one line."""
    while isinstance(reason, BaseException):
        causes = [*getattr(reason, "exceptions", ()), getattr(reason, "exception", None), *reason.args]
        inner = next((one for one in causes if isinstance(one, BaseException)), None)
        if inner is None:
            said = getattr(reason, "reply_text", None) or str(reason)
            return " ".join(said.split()) or type(reason).__name__
        reason = inner
    return str(reason)
