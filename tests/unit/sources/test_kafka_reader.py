"""The Kafka source on a broker: every record once, from where it was told, whatever happens to the broker."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions

from penstock.errors import InputError
from penstock.sources.base import Polled
from penstock.sources.kafka import KafkaSource, partitions

from ...services.kafka import Kafka
from .kafka_topics import WAIT_S, opened, put


@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        ("earliest", [0, 1, 2, 3, 4]),
        ("latest", [5]),
        (1_000_003, [3, 4]),
        (datetime.fromtimestamp(1_000_002.5, UTC), [3, 4]),
        (2_000_000.0, [5]),
        ({0: 2}, [2, 3, 4]),
    ],
)
def test_it_begins_where_it_is_told(
    kafka: Kafka, new_topic: Callable[..., str], begin: Any, expected: list[int]
) -> None:
    topic = new_topic()
    for n in range(5):
        put(kafka, topic, [n], timestamp=(1_000_000 + n) * 1000)
    source = KafkaSource(kafka.address, topic, begin={topic: begin} if isinstance(begin, dict) else begin)
    with opened(source) as tap:
        assert tap.ready()
        if expected == [5]:
            put(kafka, topic, [5])
        assert tap.events(len(expected)) == expected


def test_slots_share_the_partitions_and_read_each_record_once(kafka: Kafka, new_topic: Callable[..., str]) -> None:
    topic = new_topic(5)
    for number in range(5):
        put(kafka, topic, [[number, n] for n in range(20)], partition=number)
    for slots, of_each in ((2, {60, 40}), (7, {0, 20})):
        polled = []
        for slot in range(slots):
            with opened(KafkaSource(kafka.address, topic), number=slot, slots=slots) as tap:
                assert tap.ready()
                polled.append(tap.take((tap.lag() or 0) + len(tap.polled)))
        assert {len(several) for several in polled} == of_each
        once = [one.event for several in polled for one in several]
        assert sorted(once) == [[number, n] for number in range(5) for n in range(20)]
        for number in range(5):
            assert [n for of, n in once if of == number] == list(range(20))


def test_partitions_and_topics_that_are_added_are_found(kafka: Kafka, new_topic: Callable[..., str]) -> None:
    topic = new_topic(1, "grows")
    put(kafka, topic, ["old"])
    with opened(KafkaSource(kafka.address, f"^{topic}.*", begin="latest")) as tap:
        assert tap.ready()
        kafka.admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
        kafka.create(f"{topic}-more")
        put(kafka, topic, ["second"], partition=1)
        put(kafka, topic, ["third"], partition=2)
        put(kafka, f"{topic}-more", ["other"])
        assert sorted(tap.events(3)) == ["other", "second", "third"]
        assert tap.next == {topic: {"0": 1, "1": 1, "2": 1}, f"{topic}-more": {"0": 1}}


def test_it_goes_on_behind_its_cursor(kafka: Kafka, new_topic: Callable[..., str]) -> None:
    topic = new_topic(2)
    put(kafka, topic, ["a", "b", "c"])
    source = KafkaSource(kafka.address, topic)
    with opened(source) as tap:
        first: list[Polled] = []
        while len(first) < 2:
            first += tap.reader.poll(1, WAIT_S)
        assert [one.id for one in first] == [f"{topic}-0-0", f"{topic}-0-1"]
        cursor = json.loads(json.dumps(tap.reader.cursor))
    put(kafka, topic, ["d"], partition=1)
    with opened(source, cursor) as tap:
        assert sorted((one.id, one.event) for one in tap.take(2)) == [(f"{topic}-0-2", "c"), (f"{topic}-1-0", "d")]


def test_the_cursor_of_a_run_that_has_seen_nothing_is_a_place(kafka: Kafka, new_topic: Callable[..., str]) -> None:
    """With `latest` a record between the first checkpoint and a crash must not be skipped by beginning anew."""
    topic = new_topic()
    put(kafka, topic, ["before"])
    source = KafkaSource(kafka.address, topic, begin="latest")
    with opened(source) as tap:
        assert tap.ready()
        cursor = tap.reader.cursor
    put(kafka, topic, ["between"])
    with opened(source, cursor) as tap:
        assert tap.reader.cursor == cursor
        assert tap.events(1) == ["between"]


def test_a_broker_that_dies_is_waited_for(kafka: Kafka, new_topic: Callable[..., str]) -> None:
    topic = new_topic(2)
    put(kafka, topic, list(range(10)))
    source = KafkaSource(kafka.address, topic)
    with opened(source) as tap:
        assert tap.events(10) == list(range(10))
        kafka.kill()
        assert [tap.reader.poll(10, 0.2) for _ in range(5)] == [[]] * 5
        with opened(source, tap.reader.cursor) as late:
            assert late.reader.poll(10, 0.2) == []
            assert late.reader.cursor == tap.reader.cursor
            kafka.start()
            put(kafka, topic, list(range(10, 20)))
            assert late.events(10) == list(range(10, 20))
        assert tap.events(10) == list(range(10, 20))


def test_what_other_transactions_abort_is_not_read(kafka: Kafka, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(WAIT_S)
    for n in range(4):
        producer.begin_transaction()
        producer.produce(topic, str(n).encode())
        producer.flush(WAIT_S)
        (producer.abort_transaction if n % 2 else producer.commit_transaction)(WAIT_S)
    with opened(KafkaSource(kafka.address, topic)) as tap:
        assert tap.events(2) == [0, 2]
        assert tap.until(tap.lag, 0)  # behind aborted records and markers
        assert tap.next == {topic: {"0": 8}}
    uncommitted = KafkaSource(kafka.address, topic, settings={"isolation.level": "read_uncommitted"})
    with opened(uncommitted) as tap:
        assert tap.events(4) == [0, 1, 2, 3]


def test_lag_is_what_waits_outside(kafka: Kafka, new_topic: Callable[..., str]) -> None:
    topic = new_topic(2)
    put(kafka, topic, list(range(30)))
    put(kafka, topic, list(range(12)), partition=1)
    with opened(KafkaSource(kafka.address, topic)) as tap:
        assert tap.lag() is None
        polled = 0
        while tap.lag() is None or not polled:
            polled += len(tap.reader.poll(10, 0.05))
            assert tap.lag() in (None, 42 - polled)
        tap.take(42 - polled)
        assert tap.lag() == 0
        put(kafka, topic, [1, 2, 3])  # and not polled: the watcher tells
        deadline_s = time.monotonic() + WAIT_S
        while tap.lag() != 3 and time.monotonic() < deadline_s:
            time.sleep(0.05)
        assert tap.lag() == 3


def test_lag_is_not_known_before_the_ends_are(
    kafka: Kafka, new_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine a reader that had just found its partitions said that nothing waited in them."""
    topic, look, may_look = new_topic(), partitions.Watcher._offsets, threading.Event()

    def offsets(self: partitions.Watcher, starts: Any) -> dict[Any, int]:
        assert "latest" not in starts.values() or may_look.wait(WAIT_S)
        return look(self, starts)

    monkeypatch.setattr(partitions.Watcher, "_offsets", offsets)
    put(kafka, topic, [1, 2, 3])
    with opened(KafkaSource(kafka.address, topic)) as tap:
        assert tap.until(lambda: bool(tap.next))
        assert tap.lag() is None
        may_look.set()
        assert tap.until(lambda: tap.lag() is not None)
        assert len(tap.take(3)) == 3


