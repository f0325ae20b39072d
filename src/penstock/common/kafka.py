"""What Kafka's source and sink share: URLs, settings with secrets in them, and questions to a cluster."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from penstock.common.secrets import resolve
from penstock.errors import AwayError, InputError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

Settings = Mapping[str, Any]  # librdkafka's, by their own names
Partition = tuple[str, int]  # topic and number
Start = int | float | str  # an offset, a time in seconds since 1970, `earliest` or `latest`
Client = TypeVar("Client")
Answer = TypeVar("Answer")

QUIET = {"log_level": 2}  # what matters comes by error_cb
CHECK_S = 10.0
ANSWER_S = 5.0
SAY_AGAIN_S = 60.0
_UNDOTTED = ("acks", "debug", "log_level", "partitioner", "retries")
_HIDDEN = re.compile(r"password|secret|token|key\.pem|oauthbearer\.config|user\.info")
_log = logging.getLogger("penstock.kafka")


def resolved(thing: str, settings: Settings) -> dict[str, Any]:
    """The settings with what `${env:NAME}` and `${file:/path}` in them stand for; called where they are used.

    >>> import os
    >>> os.environ["KAFKA_USER"] = "ann"
    >>> resolved("kafka source 'clicks'", {"sasl.username": "${env:KAFKA_USER}", "linger.ms": 5})
    {'sasl.username': 'ann', 'linger.ms': 5}
    """

    return {
        name: resolve(f"{thing}: setting {name}", given) if isinstance(given, str) else given
        for name, given in settings.items()
    }


def is_setting(name: str) -> bool:
    """Whether a name in a URL is meant for librdkafka: it has a dot, or is one of its few without.

    >>> [is_setting(name) for name in ("linger.ms", "acks", "level")]
    [True, True, False]
    """
    return "." in name or name in _UNDOTTED


class KafkaUrl(NamedTuple):
    """What `kafka://host:9092/topic?option=…&setting.of.librdkafka=…` says; what stands for the topics is `path`."""

    brokers: str
    path: str
    options: dict[str, str]
    settings: dict[str, str]

    @classmethod
    def parse(cls, thing: str, url: str, known: Collection[str]) -> KafkaUrl:
        """Its parts, or an InputError about what it should be; `known` are the names that options may have.

        >>> KafkaUrl.parse("kafka sink", "kafka://host:9092/counts?key=word&linger.ms=5", ["key"])[1:]
        ('counts', {'key': 'word'}, {'linger.ms': '5'})
        """
        try:
            parts = urlsplit(url)
            query = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        except ValueError as error:
            raise InputError(f"{thing}: not a URL: {error}") from None
        path = unquote(parts.path).strip("/")
        if parts.scheme != "kafka" or not parts.netloc or not path:
            raise InputError(f"{thing}: must be kafka://host:port/topic")
        if "@" in parts.netloc:
            raise InputError(f"{thing}: a login is not part of the URL's host: use sasl.username and sasl.password")
        settings = {name: query.pop(name) for name in list(query) if is_setting(name)}
        if unknown := [name for name in query if name not in known]:
            told = f"must be one of {', '.join(known)}, or a setting of librdkafka"
            raise InputError(f"{thing} {path!r}: {unknown[0]!r} {told}")
        return cls(parts.netloc, path, query, settings)


def made(thing: str, client: Callable[[dict[str, Any]], Client], settings: Settings) -> Client:
    """A client with these settings; an InputError, without its secrets, where one of them is wrong."""
    values = resolved(thing, settings)
    _check_files(thing, values)
    try:
        return client(values)
    except Exception as error:  # KafkaException and ValueError, and TypeError for odd types
        told = error.args[0].str() if error.args and hasattr(error.args[0], "str") else str(error)
        for name, secret in values.items():
            if secret and (_HIDDEN.search(name) or settings.get(name) != secret):
                told = told.replace(str(secret), "…")
        raise InputError(f"{thing}: {told.strip()}") from None


def _check_files(thing: str, values: Settings) -> None:
    """Certificates and keys must be there; librdkafka would only say `BIO lib`."""
    for name, place in values.items():
        if name.startswith("ssl.") and name.endswith(".location") and place != "probe" and not Path(place).exists():
            raise InputError(f"{thing}: setting {name}: there is no file {place!r}")


def need_client(thing: str) -> None:
    """Raise an InputError where the package is missing."""
    try:
        import_module("confluent_kafka")
    except ImportError:
        raise InputError(
            f"{thing}: needs the package confluent-kafka; to install it: pip install 'penstock[kafka]'"
        ) from None


class Complaints:
    """An `error_cb` that logs what a client complains about, the same only once a minute, and keeps the last."""

    def __init__(self, thing: str, aloud: bool = True) -> None:
        self._thing = thing
        self._aloud = aloud
        self._said: dict[object, float] = {}
        self.last: dict[str, str] = {}  # by the name of the error

    def __call__(self, error: KafkaError) -> None:
        """Hear one."""
        self.last[error.name()] = error.str()
        self.say(error.name(), error.str())

    def say(self, about: object, text: str) -> None:
        """Log it, if not just said."""
        now_s = time.monotonic()
        if self._aloud and now_s - self._said.get(about, -SAY_AGAIN_S) >= SAY_AGAIN_S:
            self._said[about] = now_s
            _log.warning("%s: %s", self._thing, text)


class Topic(NamedTuple):
    """What a cluster says of a topic: its id, its partitions and what we may do with it; or an error."""

    id: str = ""
    partitions: int = 0
    rights: Collection[str] = ()
    error: str = ""
    told: str = ""


class Cluster:
    """Asks a cluster about its topics, and waits for the answer; a KafkaException where there is none.

    What its client complains about meanwhile is logged, unless whoever asks tells it (`aloud=False`).
    """

    def __init__(self, thing: str, settings: Settings, aloud: bool = True) -> None:
        need_client(thing)
        admin: Any = import_module("confluent_kafka.admin")
        self._thing = thing
        self._brokers = settings["bootstrap.servers"]
        self.complaints = Complaints(thing, aloud)
        self._admin = made(thing, admin.AdminClient, {**QUIET, **settings, "error_cb": self.complaints})

    def names(self) -> list[str]:
        """All topics that may be seen, but for Kafka's own."""
        self._admin.poll(0)
        return sorted(name for name in self._admin.list_topics(timeout=ANSWER_S).topics if not name.startswith("__"))

    def described(self, names: Iterable[str]) -> dict[str, Topic]:
        """What each topic is, or why that cannot be told."""
        kafka: Any = import_module("confluent_kafka")
        if not (wanted := list(names)):
            return {}
        told: dict[str, Topic] = {}
        asked = self._admin.describe_topics(
            kafka.TopicCollection(wanted), include_authorized_operations=True, request_timeout=ANSWER_S
        )
        for name, answer in asked.items():
            try:
                one = answer.result()
                rights = {right.name for right in one.authorized_operations or ()}
                told[name] = Topic(str(one.topic_id), len(one.partitions), rights)
            except kafka.KafkaException as error:
                if error.args[0].code() < 0:  # the client's own: no answer
                    raise
                told[name] = Topic(error=error.args[0].name(), told=error.args[0].str())
        return told

    def offsets(self, starts: Mapping[Partition, Start], committed: bool = True) -> dict[Partition, int]:
        """The offset that each start stands for; a time after the last record is the end."""
        specs: Any = import_module("confluent_kafka.admin").OffsetSpec
        asked: dict[Partition, Any] = {}
        for partition, start in starts.items():
            if isinstance(start, float):
                asked[partition] = specs.for_timestamp(round(start * 1000))
            elif isinstance(start, str):
                asked[partition] = specs.latest() if start == "latest" else specs.earliest()
        found = self._list_offsets(asked, committed)
        found |= self._list_offsets({one: specs.latest() for one, offset in found.items() if offset < 0}, committed)
        return {partition: start for partition, start in starts.items() if isinstance(start, int)} | found

    def _list_offsets(self, asked: Mapping[Partition, Any], committed: bool) -> dict[Partition, int]:
        kafka: Any = import_module("confluent_kafka")
        if not asked:
            return {}
        level = kafka.IsolationLevel.READ_COMMITTED if committed else kafka.IsolationLevel.READ_UNCOMMITTED
        answers = self._admin.list_offsets(
            {kafka.TopicPartition(*partition): spec for partition, spec in asked.items()},
            isolation_level=level,
            request_timeout=ANSWER_S,
        )
        return {(one.topic, one.partition): answer.result().offset for one, answer in answers.items()}

    def check(self, names: Iterable[str], right: str) -> dict[str, Topic]:
        """The topics; an InputError unless a broker answers and each is there with this right (READ, WRITE)."""
        self.answer(lambda: self._admin.list_topics(timeout=1.0))  # tells a wrong password sooner than others
        found = self.answer(lambda: self.described(names))
        for name, topic in found.items():
            why = None
            if "UNKNOWN_TOPIC" in topic.error:
                why = "the cluster has no such topic"
            elif "AUTHORIZATION" in topic.error or (topic.rights and right not in topic.rights):
                why = f"no right to {right.lower()} it"
            elif topic.error:
                why = topic.told
            if why:
                raise InputError(f"{self._thing}: topic {name!r}: {why}")
        return found

    def answer(self, question: Callable[[], Answer]) -> Answer:
        """What the cluster answers; an AwayError if no broker does in time, an InputError if none takes the login."""
        kafka: Any = import_module("confluent_kafka")
        deadline_s = time.monotonic() + CHECK_S
        while True:
            try:
                return question()
            except kafka.KafkaException as error:
                self._admin.poll(0)
                for name in ("_AUTHENTICATION", "_SSL"):
                    if told := self.complaints.last.get(name):
                        raise InputError(f"{self._thing}: {told}") from None
                if time.monotonic() > deadline_s:
                    heard = (self.complaints.last.get(name) for name in ("_RESOLVE", "_TRANSPORT"))
                    why = next(filter(None, heard), f"{error.args[0].str()} (is security.protocol as the broker's?)")
                    where = f"no broker answers at {self._brokers} within {CHECK_S:g} s"
                    raise AwayError(f"{self._thing}: {where}; {why}") from None
