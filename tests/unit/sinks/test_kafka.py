"""The Kafka sink on a broker of the tests' own: its messages, its settings, and brokers that are slow or away."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.errors import EngineError, InputError
from penstock.sinks import KafkaSink
from tests.waiting import LONG_S

from ...services import free_port
from ...services.kafka import Kafka
from .kafka_topics import seen, told
from .playing import Replica


def test_messages_have_key_headers_id_and_run(kafka: Kafka, topic: str) -> None:
    sink = KafkaSink(
        kafka.address, topic, key=lambda event: event["word"], headers=lambda event: {"kind": "count", "n": event["n"]}
    )
    sink.check()
    sink.open(Replica(run="r1", event_ids=("7.0", "7.1")))
    sink.process_many([{"word": "über", "n": 1}, {"word": None, "n": 2}])
    sink.prepare(1)
    found = {one.headers()[0][1]: one for one in seen(kafka, topic)}
    sink.close()
    first, second = found[b"7.0"], found[b"7.1"]
    assert (first.key(), json.loads(first.value())) == ("über".encode(), {"word": "über", "n": 1})
    assert first.headers() == [("penstock-id", b"7.0"), ("penstock-run", b"r1"), ("kind", b"count"), ("n", b"1")]
    assert second.key() is None


def test_a_full_queue_holds_the_replica_back_and_loses_nothing(kafka: Kafka, topic: str) -> None:
    sink = KafkaSink(kafka.address, topic, settings={"queue.buffering.max.messages": 10, "linger.ms": 20})
    sink.open(about := Replica())
    about.event_ids = tuple(map(str, range(200)))
    sink.process_many(list(range(200)))
    sink.prepare(1)
    assert sorted(event for _, event in told(seen(kafka, topic))) == list(range(200))
    sink.close()


def test_a_message_that_is_too_large_is_said(kafka: Kafka, topic: str, tmp_path: Path) -> None:
    sink = KafkaSink(kafka.address, topic, settings={"message.max.bytes": 2_000_000})
    sink.open(Replica(event_ids=("1",)))
    sink.process("x" * 1_500_000)
    with pytest.raises(EngineError, match=f"kafka sink .{topic}. at .*: a message could not be .*; MSG_SIZE"):
        sink.prepare(1)
    with pytest.raises(EngineError, match="MSG_SIZE_TOO"):
        sink.close()


def test_a_broker_that_stays_away_is_given_up(tmp_path: Path) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    sink = KafkaSink(nowhere, "out", patience_s=1.0)
    sink.open(Replica(event_ids=("1",)))
    sink.process("x")
    started_s = time.monotonic()
    with pytest.raises(EngineError, match=r"kafka sink .out. at 127.0.0.1:.*_MSG_TIMED_OUT"):
        sink.prepare(1)
    assert time.monotonic() - started_s < LONG_S
    with suppress(EngineError):
        sink.close()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("linger.ms=long", 'Invalid value for configuration property "queue.buffering.max.ms"'),  # its other name
        ("acks=7000", "acks"),
        ("level=committed&enable.idempotence=false", "enable.idempotence"),
    ],
)
def test_settings_of_producers_that_cannot_be_are_said_before_the_run(
    kafka: Kafka, topic: str, options: str, said: str
) -> None:
    """They were found by the replicas, after Spark had started, and again at each restart."""
    with pytest.raises(InputError) as caught:
        KafkaSink.from_url(f"kafka://{kafka.address}/{topic}?{options}").check()
    assert said in str(caught.value)
    KafkaSink.from_url(f"kafka://{kafka.address}/{topic}?acks=all&linger.ms=1").check()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("kafka://host:9092", "kafka sink: must be kafka://host:port/topic"),
        ("kafka://me:hush@host:9092/t", "a login is not part of the URL's host"),
        ("kafka://host/t?levle=committed", "'levle' must be one of level, key, committer, patience_s, or a setting"),
        ("kafka://host/t?level=committed&committer=2", "committer must be 1, with level committed, or none; got 2"),
        ("kafka://host/t?committer=1", "committer must be 1, with level committed, or none; got 1"),
        ("kafka://host/t?level=latest", "level latest would take back what is in the topic already"),
        ("kafka://host/t?level=once", "level must be one of at_least_once, latest, committed; got 'once'"),
        ("kafka://host/t?committer=x", "kafka sink 't': committer must be a number; got 'x'"),
        ("kafka://host/t?patience_s=long", "kafka sink 't': patience_s must be a number; got 'long'"),
    ],
)
def test_urls_that_cannot_be(url: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        KafkaSink.from_url(url)
    assert said in str(caught.value)
    assert "hush" not in str(caught.value)


def test_a_sink_that_waits_for_a_slow_broker_takes_no_core(kafka: Kafka, topic: str) -> None:
    """Two sinks under a full load took both cores while they waited, and the broker on the same machine got none.

    Idempotent, librdkafka has five requests on their way at most and polls without a pause while more is to be sent.
    """
    sink, context = KafkaSink(kafka.address, topic, key=str), Replica(event_ids=("0",))
    sink.open(context)
    sink.process_many(["connected"])
    sink.prepare(1)
    with kafka.paused():
        context.event_ids = tuple(map(str, range(9000)))
        sink.process_many([{"key": number} for number in range(9000)])
        time.sleep(0.2)
        began_s = time.process_time()
        time.sleep(1)
        used_s = time.process_time() - began_s
    sink.close()
    assert used_s < 0.4
    assert len(seen(kafka, topic)) == 9001


def test_a_sink_gets_nothing_before_it_is_opened() -> None:
    with pytest.raises(RuntimeError, match="opened before"):
        KafkaSink("host", "out").process("x")
