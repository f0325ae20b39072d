"""The queue sink on a real RabbitMQ: confirmed, and published again whatever breaks in between."""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Any

import pika
import pytest

from penstock.apps import AppOptions, PayloadOptions, find_app
from penstock.apps.wordcount import SERVICE_MS
from penstock.engine.run import Run
from penstock.sinks.amqp import AmqpQueue
from penstock.sinks.queue import QueueSink
from penstock.sources import TraceSource
from penstock.workload import constant
from tests.waiting import LONG_S, until

from ..services import free_port
from ..services.broker import Broker
from ..services.server import START_S


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> str:
    """A queue of this test's own."""
    return str(request.node.name)


def taken(broker: Broker, queue: str) -> list[tuple[Any, bytes]]:
    """All messages of a queue, as any consumer would take them."""
    with closing(pika.BlockingConnection(pika.URLParameters(broker.url))) as connection:
        channel = connection.channel()
        found = []
        while (message := channel.basic_get(queue, auto_ack=True))[0] is not None:
            found.append(message[1:])
        return found


def events(count: int) -> dict[str, bytes]:
    return {f"7.{n}": json.dumps({"n": n, "filler": "x" * 200}).encode() for n in range(count)}


class Proxy:
    """Between a sink and the broker; cuts every connection after so many bytes, as often as it is told."""

    def __init__(self, broker: Broker, cuts: Sequence[int] = (), port: int = 0) -> None:
        self._listens = socket.create_server(("127.0.0.1", port))
        self.url = f"amqp://guest:guest@127.0.0.1:{self._listens.getsockname()[1]}/"
        self.cut = 0
        self._broker = broker
        self._cuts = list(cuts)
        self._threads = [threading.Thread(target=self._serve)]
        self._threads[0].start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                inner, _ = self._listens.accept()
                outer = socket.create_connection(("127.0.0.1", self._broker.port))
                limit = self._cuts.pop(0) if self._cuts else None
                self._threads.append(threading.Thread(target=self._pass_on, args=(inner, outer, limit)))
                self._threads[-1].start()

    def _pass_on(self, inner: socket.socket, outer: socket.socket, limit: int | None) -> None:
        passed = 0
        with inner, outer, suppress(OSError):
            while limit is None or passed <= limit:
                for one in select.select([inner, outer], [], [])[0]:
                    data = one.recv(1024)
                    if not data:
                        return
                    (outer if one is inner else inner).sendall(data)
                    passed += len(data) if one is inner else 0
            self.cut += 1

    def close(self) -> None:
        self._listens.shutdown(socket.SHUT_RDWR)
        self._listens.close()
        for thread in self._threads:
            thread.join(LONG_S)


class Replica:
    run, operator, replica = "r1", "consumer", 0
    event_ids: tuple[str, ...] = ("7.0", "7.1")
    again = 0

    def repeated(self, count: int) -> None:
        self.again += count


def test_every_event_is_a_durable_message_with_its_id(broker: Broker, queue: str) -> None:
    sink = QueueSink(broker.url, queue)
    sink.check()
    with closing(sink):
        sink.open(Replica())
        sink.process_many([{"word": "gate"}, {"word": "über"}])
    (first, body), (second, _) = taken(broker, queue)
    assert json.loads(body) == {"word": "gate"}
    assert (first.message_id, first.app_id, second.message_id) == ("7.0", "r1", "7.1")
    assert (first.delivery_mode, first.content_type) == (2, "application/json")


def test_a_connection_cut_in_the_middle_loses_nothing(broker: Broker, queue: str) -> None:
    """Five times, after more and more bytes: what was not confirmed comes again, under the same id and the same."""
    sent = events(2000)
    with closing(Proxy(broker, [600, 5_000, 40_000, 150_000, 300_000])) as proxy:
        one = AmqpQueue(proxy.url, queue)
        one.open("r1")
        assert one.publish(sent) == 0
        one.close()
        assert proxy.cut == 5
    found = taken(broker, queue)
    assert {about.message_id: body for about, body in found} == sent
    assert len(found) > len(sent)  # some of them twice, and nobody could know


