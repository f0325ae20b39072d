"""The Kafka source without a broker: what it takes, its URL, secrets, cursors, and where partitions begin."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.common.kafka import Partition, Start, Topic, made, resolved
from penstock.errors import InputError
from penstock.sources.base import Slot
from penstock.sources.kafka import Avro, KafkaSource, Protobuf
from penstock.sources.kafka.partitions import Found, KafkaCursor, TopicCursor, Wanted, Watcher, owner, read_cursor


@pytest.mark.parametrize(
    ("query", "name", "value"),
    [
        ("group=g", "group", "g"),
        ("begin=latest", "begin", "latest"),
        ("begin=1700000000.5", "begin", 1700000000.5),
        ("begin=2026-01-02T03:04:05Z", "begin", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        (
            "begin=2026-01-02T03:04:05%2B01:00",
            "begin",
            datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=1))),
        ),
        ("begin=2026-01-02", "begin", datetime(2026, 1, 2, tzinfo=UTC)),
        ("begin=0:17,3:4", "begin", {"clicks": {0: 17, 3: 4}}),
        ("decode=text", "decode", "text"),
        ("decode=avro&registry=http://r:8081", "decode", Avro({"url": "http://r:8081"})),
        ("records=true", "records", True),
        ("birth=arrival", "birth", "arrival"),
        ("on_reset=latest", "on_reset", "latest"),
        ("buffer_bytes=4000000", "buffer_bytes", 4_000_000),
        ("sasl.password=${env:SECRET}&client.id=me", "settings", {"sasl.password": "${env:SECRET}", "client.id": "me"}),
    ],
)
def test_a_url_says_what_the_arguments_say(query: str, name: str, value: Any) -> None:
    source = KafkaSource.from_url(f"kafka://a:9092,b:9092/clicks?{query}")
    assert (source.brokers, source.topics) == ("a:9092,b:9092", ("clicks",))
    assert getattr(source, name) == value


def test_a_url_has_several_topics_or_a_pattern() -> None:
    assert KafkaSource.from_url("kafka://a/one,two").topics == ("one", "two")
    assert KafkaSource.from_url("kafka://a/^click-(a|b){1,2}").topics == ("^click-(a|b){1,2}",)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("kafka://host:9092", "kafka source: must be kafka://host:port/topic"),
        ("amqp://host/topic", "kafka source: must be kafka://host:port/topic"),
        ("kafka://ann:hush@host/topic", "a login is not part of the URL's host"),
        ("kafka://host/clicks?grop=g", "'clicks': 'grop' must be one of group, birth"),
        ("kafka://host/clicks?begin=soon", "begin must be earliest, latest, a time, or, .*; got 'soon'"),
        ("kafka://host/clicks?decode=xml", "decode must be one of json, text, bytes, .*; got 'xml'"),
        ("kafka://host/clicks?decode=avro", "decode=avro and registry=http://… go together"),
        ("kafka://host/clicks?records=yes", "records must be one of true, false; got 'yes'"),
        ("kafka://host/clicks?buffer_bytes=lots", "buffer_bytes must be whole and at least 2097152; got 'lots'"),
        ("kafka://host/clicks?group", "kafka source: not a URL"),
        ("kafka://host/clicks?acks=all&level=committed", "'level' must be one of group, "),
    ],
)
def test_a_wrong_url_is_told_without_a_password(url: str, told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        KafkaSource.from_url(url)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"topics": []}, "kafka source: topics must be names or patterns; got ()"),
        ({"topics": "two words"}, "a topic's name has letters, digits, .*; got 'two words'"),
        ({"topics": "^("}, r"'\^\(' is not a pattern: "),
        ({"brokers": ""}, "brokers must be host:port, or several with commas; got ''"),
        ({"decode": "xml"}, "decode must be one of json, text, bytes, a function, Avro or Protobuf; got 'xml'"),
        ({"decode_key": 3}, "decode_key must be one of"),
        ({"birth": "yesterday"}, "birth must be one of record, arrival; got 'yesterday'"),
        ({"on_reset": "none"}, "on_reset must be one of fail, earliest, latest; got 'none'"),
        ({"records": 1}, "records must be true or false; got 1"),
        ({"buffer_bytes": 1000}, "buffer_bytes must be whole and at least 2097152; got 1000"),
        ({"begin": "first"}, "begin must be earliest, latest, .*; got 'first'"),
        ({"begin": -1}, "begin must be earliest, latest, .*; got -1"),
        ({"begin": datetime(2026, 1, 1)}, "a time with a zone, .*; got datetime"),
        ({"begin": {"clicks": {0: -4}}}, "offsets by topic and partition; got "),
        ({"begin": {0: 17}}, "offsets by topic and partition; got "),
        ({"begin": {"views": {0: 17}}}, "begin names topics that are not read: views"),
        ({"settings": {"group.id": "g"}}, "setting group.id must not be given: use group"),
        ({"settings": {"auto.offset.reset": "latest"}}, "setting auto.offset.reset must not be given: use on_reset"),
        ({"settings": {"enable.auto.commit": True}}, "enable.auto.commit must not be given: it is the source's own"),
    ],
)
def test_a_wrong_argument_is_told(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        KafkaSource(**({"brokers": "a:9092", "topics": "clicks"} | changed))


def test_secrets_come_from_environment_or_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HUSH", "from-env")
    (tmp_path / "hush").write_text("from-file\n")
    given = {"a": "${env:HUSH}", "b": f"x${{file:{tmp_path}/hush}}y", "c": 3}
    assert resolved("sink", given) == {"a": "from-env", "b": "xfrom-filey", "c": 3}


def test_a_secret_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"sink: setting sasl.password: the environment has no variable 'NOWHERE'"):
        resolved("sink", {"sasl.password": "${env:NOWHERE}"})
    with pytest.raises(InputError, match=r"sink: setting sasl.password: the file '.*' cannot be read: No such file"):
        resolved("sink", {"sasl.password": f"${{file:{tmp_path}/none}}"})


def test_a_wrong_setting_is_told_without_its_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    confluent = pytest.importorskip("confluent_kafka")
    monkeypatch.setenv("HUSH", "hush-hush")
    with pytest.raises(InputError) as caught:
        made("sink", confluent.Producer, {"security.protocol": "${env:HUSH}"})
    assert str(caught.value) == 'sink: Invalid value "…" for configuration property "security.protocol"'
    with pytest.raises(InputError, match=r'sink: No such configuration property: "sasl\.pasword"'):
        made("sink", confluent.Producer, {"sasl.pasword": "hush"})


def test_a_secret_is_neither_shown_nor_shipped_where_it_stands_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSH", "hush-hush")
    source = KafkaSource("a:9092", "clicks", settings={"sasl.password": "${env:HUSH}", "ssl.key.password": "quiet"})
    assert repr(source) == "kafka source 'clicks' at a:9092"
    assert b"hush-hush" not in pickle.dumps(source)
    assert "quiet" not in repr(Avro({"url": "http://r", "basic.auth.user.info": "ann:quiet"}))
    assert "quiet" not in repr(Protobuf(dict, {"basic.auth.user.info": "ann:quiet"}))


def test_without_the_client_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    source = KafkaSource("a:9092", "clicks")
    for use in (source.check, lambda: source.open(Slot("r", "s", 0, 1, 0.0), None)):
        with pytest.raises(InputError, match=r"needs the package confluent-kafka; .* pip install 'penstock\[kafka\]'"):
            use()


def test_the_client_is_not_loaded_by_the_door() -> None:
    """Workers fork from a process that has imported everything: the client's threads would not survive that."""
    code = "import sys, penstock.sources.kafka; sys.exit('confluent_kafka' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert importlib.import_module("penstock").KafkaSource is KafkaSource


