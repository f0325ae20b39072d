"""The queue sink: on SQLite here; `tests/e2e/test_queue.py` has it on RabbitMQ."""

from __future__ import annotations

import socket
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import EngineError, InputError
from penstock.sinks import QueueSink, published
from penstock.sinks.amqp import AmqpQueue
from penstock.sinks.amqp_link import link_parameters
from tests.waiting import LONG_S


@dataclass
class Replica:
    """The context of a replica, which counts what it is told was repeated."""

    run: str = "r"
    operator: str = "consumer"
    replica: int = 0
    event_ids: tuple[str, ...] = ()
    again: int = 0

    def repeated(self, count: int) -> None:
        self.again += count


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'queue.db'}"


@pytest.fixture
def no_broker() -> str:
    """A broker's URL at which nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"amqp://user:hush@127.0.0.1:{one.getsockname()[1]}/"


def opened(url: str, context: Replica, queue: str = "counts", **options: Any) -> Any:
    sink = cloudpickle.loads(cloudpickle.dumps(QueueSink(url, queue, **options)))  # as it is shipped
    sink.open(context)
    return closing(sink)


def test_events_lie_in_the_queue_in_order_with_their_ids(url: str) -> None:
    context = Replica()
    with opened(url, context) as sink:
        context.event_ids = ("7",)
        sink.process({"word": "über"})
        context.event_ids = ("8.1", "8.0")
        sink.process_many([{"n": 1}, {"n": 2}])
    found = published(url, "counts")
    assert [(one.run, one.id, one.event) for one in found] == [
        ("r", "7", {"word": "über"}),
        ("r", "8.1", {"n": 1}),
        ("r", "8.0", {"n": 2}),
    ]
    assert [one.position for one in found] == [1, 2, 3]
    assert context.again == 0


def test_a_reader_goes_on_where_it_was(url: str) -> None:
    context = Replica(event_ids=("1", "2", "3"))
    with opened(url, context) as sink:
        sink.process_many(["a", "b", "c"])
        last = published(url, "counts")[1].position
        context.event_ids = ("4",)
        sink.process("d")
        assert [one.event for one in published(url, "counts", after=last)] == ["c", "d"]


def test_a_repeated_event_is_queued_once_and_counted(url: str) -> None:
    context = Replica(event_ids=("1", "2"))
    with opened(url, context) as sink:
        sink.process_many(["a", "b"])
    with opened(url, context) as sink:  # another replica, or the same after a restart
        context.event_ids = ("2", "3", "1", "3")
        sink.process_many(["B", "c", "A", "C"])
    assert [one.id for one in published(url, "counts")] == ["1", "2", "3"]
    assert context.again == 3


def test_runs_and_queues_are_kept_apart(url: str) -> None:
    for context, queue in ((Replica("r1"), "counts"), (Replica("r2"), "counts"), (Replica("r1"), "others")):
        context.event_ids = ("1",)
        with opened(url, context, queue) as sink:
            sink.process("a")
        assert context.again == 0
    assert [(one.run, one.id) for one in published(url, "counts")] == [("r1", "1"), ("r2", "1")]
    assert len(published(url, "others")) == 1


@given(calls=st.lists(st.lists(st.integers(0, 30), max_size=8), max_size=12))
def test_each_id_once_in_the_order_of_its_first_coming(
    calls: list[list[int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    url = f"sqlite:///{tmp_path_factory.mktemp('queue') / 'queue.db'}"
    context = Replica()
    with opened(url, context) as sink:
        for numbers in calls:
            context.event_ids = tuple(map(str, numbers))
            sink.process_many(numbers)
    flat = [number for numbers in calls for number in numbers]
    assert [one.event for one in published(url, "counts")] == list(dict.fromkeys(flat))
    assert context.again == len(flat) - len(set(flat))


def test_service_time_is_waited(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    context = Replica(event_ids=("1", "2"))
    with opened(url, context, service_ms=2.0) as sink:
        sink.process_many(["a", "b"])
    assert slept == [0.004]


def test_a_queue_that_is_not_there_yet_is_empty(url: str) -> None:
    assert published(url, "counts") == []


def test_a_sink_is_opened_first(url: str) -> None:
    with pytest.raises(RuntimeError, match="opened before"):
        QueueSink(url).process("a")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://host/", "queue sink: must be amqp, amqps or sqlite; got 'http'"),
        ("postgresql://host/db", "queue sink: must be amqp, amqps or sqlite; got 'postgresql'"),
        ("queue.db", "queue sink: must be amqp, amqps or sqlite; got 'queue.db'"),
        ("sqlite://", "queue sink: sqlite needs a file, as in sqlite:///queue.db; got 'sqlite://'"),
        ("sqlite:///:memory:", "sqlite needs a file"),
    ],
)
def test_urls_that_cannot_be(url: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        QueueSink(url)


def test_a_port_that_is_none() -> None:
    with pytest.raises(InputError, match="queue sink: must be as amqp://user:password@host:5672/"):
        QueueSink("amqp://127.0.0.1:port/")
    with pytest.raises(InputError) as caught:
        QueueSink("amqp://user:hu/sh@127.0.0.1/")
    assert "hu" not in str(caught.value)


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"queue 'events' at sqlite:.*: cannot be used; unable to open database file"):
        QueueSink(f"sqlite:///{tmp_path / 'none' / 'queue.db'}").check()


def test_without_pika_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pika", None)
    with pytest.raises(
        InputError, match=r"amqp needs the package pika; to install it: pip install 'penstock\[queue\]'"
    ):
        QueueSink("amqp://127.0.0.1/")


def test_a_broker_that_is_not_there_is_said_without_the_password(no_broker: str) -> None:
    with pytest.raises(InputError, match=r"queue 'counts' at amqp://127.0.0.1:\d+/: cannot be reached; .*refused") as e:
        QueueSink(no_broker, "counts").check()
    assert "hush" not in str(e.value)


def test_a_password_comes_from_the_environment_or_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It had to stand on the command line, where everyone on the machine can read it."""
    (tmp_path / "password").write_text("p/w@1\n")
    monkeypatch.setenv("RABBIT", "p/w@1")
    for url in ("amqp://ann:${env:RABBIT}@127.0.0.1:1/", f"amqp://ann:${{file:{tmp_path}/password}}@127.0.0.1:1/"):
        found = link_parameters(url)
        assert (found.credentials.username, found.credentials.password, found.host) == ("ann", "p/w@1", "127.0.0.1")
        assert str(AmqpQueue(url, "hot")) == "queue 'hot' at amqp://127.0.0.1:1/"
    with pytest.raises(InputError, match="queue sink: the environment has no variable 'NOT_THERE'"):
        QueueSink("amqp://ann:${env:NOT_THERE}@127.0.0.1/")


def test_a_broker_that_does_not_come_back_is_given_up(no_broker: str) -> None:
    """With a pause that doubles between the tries."""
    started_s = time.monotonic()
    with pytest.raises(EngineError, match=r"away for 0.5 s; .*refused"):
        AmqpQueue(no_broker, "counts", patience_s=0.5).open("r")
    assert 0.5 <= time.monotonic() - started_s < LONG_S
