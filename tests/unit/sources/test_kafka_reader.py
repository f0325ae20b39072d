"""The Kafka source on a broker: every record once, from where it was told, whatever happens to the broker."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import cloudpickle
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from penstock.errors import InputError
from penstock.sources.base import Cursor, Polled, Reader, Slot, Undecoded
from penstock.sources.kafka import Avro, KafkaRecord, KafkaSource, Protobuf, partitions

from ...services.kafka import USERS, Kafka

WAIT_S = 30.0
_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "REFRESH_S", 0.3)


@pytest.fixture
def new_topic(kafka: Kafka) -> Callable[..., str]:
    return lambda count=1, name="topic": kafka.create(f"{name}-{next(_numbers)}", count)


class Tap:
    """A reader with what was polled from it, and not yet looked at."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.polled: list[Polled] = []

    def until(self, said: Callable[[], Any], wanted: Any = True) -> bool:
        """Poll until it is said, or half a minute is over."""
        deadline_s = time.monotonic() + WAIT_S
        while said() != wanted and time.monotonic() < deadline_s:
            self.polled += self.reader.poll(1000, 0.05)
        return bool(said() == wanted)

    def ready(self) -> bool:
        """Wait until it knows its partitions."""
        return self.until(lambda: self.reader.lag() is not None)

    def take(self, count: int) -> list[Polled]:
        """Poll until so many are there, and a little longer: there must not be more."""
        self.until(lambda: len(self.polled) >= count)
        self.polled += self.reader.poll(1000, 0.1)
        taken, self.polled = self.polled, []
        return taken

    def events(self, count: int) -> list[Any]:
        return [one.event for one in self.take(count)]

    def lag(self) -> int | None:
        return self.reader.lag()

    @property
    def next(self) -> dict[str, dict[str, int]]:
        """The next offsets by topic and partition."""
        return {topic: told["next"] for topic, told in self.reader.cursor["topics"].items()}

    def close(self) -> None:
        self.reader.close()


def opened(source: KafkaSource, cursor: Cursor | None = None, number: int = 0, slots: int = 1) -> closing[Tap]:
    return closing(Tap(source.open(Slot("run", "source", number, slots, 0.0), cursor)))


def put(kafka: Kafka, topic: str, values: Sequence[Any], **about: Any) -> None:
    """Write these as JSON, bytes as they are."""
    producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 0})
    for value in values:
        raw = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
        producer.produce(topic, raw, **({"partition": 0} | about))
    assert producer.flush(WAIT_S) == 0


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


def expire(kafka: Kafka, topic: str, before: int) -> None:
    for answer in kafka.admin.delete_records([TopicPartition(topic, 0, before)]).values():
        answer.result()


@pytest.mark.parametrize(("on_reset", "expected"), [("earliest", [3, 4, 5]), ("latest", [5])])
def test_offsets_that_have_expired_are_gone_on_from_as_chosen(
    kafka: Kafka, new_topic: Callable[..., str], on_reset: str, expected: list[int]
) -> None:
    topic = new_topic()
    put(kafka, topic, list(range(5)))
    expire(kafka, topic, 3)
    source = KafkaSource(kafka.address, topic, on_reset=on_reset, begin={topic: {0: 1}})
    with opened(source) as tap:
        assert tap.until(lambda: tap.next.get(topic, {"0": 1})["0"] >= 3)
        put(kafka, topic, [5])
        assert tap.events(len(expected)) == expected


@pytest.mark.parametrize(("on_reset", "expected"), [("earliest", [3, 4]), ("latest", [])])
def test_it_says_when_it_has_caught_up_also_where_offsets_have_expired(
    kafka: Kafka, new_topic: Callable[..., str], on_reset: str, expected: list[int]
) -> None:
    """A slot that owes events that have expired must hear that they will not come, or a stop waits for them."""
    topic = new_topic(2)
    put(kafka, topic, list(range(5)))
    with opened(KafkaSource(kafka.address, topic, on_reset=on_reset)) as tap:
        assert not tap.reader.caught_up
        tap.until(lambda: tap.reader.caught_up)
        assert len(tap.take(5)) == 5
        cursor = tap.reader.cursor
        put(kafka, topic, [5])
        assert tap.until(lambda: len(tap.polled) > 0)
    expire(kafka, topic, 3)
    cursor["topics"][topic]["next"]["0"] = 1
    with opened(KafkaSource(kafka.address, topic, on_reset=on_reset), cursor) as tap:
        assert tap.until(lambda: tap.reader.caught_up)
        assert [one.event for one in tap.polled] == [*expected, *([5] if expected else [])]