@pytest.mark.parametrize("slots", [1, 3, 8])
def test_partitions_are_spread_evenly_and_stay_where_they_are(slots: int) -> None:
    of_7 = [owner("clicks", number, slots) for number in range(7)]
    of_9 = [owner("clicks", number, slots) for number in range(9)]
    assert of_9[:7] == of_7
    counts = [Counter(of_9)[slot] for slot in range(slots)]
    assert max(counts) - min(counts) <= 1


def test_a_cursor_goes_through_json_and_must_be_for_as_many_slots() -> None:
    cursor = KafkaCursor(2, {"clicks": TopicCursor("id", 1, {0: 17, 2: 4})})
    kept = msgspec.json.decode(msgspec.json.encode(msgspec.to_builtins(cursor, str_keys=True)))
    assert read_cursor("source", kept, 2) == cursor
    assert read_cursor("source", None, 2) == KafkaCursor(2, {})
    with pytest.raises(InputError, match="source: must go on with as many slots as it began with, 2; got 3"):
        read_cursor("source", kept, 3)
    with pytest.raises(InputError, match="source: must go on from a cursor of a Kafka source; got 17"):
        read_cursor("source", 17, 2)


class Cluster:
    """Says what it is told to; a start stands for itself, but earliest is 0 and latest 100."""

    def __init__(self, **topics: Topic) -> None:
        self.topics = topics
        self.said: list[str] = []
        self.complaints = self

    def say(self, about: object, text: str) -> None:
        self.said.append(text)

    def names(self) -> list[str]:
        return sorted(self.topics)

    def described(self, names: list[str]) -> dict[str, Topic]:
        return {name: self.topics.get(name, Topic(error="UNKNOWN_TOPIC", told="unknown")) for name in names}

    def offsets(self, starts: Mapping[Partition, Start], committed: bool) -> dict[Partition, Any]:
        return {one: {"earliest": 0, "latest": 100}.get(start, start) for one, start in starts.items()}  # type: ignore[arg-type]