def test_a_broker_that_dies_and_comes_back_loses_nothing(
    broker: Broker, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Call after call, until it is back: at least one of them meets a broker that is not there."""
    one = AmqpQueue(broker.url, queue, patience_s=2 * START_S)
    one.open("r1")
    done: list[dict[str, bytes]] = []
    back = threading.Event()

    def publish() -> None:
        while not back.is_set():
            call = events_of(len(done))
            one.publish(call)
            done.append(call)
            time.sleep(0.01)

    thread = threading.Thread(target=publish, daemon=True)
    thread.start()
    until(lambda: len(done) >= 100)  # of a queue just made, RabbitMQ may forget that it was, confirmed or not
    caplog.clear()
    broker.kill()
    until(lambda: "away, waited for" in caplog.text)
    before = len(done)
    broker.start()
    back.set()
    thread.join(LONG_S)
    assert not thread.is_alive()
    assert before < len(done)
    one.close()
    found = {about.message_id: body for about, body in taken(broker, queue)}
    assert found == {key: body for call in done for key, body in call.items()}


def test_a_queue_that_was_deleted_is_made_anew(broker: Broker, queue: str) -> None:
    """RabbitMQ confirms a message that no queue wants; only that it comes back tells that it is lost."""
    one = AmqpQueue(broker.url, queue)
    with closing(one):
        one.open("r1")
        with closing(pika.BlockingConnection(pika.URLParameters(broker.url))) as connection:
            connection.channel().queue_delete(queue)
        one.publish(events(10))
    assert {about.message_id for about, _ in taken(broker, queue)} == set(events(10))


def test_a_broker_that_comes_late_is_waited_for(broker: Broker, queue: str, caplog: pytest.LogCaptureFixture) -> None:
    port = free_port()
    one = AmqpQueue(f"amqp://guest:guest@127.0.0.1:{port}/", queue)
    thread = threading.Thread(target=one.open, args=("r1",), daemon=True)
    thread.start()
    until(lambda: "away, waited for" in caplog.text)
    with closing(Proxy(broker, port=port)):
        thread.join(LONG_S)
        assert not thread.is_alive()
        one.publish(events(3))
        one.close()
    assert len(taken(broker, queue)) == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda url: url.replace("guest:guest", "guest:wrong"), "ACCESS_REFUSED"),
        (lambda url: url + "none", "vhost none not found"),
    ],
    ids=["password", "vhost"],
)
def test_a_broker_that_does_not_want_us(change: Any, said: str, broker: Broker) -> None:
    with pytest.raises(Exception, match=f"queue 'counts' at .*: cannot be reached; .*{said}") as raised:
        QueueSink(change(broker.url), "counts").check()
    assert "guest" not in str(raised.value)
    assert "wrong" not in str(raised.value)


def test_the_word_count_on_spark_publishes_every_count(broker: Broker) -> None:
    """Two replicas of the consumer, whose connections are cut while events flow: every count comes, under one id."""
    sentences = find_app("wordcount").payloads(PayloadOptions())
    with closing(Proxy(broker, [1_000_000, 4_000, 9_000])) as proxy:  # the first only looks whether it is there
        options = AppOptions(
            sink=lambda name, _: QueueSink(proxy.url, name), service_ms=dict.fromkeys(SERVICE_MS, 0.0), pool=2
        )
        flow = find_app("wordcount").build(options)
        with Run(flow, TraceSource(constant(200.0, 3.0), sentences), replicas={"consumer": 2}) as run:
            assert run.wait(LONG_S)
            counters = run.fresh_counters()
        assert proxy.cut == 2
    found = {(about.app_id, about.message_id): json.loads(body) for about, body in taken(broker, "consumer")}
    expected = Counter(word for n in range(600) for word in str(sentences[n % len(sentences)]["sentence"]).split())
    assert Counter(one["word"] for one in found.values()) == expected
    assert counters.operators["consumer"].total.processed == len(found) == 3000
    assert counters.restarts == 0


def events_of(call: int) -> dict[str, bytes]:
    return {f"{call}.{n}": b"%d" % n for n in range(50)}