def test_birth_is_the_time_of_arrival_if_chosen(kafka: Kafka, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    put(kafka, topic, [1], timestamp=1_000_500)
    with opened(KafkaSource(kafka.address, topic, birth="arrival")) as tap:
        before_s = time.time()
        assert before_s <= tap.take(1)[0].born_s <= time.time()


def test_the_group_is_told_what_was_committed(kafka: Kafka, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    put(kafka, topic, [1, 2, 3])
    watching = Consumer({"bootstrap.servers": kafka.address, "group.id": f"group-of-{topic}"})
    with closing(watching), opened(KafkaSource(kafka.address, topic, group=f"group-of-{topic}")) as tap:
        tap.take(3)
        cursor = tap.reader.cursor
        put(kafka, topic, [4])
        tap.take(1)
        assert watching.committed([TopicPartition(topic, 0)], timeout=WAIT_S)[0].offset < 0
        tap.reader.committed(cursor)
        committed = lambda: watching.committed([TopicPartition(topic, 0)], timeout=WAIT_S)[0].offset  # noqa: E731
        assert tap.until(committed, 3)


def test_few_bytes_are_in_flight_and_all_records_come(kafka: Kafka, new_topic: Callable[..., str]) -> None:
    topic = new_topic(2)
    for number in range(2):
        put(kafka, topic, [b"x" * 50_000] * 60, partition=number)  # 6 MB
    with opened(KafkaSource(kafka.address, topic, decode=len, buffer_bytes=2**21)) as tap:
        assert tap.events(120) == [50_000] * 120


def test_check_is_content_with_a_topic_that_can_be_read(kafka: Kafka, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    KafkaSource(kafka.address, topic).check()
    KafkaSource(kafka.address, f"^{topic}").check()


def test_check_tells_what_is_wrong(kafka: Kafka, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    with pytest.raises(InputError, match=r"kafka source '\^nothing': no topic of the cluster that may be seen matches"):
        KafkaSource(kafka.address, "^nothing").check()
    with pytest.raises(InputError, match=f"begin must name partitions from 0 to 0, which topic '{topic}' has; got 9"):
        KafkaSource(kafka.address, topic, begin={topic: {0: 1, 9: 3}}).check()