def looked(cluster: Cluster, cursor: KafkaCursor | None = None, **wanted: Any) -> Watcher:
    """A watcher that has looked once, in this thread."""
    asked = Wanted(**({"topics": ["clicks"], "begin": "latest", "on_reset": "earliest", "committed": True} | wanted))
    watcher = Watcher("source", asked, Slot("r", "s", 0, 1, 0.0), cluster)  # type: ignore[arg-type]
    watcher.start = lambda: None  # type: ignore[method-assign]
    watcher.begin(cursor or KafkaCursor(1, {}))
    watcher._look()
    return watcher


def found(watcher: Watcher) -> list[Found | Exception]:
    return [watcher.news.get_nowait() for _ in range(watcher.news.qsize())]


def test_partitions_begin_where_told_and_later_ones_at_their_first_record() -> None:
    cluster = Cluster(clicks=Topic("a", 2))
    watcher = looked(cluster)
    assert found(watcher) == [Found("clicks", "a", 0, {0: 100, 1: 100})]
    watcher._look()
    assert found(watcher) == []
    cluster.topics["clicks"] = Topic("a", 3)
    watcher._look()
    assert found(watcher) == [Found("clicks", "a", 0, {2: 0})]


def test_topics_of_a_pattern_that_come_later_begin_at_their_first_record() -> None:
    cluster = Cluster(clicks=Topic("a", 1), views=Topic("v", 1))
    watcher = looked(cluster, topics=["^click"])
    assert found(watcher) == [Found("clicks", "a", 0, {0: 100})]
    cluster.topics["click-2"] = Topic("b", 1)
    watcher._look()
    assert found(watcher) == [Found("click-2", "b", 0, {0: 0})]


def test_a_cursor_says_where_to_go_on_and_a_topic_named_since_begins_where_told() -> None:
    cursor = KafkaCursor(1, {"clicks": TopicCursor("a", 2, {0: 17})})
    watcher = looked(Cluster(clicks=Topic("a", 2), views=Topic("v", 1)), cursor, topics=["clicks", "views"])
    assert found(watcher) == [Found("clicks", "a", 2, {0: 17, 1: 0}), Found("views", "v", 0, {0: 100})]


@pytest.mark.parametrize(("on_reset", "start"), [("earliest", 0), ("latest", 100)])
def test_a_topic_made_anew_begins_where_on_reset_says(on_reset: str, start: int) -> None:
    cursor = KafkaCursor(1, {"clicks": TopicCursor("a", 0, {0: 17})})
    watcher = looked(Cluster(clicks=Topic("b", 2)), cursor, on_reset=on_reset)
    assert found(watcher) == [Found("clicks", "b", 1, {0: start, 1: start})]


def test_a_topic_that_is_not_there_is_waited_for() -> None:
    cursor = KafkaCursor(1, {"clicks": TopicCursor("a", 0, {0: 17})})

    cluster = Cluster()
    watcher = looked(cluster, cursor)
    assert found(watcher) == []
    assert cluster.said == ["topic 'clicks': unknown; waits for it"]
    cluster.topics["clicks"] = Topic("a", 1)
    watcher._look()
    assert found(watcher) == [Found("clicks", "a", 0, {0: 17})]
