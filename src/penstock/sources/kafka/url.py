"""A Kafka source in one line: `kafka://host:9092/topic?group=…&begin=…&decode=…`."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from penstock.common.checks import choice
from penstock.common.kafka import is_setting
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
    try:
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError as error:
        raise InputError(f"kafka source: not a URL: {error}") from None
    path = unquote(parts.path).strip("/")
    if parts.scheme != "kafka" or not parts.netloc or not path:
        raise InputError("kafka source: must be kafka://host:port/topic")
    if "@" in parts.netloc:
        raise InputError("kafka source: a login is not part of the URL's host: use sasl.username and sasl.password")
    topics = [path] if path.startswith("^") else path.split(",")
    thing = f"kafka source {','.join(topics)!r}"
    settings = {name: value for name, value in query.items() if is_setting(name)}
    if unknown := [name for name in query if name not in _KNOWN and name not in settings]:
        known = ", ".join(_KNOWN)
        raise InputError(f"{thing}: {unknown[0]!r} must be one of {known}, or a setting of librdkafka")
    found: dict[str, Any] = {name: query[name] for name in _WORDS if name in query}
    if "begin" in query:
        found["begin"] = read_begin(thing, query["begin"], topics)
    if "records" in query:
        found["records"] = choice(thing, "records", query["records"], ("true", "false")) == "true"
    if "buffer_bytes" in query:
        found["buffer_bytes"] = (
            int(query["buffer_bytes"]) if query["buffer_bytes"].isdecimal() else query["buffer_bytes"]
        )
    return {"brokers": parts.netloc, "topics": topics, "settings": settings, **_by_registry(thing, found, query)}


def _by_registry(thing: str, found: dict[str, Any], query: dict[str, str]) -> dict[str, Any]:
    by_avro = [name for name in ("decode", "decode_key") if found.get(name) == "avro"]
    if bool(by_avro) != ("registry" in query):
        raise InputError(f"{thing}: decode=avro and registry=http://… go together")
    return found | {name: Avro({"url": query["registry"]}) for name in by_avro}
