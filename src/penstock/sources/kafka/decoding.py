"""From a record's bytes to an event: JSON, text, bytes, a function of the user's, or by a schema registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.common.kafka import made
from penstock.errors import InputError
from penstock.sources.base import Undecoded

if TYPE_CHECKING:
    from confluent_kafka import Message

Decode = Callable[[bytes, str], Any]  # of the value, or the key, of a record of this topic
PLAIN: dict[str, Callable[[bytes], Any]] = {"json": msgspec.json.decode, "text": bytes.decode, "bytes": bytes}


class RegistryAway(Exception):  # noqa: N818 - what happened, and not an error of the record
    """The schema registry does not answer: the same record may be decoded later."""


class Registered(ABC):
    """Decodes by the schema whose number stands before each value; the schema registry knows it."""

    registry: Mapping[str, Any]  # settings of confluent's SchemaRegistryClient: `url`, `basic.auth.user.info`, …

    @abstractmethod
    def deserializer(self, client: Any) -> Callable[[bytes, Any], Any]:
        """Confluent's deserializer, giving events."""

    def opened(self, thing: str, part: str) -> Decode:
        """A decoder of values or of keys (`part`: value, key)."""
        context: Any = import_module("confluent_kafka.serialization").SerializationContext
        deserialize = self.deserializer(self._client(thing))
        contexts: dict[str, Any] = {}

        def decode(raw: bytes, topic: str) -> Any:
            if topic not in contexts:
                contexts[topic] = context(topic, part)
            try:
                return deserialize(raw, contexts[topic])
            except Exception as error:
                if _is_outage(error):
                    raise RegistryAway(f"the schema registry does not answer: {error}") from None
                raise

        return decode

    def check(self, thing: str) -> None:
        """Raise an InputError if the registry cannot be asked."""
        client = self._client(thing)
        try:
            client.get_subjects()
        except Exception as error:
            raise InputError(f"{thing}: the schema registry cannot be asked: {error}") from None

    def _client(self, thing: str) -> Any:
        module: Any = import_module("confluent_kafka.schema_registry")
        return made(thing, module.SchemaRegistryClient.new_client, self.registry)


@dataclass(frozen=True)
class Avro(Registered):
    """Avro, read by the schema that it was written with and, where one is given, seen through that; as mappings."""

    registry: Mapping[str, Any] = field(repr=False)
    schema: str | None = None

    def deserializer(self, client: Any) -> Callable[[bytes, Any], Any]:
        """Confluent's."""
        module: Any = import_module("confluent_kafka.schema_registry.avro")
        return module.AvroDeserializer(client, self.schema)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Protobuf(Registered):
    """Protobuf messages of a generated class; as mappings by the fields' names, in the way of protobuf's JSON."""

    message: type
    registry: Mapping[str, Any] = field(repr=False)

    def deserializer(self, client: Any) -> Callable[[bytes, Any], Any]:
        """Confluent's, with a mapping made of each message."""
        module: Any = import_module("confluent_kafka.schema_registry.protobuf")
        to_dict: Any = import_module("google.protobuf.json_format").MessageToDict
        deserialize = module.ProtobufDeserializer(self.message, {"use.deprecated.format": False}, client)
        shape = {"preserving_proto_field_name": True, "always_print_fields_with_no_presence": True}
        return lambda raw, context: to_dict(deserialize(raw, context), **shape)


class KafkaRecord(msgspec.Struct):
    """A record with all that Kafka knows of it; headers in their order, time in seconds since 1970."""

    topic: str
    partition: int
    offset: int
    time_s: float | None
    key: Any
    value: Any
    headers: list[tuple[str, bytes | None]]


Decoder = str | Callable[[bytes], Any] | Registered


def check_decoder(thing: str, name: str, decoder: object) -> None:
    """Raise an InputError unless it is a known name, a function or a decoder by a schema registry."""
    if not (isinstance(decoder, Registered) or callable(decoder) or decoder in PLAIN):
        known = ", ".join(PLAIN)
        raise InputError(f"{thing}: {name} must be one of {known}, a function, Avro or Protobuf; got {decoder!r}")


def opened(thing: str, decoder: Decoder, part: str) -> Decode:
    """The decoder at work, where the records are."""
    if isinstance(decoder, Registered):
        return decoder.opened(thing, part)
    function = PLAIN[decoder] if isinstance(decoder, str) else decoder
    return lambda raw, _topic: function(raw)


def by_value(decode: Decode) -> Callable[[Message], Any]:
    """Events are the records' values."""

    def value(message: Message) -> Any:
        raw = message.value()
        if raw is None:
            return Undecoded(b"", "it has no value: a tombstone; with records=True it would be an event")
        return decode(raw, message.topic())  # type: ignore[arg-type]

    return value


def by_record(decode: Decode, decode_key: Decode) -> Callable[[Message], KafkaRecord]:
    """Events are the records, with key and value decoded."""

    def record(message: Message) -> KafkaRecord:
        topic: Any = message.topic()
        key, value = message.key(), message.value()
        kind, time_ms = message.timestamp()
        return KafkaRecord(
            topic,
            message.partition(),  # type: ignore[arg-type]
            message.offset(),  # type: ignore[arg-type]
            time_ms / 1000 if kind else None,
            None if key is None else decode_key(key, topic),
            None if value is None else decode(value, topic),
            list(message.headers() or ()),  # type: ignore[arg-type]
        )

    return record


def _is_outage(error: Exception) -> bool:
    """Whether it says nothing about the record: no connection, or a registry in trouble."""
    status = getattr(error, "http_status_code", 0)
    kinds = {kind.__name__ for kind in type(error).__mro__}  # the HTTP client's own, whichever it is
    return bool(kinds & {"TransportError", "OSError"}) or status == 429 or status >= 500
