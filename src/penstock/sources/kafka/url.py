"""A Kafka source in one line: `kafka://host:9092/topic?group=…&begin=…&decode=…`."""

from __future__ import annotations

from typing import Any

from penstock.common.checks import choice
from penstock.common.kafka import KafkaUrl
from penstock.errors import InputError
from penstock.sources.kafka.begin import read_begin
from penstock.sources.kafka.decoding import Avro

_WORDS = ("group", "birth", "on_reset", "decode", "decode_key")
_KNOWN = (*_WORDS, "begin", "buffer_bytes", "records", "registry")


def parsed(url: str) -> dict[str, Any]:
    """The arguments of a KafkaSource; several topics have commas between them, and `registry` goes with decode=avro.

    >>> parsed("kafka://a:9092,b:9092/clicks?group=g&begin=0:17,1:4&client.id=me")["begin"]
    {'clicks': {0: 17, 1: 4}}
    """
    brokers, path, query, settings = KafkaUrl.parse("kafka source", url, _KNOWN)
    topics = [path] if path.startswith("^") else path.split(",")
    thing = f"kafka source {path!r}"
    found: dict[str, Any] = {name: query[name] for name in _WORDS if name in query}
    if "begin" in query:
        found["begin"] = read_begin(thing, query["begin"], topics)
    if "records" in query:
        found["records"] = choice(thing, "records", query["records"], ("true", "false")) == "true"
    if "buffer_bytes" in query:
        size = query["buffer_bytes"]
        found["buffer_bytes"] = int(size) if size.isdecimal() else size
    return {"brokers": brokers, "topics": topics, "settings": settings, **_by_registry(thing, found, query)}


def _by_registry(thing: str, found: dict[str, Any], query: dict[str, str]) -> dict[str, Any]:
    by_avro = [name for name in ("decode", "decode_key") if found.get(name) == "avro"]
    if bool(by_avro) != ("registry" in query):
        raise InputError(f"{thing}: decode=avro and registry=http://… go together")
    return found | {name: Avro({"url": query["registry"]}) for name in by_avro}
