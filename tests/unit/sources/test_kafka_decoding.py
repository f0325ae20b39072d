"""The Kafka source on a broker: what it makes of records, and of those that cannot be decoded."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import cloudpickle
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from penstock.errors import InputError
from penstock.sources.base import Undecoded
from penstock.sources.kafka import Avro, KafkaRecord, KafkaSource, Protobuf

from ...services.kafka import USERS, Kafka
from .kafka_topics import opened, put


def test_records_have_keys_headers_and_times(kafka: Kafka, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    put(kafka, topic, [{"n": 1}], key="ann", headers=[("trace", b"\x01"), ("trace", None)], timestamp=1_000_500)
    put(kafka, topic, [None], timestamp=1_000_500)
    with opened(KafkaSource(kafka.address, topic, records=True)) as tap:
        first, second = tap.take(2)
    headers = [("trace", b"\x01"), ("trace", None)]
    assert first == (f"{topic}-0-0", 1000.5, KafkaRecord(topic, 0, 0, 1000.5, "ann", {"n": 1}, headers))
    assert second.event == KafkaRecord(topic, 0, 1, 1000.5, None, None, [])


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