def test_offsets_that_have_expired_end_the_run_unless_told_otherwise(
    kafka: Kafka, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    put(kafka, topic, list(range(5)))
    expire(kafka, topic, 3)
    with opened(KafkaSource(kafka.address, topic, begin={topic: {0: 1}})) as tap:
        told = (
            f"kafka source '{topic}': topic '{topic}', partition 0: it holds offsets 3 to 5, and not the next; on_reset"
        )
        with pytest.raises(InputError, match=told):
            tap.take(1)


def test_a_topic_made_anew_is_noticed_and_has_other_ids(kafka: Kafka, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    put(kafka, topic, ["old"])
    with opened(KafkaSource(kafka.address, topic)) as tap:
        assert tap.events(1) == ["old"]
        cursor = tap.reader.cursor
    kafka.delete(topic)
    kafka.create(topic)
    put(kafka, topic, ["new", "newer"])  # the old offset is there, too
    told = f"topic '{topic}' was made anew; on_reset says fail"
    with opened(KafkaSource(kafka.address, topic), cursor) as tap, pytest.raises(InputError, match=told):
        tap.take(1)
    with opened(KafkaSource(kafka.address, topic, on_reset="earliest"), cursor) as tap:
        assert [(one.id, one.event) for one in tap.take(2)] == [
            (f"{topic}~1-0-0", "new"),
            (f"{topic}~1-0-1", "newer"),
        ]


def test_a_topic_made_anew_while_it_is_read(kafka: Kafka, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    put(kafka, topic, ["old"])
    with opened(KafkaSource(kafka.address, topic, on_reset="earliest")) as tap:
        assert tap.events(1) == ["old"]
        kafka.delete(topic)
        kafka.create(topic)
        put(kafka, topic, ["new", "newer"])
        assert tap.until(lambda: len(tap.polled) >= 2 and tap.polled[-1].id == f"{topic}~1-0-1")
        assert [one.event for one in tap.polled if "~1-" in one.id] == ["new", "newer"]


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


def test_records_have_keys_headers_and_times(kafka: Kafka, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    put(kafka, topic, [{"n": 1}], key="ann", headers=[("trace", b"\x01"), ("trace", None)], timestamp=1_000_500)
    put(kafka, topic, [None], timestamp=1_000_500)
    with opened(KafkaSource(kafka.address, topic, records=True)) as tap:
        first, second = tap.take(2)
    headers = [("trace", b"\x01"), ("trace", None)]
    assert first == (f"{topic}-0-0", 1000.5, KafkaRecord(topic, 0, 0, 1000.5, "ann", {"n": 1}, headers))
    assert second.event == KafkaRecord(topic, 0, 1, 1000.5, None, None, [])


def test_birth_is_the_time_of_arrival_if_chosen(kafka: Kafka, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    put(kafka, topic, [1], timestamp=1_000_500)
    with opened(KafkaSource(kafka.address, topic, birth="arrival")) as tap:
        before_s = time.time()
        assert before_s <= tap.take(1)[0].born_s <= time.time()


def shout(raw: bytes) -> str:
    return raw.decode("ascii").upper()


@pytest.mark.parametrize(
    ("decode", "expected"),
    [
        ("json", [1, "bad", "gone"]),
        ("text", ["1", "bad", "gone"]),
        ("bytes", [b"1", b"\xff", "gone"]),
        (shout, ["1", "bad", "gone"]),
    ],
)
def test_what_cannot_be_decoded_is_said_in_its_place(
    kafka: Kafka, new_topic: Callable[..., str], decode: Any, expected: list[Any]
) -> None:
    topic = new_topic()
    put(kafka, topic, [b"1", b"\xff", None])
    with opened(KafkaSource(kafka.address, topic, decode=decode)) as tap:
        got = tap.events(3)
    assert got[0] == expected[0]
    if expected[1] == "bad":
        assert isinstance(got[1], Undecoded)
        assert got[1].raw == b"\xff"
        assert "Error: " in got[1].error
    else:
        assert got[1] == expected[1]
    assert got[2] == Undecoded(b"", "it has no value: a tombstone; with records=True it would be an event")


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


def test_it_is_shipped_with_its_decoder_and_takes_the_login_there(
    kafka: Kafka, new_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, suffix = new_topic(), "!"
    settings = kafka.login("reader", "${env:HUSH}")
    source = KafkaSource(kafka.sasl_address, topic, decode=lambda raw: raw.decode() + suffix, settings=settings)
    shipped = cloudpickle.dumps(source)
    monkeypatch.setenv("HUSH", USERS["reader"])
    put(kafka, topic, [b"hello"])
    with opened(cloudpickle.loads(shipped)) as tap:
        assert tap.events(1) == ["hello!"]


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


class Registry:
    """A schema registry that can be away: schemas are kept by confluent's own mock, and asked for over HTTP."""

    def __init__(self) -> None:
        self.client = SchemaRegistryClient.new_client({"url": "mock://"})
        self.away = False
        registry = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                body: Any = []
                if path.startswith("/schemas/ids/"):
                    schema = registry.client.get_schema(int(path.rpartition("/")[2]))
                    body = {"schema": schema.schema_str, "schemaType": schema.schema_type}
                raw = json.dumps({"error_code": 50001, "message": "away"} if registry.away else body).encode()
                self.send_response(500 if registry.away else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.settings = {"url": f"http://127.0.0.1:{self.server.server_port}", "max.retries": 1}
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()


@pytest.fixture
def registry() -> Iterator[Registry]:
    one = Registry()
    yield one
    one.server.shutdown()
    one.server.server_close()


def click_message() -> Any:
    """A class as protoc makes it."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="click.proto", package="demo", syntax="proto3")
    fields = file.message_type.add(name="Click").field
    fields.add(name="user_name", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    fields.add(name="count", number=2, type=kinds.TYPE_INT32, label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)  # type: ignore[no-untyped-call]
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("demo.Click"))


AVRO = json.dumps({"type": "record", "name": "Click", "fields": [{"name": "user", "type": "string"}]})


def test_avro_by_a_schema_registry_which_is_waited_for(
    kafka: Kafka, new_topic: Callable[..., str], registry: Registry
) -> None:
    topic = new_topic()
    write, about = AvroSerializer(registry.client, AVRO), SerializationContext(topic, MessageField.VALUE)
    put(kafka, topic, [write({"user": "ann"}, about), b"no avro", write({"user": "bob"}, about)])
    source = KafkaSource(kafka.address, topic, decode=Avro(registry.settings))
    source.check()
    registry.away = True
    with pytest.raises(InputError, match="the schema registry cannot be asked: away"):
        source.check()
    with opened(source) as tap:
        assert tap.ready()
        assert [tap.reader.poll(10, 0.05) for _ in range(3)] == [[]] * 3
        assert (tap.lag(), tap.polled) == (3, [])
        registry.away = False
        first, second, third = tap.events(3)
    assert (first, third) == ({"user": "ann"}, {"user": "bob"})
    assert isinstance(second, Undecoded)
    assert "magic byte" in second.error


def test_protobuf_by_a_schema_registry(kafka: Kafka, new_topic: Callable[..., str], registry: Registry) -> None:
    topic, click = new_topic(), click_message()
    write = ProtobufSerializer(click, registry.client, {"use.deprecated.format": False})
    about = SerializationContext(topic, MessageField.VALUE)
    put(kafka, topic, [write(one, about) for one in (click(user_name="ann", count=2), click())])
    with opened(KafkaSource(kafka.address, topic, decode=Protobuf(click, registry.settings))) as tap:
        assert tap.events(2) == [{"user_name": "ann", "count": 2}, {"user_name": "", "count": 0}]
