"""Kafka's source and sink by TLS, with a login and rights: both work, or say before the run what is wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from penstock.errors import InputError
from penstock.sinks import KafkaSink
from penstock.sources.base import Slot
from penstock.sources.kafka import KafkaSource

from ...services import free_port
from ...services.kafka import MECHANISMS, USERS, Kafka, certificate
from ...waiting import until
from ..sinks.playing import Engine

PARTS = {
    "source": KafkaSource,
    "sink": KafkaSink,
    "committed": lambda *at, settings: KafkaSink(*at, level="committed", settings=settings),
}
WRONG_PASSWORD = "wrong-secret"
_numbers = itertools.count()


@pytest.fixture
def topic(kafka: Kafka) -> str:
    return kafka.create(f"guarded-{next(_numbers)}")


@pytest.fixture(params=PARTS)
def part(request: pytest.FixtureRequest) -> Callable[..., Any]:
    made: Callable[..., Any] = PARTS[request.param]
    return made


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("level", ["at_least_once", "committed"])
def test_one_with_just_the_rights_writes_and_reads(
    kafka: Kafka, topic: str, level: str, mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sink of level committed had to create its topic of markers, though it said `must be there`.

    And it waited for a right to a group, of which it only uses the name, until its patience was over.
    """
    for name in (topic, kafka.create(f"{topic}-checkpoints", cleanup_policy="compact")):
        kafka.allow("limited", name, AclOperation.READ)
        kafka.allow("limited", name, AclOperation.WRITE)
    kafka.allow("limited", "penstock-", AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID)
    monkeypatch.setenv("KAFKA_USER", "limited")
    monkeypatch.setenv("KAFKA_CA", str(kafka.ca))
    (tmp_path / "hush").write_text(USERS["limited"] + "\n")
    settings = kafka.login("${env:KAFKA_USER}", f"${{file:{tmp_path}/hush}}", mechanism)
    settings["ssl.ca.location"] = "${env:KAFKA_CA}"
    sink = KafkaSink(kafka.sasl_address, topic, level=level, settings=settings)
    sink.check()
    engine = Engine(lambda: sink, tmp_path / "s", topic)
    attempt = engine.start(pool=1)
    engine.complete(attempt)
    attempt.close()
    source = KafkaSource(kafka.sasl_address, topic, settings=settings)
    source.check()
    found: list[Any] = []
    with closing(source.open(Slot("run", "source", 0, 1, 0.0), None)) as reader:
        until(lambda: found.extend(reader.poll(100, 0.1)) or len(found) >= engine.cursor)
    assert sorted(one.event["n"] for one in found) == list(range(engine.cursor))


def refused(part: Any, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> str:
    """What it says before the run, once, and without a password."""
    with pytest.raises(InputError) as caught:
        part.check()
    said = str(caught.value)
    assert not caplog.records
    for secret in (*USERS.values(), WRONG_PASSWORD):
        assert secret not in f"{said} {part!r} {capfd.readouterr()}"
    return said


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_told(
    kafka: Kafka, topic: str, part: Callable[..., Any], mechanism: str, capfd: Any, caplog: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("HUSH", WRONG_PASSWORD)
    settings = kafka.login("reader", "${env:HUSH}", mechanism)
    said = refused(part(kafka.sasl_address, topic, settings=settings), capfd, caplog)
    assert f"'{topic}': sasl_ssl://{kafka.sasl_address}" in said
    assert "SASL authentication error: Authentication failed" in said


def test_a_certificate_of_another_authority_is_told(
    kafka: Kafka, topic: str, part: Callable[..., Any], capfd: Any, caplog: Any, tmp_path: Path
) -> None:
    settings = kafka.login("reader", USERS["reader"])
    settings["ssl.ca.location"] = str(certificate(tmp_path, "other"))
    said = refused(part(kafka.sasl_address, topic, settings=settings), capfd, caplog)
    assert "broker certificate could not be verified, verify that ssl.ca.location is correctly configured" in said


def test_an_authority_that_is_not_there_is_told(
    kafka: Kafka, topic: str, part: Callable[..., Any], capfd: Any, caplog: Any
) -> None:
    """Only librdkafka's own words were told: `ssl.ca.location failed: error:05880020: … BIO lib`."""
    settings = kafka.login("reader", USERS["reader"]) | {"ssl.ca.location": "/nowhere/ca.pem"}
    said = refused(part(kafka.sasl_address, topic, settings=settings), capfd, caplog)
    assert said.endswith(f"'{topic}': setting ssl.ca.location: there is no file '/nowhere/ca.pem'")


@pytest.mark.parametrize(("name", "has", "lacks"), [("source", "WRITE", "read"), ("sink", "READ", "write")])
def test_a_right_that_is_missing_is_told(
    kafka: Kafka, topic: str, name: str, has: str, lacks: str, capfd: Any, caplog: Any
) -> None:
    for user in ("stranger", "limited"):  # the first may not even see it
        one = PARTS[name](kafka.sasl_address, topic, settings=kafka.login(user, USERS[user]))
        assert refused(one, capfd, caplog) == f"kafka {name} '{topic}': topic '{topic}': no right to {lacks} it"
        kafka.allow("limited", topic, AclOperation[has])


def test_a_topic_of_a_pattern_that_may_not_be_read_is_told(kafka: Kafka, topic: str, capfd: Any, caplog: Any) -> None:
    """A slot found that out, after all had started."""
    kafka.allow("limited", topic, AclOperation.WRITE)
    source = KafkaSource(kafka.sasl_address, f"^{topic}$", settings=kafka.login("limited", USERS["limited"]))
    assert refused(source, capfd, caplog).endswith(f": topic '{topic}': no right to read it")


def test_a_right_to_transactions_that_is_missing_is_told(
    kafka: Kafka, topic: str, capfd: Any, monkeypatch: Any
) -> None:
    """The first to need it was the recovery of sinks, after Spark had started."""
    for name in (topic, kafka.create(f"{topic}-checkpoints", cleanup_policy="compact")):
        for right in (AclOperation.READ, AclOperation.WRITE):
            kafka.allow("stranger", name, right)
    sink = PARTS["committed"](kafka.sasl_address, topic, settings=kafka.login("stranger", USERS["stranger"]))
    with pytest.raises(InputError, match=f"^kafka sink '{topic}': no right to write with transactional ids penstock-…"):
        sink.check()
    assert USERS["stranger"] not in str(capfd.readouterr())


def test_a_topic_that_is_not_there_is_told(kafka: Kafka, part: Callable[..., Any], capfd: Any, caplog: Any) -> None:
    one = part(kafka.sasl_address, "nothing", settings=kafka.login("reader", USERS["reader"]))
    assert refused(one, capfd, caplog).endswith("'nothing': topic 'nothing': the cluster has no such topic")


def test_a_broker_that_is_not_there_is_told(
    kafka: Kafka, part: Callable[..., Any], capfd: Any, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.common.kafka.CHECK_S", 1.0)
    address = f"127.0.0.1:{free_port()}"
    said = refused(part(address, "clicks", settings=kafka.login("reader", USERS["reader"])), capfd, caplog)
    assert f"'clicks': no broker answers at {address} within 1 s; " in said
