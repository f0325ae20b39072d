"""The Kafka sink, committed: a reader with `read_committed` sees one history, whatever happens."""

from __future__ import annotations

import json
import threading
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from penstock.common.kafka import Topic
from penstock.errors import EngineError, InputError
from penstock.sinks import KafkaSink, kafka_publisher
from penstock.sinks import kafka as at_work
from penstock.sinks.kafka_publisher import Lost, Markers, Publisher
from tests.waiting import LONG_S

from ...services.kafka import Kafka
from .kafka_topics import seen, told
from .playing import STEPS, Attempt, Engine, Replica, dies

FOR_ALL = ("decided", "publishing", "marking", "published")  # steps at which one committer differs
WITHIN = {
    "publishing": (Publisher, "_produce", Publisher._produce),
    "marking": (Publisher, "_mark", lambda *_: None),
    "published": (at_work.staging, "remove", lambda *_: None),
}


@pytest.fixture(params=[None, 1], ids=["by part", "whole"])
def engine(request: pytest.FixtureRequest, kafka: Kafka, topic: str, tmp_path: Path) -> Any:
    def make() -> KafkaSink:
        return KafkaSink(kafka.address, topic, level="committed", committer=request.param, key="n")

    return Engine(make, tmp_path / "sink", run=topic)


def goes_on(engine: Engine, old: Attempt) -> None:
    """A straggler does all that it could still do, and takes for its own what the next attempt commits."""
    old.contexts[0].event_ids = ("late",)
    old.sinks[0].process_many([{"n": -1}])
    with suppress(EngineError):  # what it had staged has been removed
        old.sinks[0].prepare(engine.checkpoint + 1)
    for sink, context in zip(old.sinks, old.contexts, strict=True):
        context.parts = engine.parts
        with suppress(EngineError):
            sink.commit(engine.checkpoint)


@pytest.mark.parametrize("fenced_at", ["produce", "commit_transaction"])
def test_a_fenced_producer_is_let_go_of(fenced_at: str) -> None:
    """On a busy machine librdkafka learnt of the fence early: then produce and flush raised, too, and the sink died."""

    def refuse(*_: Any, **__: Any) -> None:
        raise KafkaException(KafkaError(KafkaError._FENCED, "fenced by a newer instance", True))

    calls = ("purge", "poll", "produce", "commit_transaction")
    producer = SimpleNamespace(**dict.fromkeys(calls, lambda *_, **__: None) | {fenced_at: refuse, "flush": refuse})
    publisher = Publisher(Markers("sink", {}, "out-checkpoints", ("run", "store")), "out", {}, "part", attempt=1)
    publisher._producer = producer
    with pytest.raises(Lost, match="fenced by a newer instance"):
        publisher._mark({0: 7})
    assert publisher._producer is None


@pytest.mark.parametrize(
    ("engine", "step"),
    [*((None, step) for step in STEPS), *((1, step) for step in STEPS if step in FOR_ALL)],
    indirect=["engine"],
)
def test_a_death_at_any_step_leaves_one_history(
    engine: Engine, kafka: Kafka, topic: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where another number of replicas goes on, and the dead of the first attempt walk on, at any step of it."""
    first = engine.start(pool=2)
    engine.complete(first)
    dies(engine, first, step, WITHIN, monkeypatch)
    second = engine.start(pool=1)
    goes_on(engine, first)
    engine.feed(second, 4)
    parts = engine.prepare(second)
    engine.decide(second, parts)
    goes_on(engine, first)
    engine.commit(second)
    second.checkpoint += 1
    engine.complete(second)
    for attempt in (first, second):
        attempt.close()
    found = told(seen(kafka, topic))
    assert found == sorted(engine.history, key=lambda one: one[0])
    assert sorted(event["n"] for _, event in found) == list(range(engine.cursor))


def test_checkpoints_given_up_prepared_ahead_and_other_pools(engine: Engine, kafka: Kafka, topic: str) -> None:
    attempt = engine.start(pool=3)
    engine.give_up(attempt, most=1)
    engine.complete(attempt)
    engine.feed(attempt, 6)
    engine.decide(attempt, engine.prepare(attempt))
    attempt.checkpoint += 1
    engine.feed(attempt, 6)
    parts = engine.prepare(attempt)  # before the last one is told
    engine.commit(attempt)
    engine.decide(attempt, parts)
    attempt.close()
    engine.complete(again := engine.start(pool=4))
    again.close()
    assert told(seen(kafka, topic)) == sorted(engine.history, key=lambda one: one[0])
    assert not list((again.contexts[0].folder).glob("*"))


def test_nothing_is_seen_before_it_is_committed_and_a_key_keeps_its_order(
    engine: Engine, kafka: Kafka, topic: str
) -> None:
    attempt = engine.start(pool=1)
    engine.feed(attempt, 6)
    parts = engine.prepare(attempt)
    assert seen(kafka, topic) == []
    engine.decide(attempt, parts)
    engine.commit(attempt)
    attempt.checkpoint += 1
    for _ in range(2):
        attempt.cursor = 0
        engine.complete(attempt)
    attempt.close()
    by_key: dict[bytes, list[str]] = {}
    for one in seen(kafka, topic):
        by_key.setdefault(one.key(), []).append(one.value())
    assert {key: len(several) for key, several in by_key.items()} == {str(n).encode(): 3 for n in range(6)}


def test_the_parts_of_one_committer_are_seen_together(kafka: Kafka, topic: str, tmp_path: Path) -> None:
    engine = Engine(lambda: KafkaSink(kafka.address, topic, level="committed", committer=1), tmp_path / "s", run=topic)
    attempt = engine.start(pool=3)
    engine.feed(attempt, 6)
    engine.decide(attempt, engine.prepare(attempt))
    engine.commit(attempt, 1)  # the first of them publishes for all
    assert len(seen(kafka, topic)) == 6
    engine.commit(attempt)
    attempt.close()
    assert len(seen(kafka, topic)) == 6


def test_another_committer_goes_on_where_the_first_was(kafka: Kafka, topic: str, tmp_path: Path) -> None:
    """From parts to one committer and back, with a decision that was never published in between."""
    committer: int | None = None
    engine = Engine(
        lambda: KafkaSink(kafka.address, topic, level="committed", committer=committer), tmp_path / "s", run=topic
    )
    for number in (None, 1, None):
        committer = number
        attempt = engine.start()
        engine.complete(attempt)
        engine.feed(attempt, 4)
        engine.decide(attempt, engine.prepare(attempt))
        attempt.close()
    engine.start().close()
    assert told(seen(kafka, topic)) == sorted(engine.history, key=lambda one: one[0])


def test_a_straggler_is_told_so_and_one_that_was_only_fenced_goes_on(kafka: Kafka, topic: str, tmp_path: Path) -> None:
    engine = Engine(lambda: KafkaSink(kafka.address, topic, level="committed"), tmp_path / "s", run=topic)
    attempt = engine.start(pool=1)
    engine.complete(attempt)
    thief = KafkaSink(kafka.address, topic, level="committed")
    thief.open(attempt.contexts[0])
    thief._publisher.fence()  # type: ignore[union-attr]
    engine.complete(attempt)
    thief.close()
    engine.start(pool=1).close()
    goes_on(engine, attempt)
    with pytest.raises(EngineError, match=f"^penstock-{topic}-end-0: must be published by attempt 2 or a later one"):
        attempt.sinks[0].commit(9)
    attempt.close()
    assert told(seen(kafka, topic)) == sorted(engine.history, key=lambda one: one[0])


def test_markers_that_cannot_be_read_at_first_are_read_before_anything_is_published(
    kafka: Kafka, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its id is taken away just after it has published, and no broker answers when it wants to know how far it was."""
    engine = Engine(lambda: KafkaSink(kafka.address, topic, level="committed"), tmp_path / "s", run=topic)
    attempt = engine.start(pool=1)
    engine.complete(attempt)
    dies(engine, attempt, "published", WITHIN, monkeypatch)
    attempt.sinks[0]._publisher.close()
    read, lost = Markers.read, []

    def fails_first(self: Markers) -> Any:
        if not lost:
            lost.append(1)
            raise Lost("away")
        return read(self)

    monkeypatch.setattr(Markers, "read", fails_first)
    engine.commit(attempt)
    attempt.close()
    assert lost
    assert told(seen(kafka, topic)) == sorted(engine.history, key=lambda one: one[0])


@pytest.mark.parametrize(
    ("code", "raised"), [("REQUEST_TIMED_OUT", Lost), ("CLUSTER_AUTHORIZATION_FAILED", InputError)]
)
def test_a_busy_broker_that_does_not_make_the_topic_of_markers_in_time_is_asked_again(
    code: str, raised: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker under load answered that it was too late, and a recovery took that for a refusal."""
    answer: Future[None] = Future()
    answer.set_exception(KafkaException(KafkaError(getattr(KafkaError, code))))
    monkeypatch.setattr("confluent_kafka.admin.AdminClient", lambda _: SimpleNamespace(create_topics=lambda _: made))
    monkeypatch.setattr(Markers, "_described", lambda *_: Topic(error="UNKNOWN_TOPIC_OR_PART"))
    made = {"out-checkpoints": answer}
    with pytest.raises(raised, match=code):
        Markers("kafka sink 'out'", {"bootstrap.servers": "none"}, "out-checkpoints", ("r", "end")).make()


def test_what_a_dead_process_has_in_its_transaction_is_taken_back(kafka: Kafka, topic: str, tmp_path: Path) -> None:
    """It is still open when the next attempt begins, as if the process hung, and then goes on and commits."""
    engine = Engine(lambda: KafkaSink(kafka.address, topic, level="committed"), tmp_path / "s", run=topic)
    attempt = engine.start(pool=1)
    engine.complete(attempt)
    engine.feed(attempt, 3)
    engine.decide(attempt, engine.prepare(attempt))
    reached, go_on, ended = threading.Event(), threading.Event(), []
    publisher = attempt.sinks[0]._publisher
    mark = publisher._mark

    def hang(marks: Any) -> None:
        publisher._producer.flush()
        reached.set()
        go_on.wait(LONG_S)
        mark(marks)

    publisher._mark = hang

    def commit() -> None:
        try:
            engine.commit(attempt)
        except EngineError as error:
            ended.append(error)

    thread = threading.Thread(target=commit)
    thread.start()
    assert reached.wait(LONG_S)
    engine.complete(again := engine.start(pool=1))
    publisher._mark = mark
    go_on.set()
    thread.join(LONG_S)
    assert len(ended) == 1
    attempt.close()
    again.close()
    assert told(seen(kafka, topic)) == sorted(engine.history, key=lambda one: one[0])


def test_a_transaction_that_was_left_open_keeps_no_driver_from_starting(kafka: Kafka, topic: str) -> None:
    """A worker was killed while it published: the new driver looked at the markers, behind which it had left one open.

    Nobody reads past that for two minutes, unless its id is fenced, which comes later: the driver gave up before.
    """
    KafkaSink(kafka.address, topic, level="committed").check()
    left = Producer({"bootstrap.servers": kafka.address, "transactional.id": f"left-{topic}", "log_level": 0})
    left.init_transactions(LONG_S)
    left.begin_transaction()
    left.produce(f"{topic}-checkpoints", b"7", b'["run", "end", 0]')
    left.flush(LONG_S)
    try:
        KafkaSink(kafka.address, topic, level="committed").check()
    finally:
        left.abort_transaction(LONG_S)


def test_a_transaction_that_was_left_open_does_not_hold_the_next_attempt_back(
    kafka: Kafka, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica was killed when its marker was out: the next attempt read the markers before it fenced that id.

    It waited for two minutes, until Kafka had timed the transaction out.
    """
    monkeypatch.setattr(kafka_publisher, "ANSWER_S", 15.0)
    engine = Engine(
        lambda: KafkaSink(kafka.address, topic, level="committed", patience_s=10.0), tmp_path / "s", run=topic
    )
    attempt = engine.start(pool=1)
    engine.complete(attempt)
    engine.feed(attempt, 3)
    engine.decide(attempt, engine.prepare(attempt))
    attempt.close()
    left = Producer({"bootstrap.servers": kafka.address, "transactional.id": f"penstock-{topic}-end-0", "log_level": 0})
    left.init_transactions(LONG_S)
    left.begin_transaction()
    left.produce(f"{topic}-checkpoints", b"2", json.dumps([topic, "end", 0]).encode())
    left.flush(LONG_S)
    engine.start(pool=1).close()
    assert told(seen(kafka, topic)) == sorted(engine.history, key=lambda one: one[0])


def test_a_broker_that_dies_while_a_part_is_published_is_waited_for(
    kafka: Kafka, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both levels: it is killed when half of a transaction is out, and comes back."""
    engine = Engine(lambda: KafkaSink(kafka.address, topic, level="committed"), tmp_path / "s", run=topic)
    attempt = engine.start(pool=1)
    engine.complete(attempt)
    direct = KafkaSink(kafka.address, topic + "-direct")
    kafka.create(topic + "-direct", partitions=2)
    direct.open(about := Replica(event_ids=("1",)))
    direct.process("before")
    engine.feed(attempt, 300)
    engine.decide(attempt, engine.prepare(attempt))
    produce, deaths = Publisher._produce, []

    def killed(self: Publisher, messages: Any) -> None:
        produce(self, messages)
        if not deaths:
            self._producer.flush()
            kafka.kill()
            deaths.append(threading.Timer(1.0, kafka.start))
            deaths[0].start()

    monkeypatch.setattr(Publisher, "_produce", killed)
    thread = threading.Thread(target=engine.commit, args=(attempt,))
    thread.start()
    about.event_ids = ("2",)
    direct.process("meanwhile")
    thread.join(LONG_S)
    deaths[0].join(LONG_S)
    direct.prepare(1)
    attempt.close()
    direct.close()
    assert told(seen(kafka, topic)) == sorted(engine.history, key=lambda one: one[0])
    assert {event for _, event in told(seen(kafka, topic + "-direct"))} == {"before", "meanwhile"}
