"""What the scenarios of `kafka_scenarios.py` share: topics, contenders between them, a sender and a listener."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import psutil
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

CHAINS = Path(__file__).with_name("kafka_chains")
OTHERS = Path(__file__).parents[1] / ".bench-venv" / "bin" / "python"
PARTITIONS = 4
PROCESSES = 2
CHECKPOINT_S = "10"


def event(number: int) -> dict[str, Any]:
    """What is sent."""
    return {"n": number, "text": f"event number {number % 1000}", "born": time.time()}


def until(true: Callable[[], bool], within_s: float) -> None:
    """Wait for it."""
    deadline_s = time.monotonic() + within_s
    while not true():
        if time.monotonic() > deadline_s:
            raise SystemExit(f"nothing came out within {within_s:g} s")
        time.sleep(0.05)


class Family:
    """The processes of one contender, and all that they have started."""

    def __init__(self, commands: list[list[str]], log: Path) -> None:
        self._log = log
        here = os.environ | {"PYTHONPATH": os.pathsep.join([str(CHAINS), os.environ.get("PYTHONPATH", "")])}
        with log.open("wb") as out:
            self._started = [psutil.Popen(one, stdout=out, stderr=out, env=here) for one in commands]

    def members(self) -> list[psutil.Process]:
        """All that are alive; who has ended should not have."""
        found = []
        for one in self._started:
            if one.poll() is not None:
                raise SystemExit(f"it ended with {one.returncode}:\n{self._log.read_text()[-3000:]}")
            found += [one, *one.children(recursive=True)]
        return found

    def cpu_s(self) -> float:
        """CPU seconds so far."""
        return sum(_of(one, lambda one: sum(one.cpu_times()[:2])) for one in self.members())

    def memory_mb(self) -> float:
        """Memory of all; pages that several share count once."""
        return sum(_of(one, lambda one: one.memory_full_info().pss) for one in self.members()) / 1e6

    def said(self, word: str) -> list[str]:
        """What it said after that word, line by line."""
        lines = self._log.read_text(errors="replace").splitlines()
        return [line.removeprefix(f"{word} ") for line in lines if line.startswith(f"{word} ")]

    def end(self) -> None:
        """Kill them."""
        family = [member for one in self._started if one.is_running() for member in one.children(recursive=True)]
        for one in (*self._started, *family):
            with suppress(psutil.Error):
                one.kill()
        psutil.wait_procs([*self._started, *family], timeout=30)


def _of(process: psutil.Process, figure: Callable[[Any], float]) -> float:
    try:
        return figure(process)
    except psutil.Error:
        return 0.0


class Stage:
    """An input and an output topic of one's own on a broker, and whoever plays between them."""

    def __init__(self, brokers: str, folder: Path) -> None:
        self.brokers, self.folder = brokers, folder
        self._delivered = 0
        self._admin = AdminClient({"bootstrap.servers": brokers})
        self._name = uuid.uuid4().hex[:8]
        self.source, self.sink = f"{self._name}-in", f"{self._name}-out"
        self._make(self.source, self.sink)

    @contextmanager
    def playing(self, system: str, *options: str, source: str = "") -> Iterator[Family]:
        """A contender at work; ended at the end."""
        topics = (self.brokers, source or self.source, self.sink)
        commands = {"bytewax": self._bytewax, "quix": self._quix, "penstock": self._penstock}[system](topics, options)
        family = Family(commands, self.folder / "log")
        try:
            yield family
        finally:
            family.end()

    def _penstock(self, topics: tuple[str, ...], options: tuple[str, ...]) -> list[list[str]]:
        return [[sys.executable, str(CHAINS / "penstock_chain.py"), *topics, str(self.folder / "run"), *options]]

    def _quix(self, topics: tuple[str, ...], _: tuple[str, ...]) -> list[list[str]]:
        self._make(*(f"{self.sink}-between-{number}" for number in (1, 2, 3)))
        program = [str(OTHERS), str(CHAINS / "quix_chain.py"), *topics]
        return [[*program, str(self.folder / f"state-{number}"), CHECKPOINT_S] for number in range(PROCESSES)]

    def _bytewax(self, topics: tuple[str, ...], _: tuple[str, ...]) -> list[list[str]]:
        recovery = self.folder / "recovery"
        recovery.mkdir()
        subprocess.run([str(OTHERS), "-m", "bytewax.recovery", str(recovery), str(PROCESSES)], check=True)
        addresses = ";".join(f"127.0.0.1:{port}" for port in _ports(PROCESSES))
        program = [str(OTHERS), "-m", "bytewax.run", f"bytewax_chain:flow{topics!r}", "-a", addresses]
        program += ["-r", str(recovery), "-s", CHECKPOINT_S, "-b", "0"]
        return [[*program, "-i", str(number)] for number in range(PROCESSES)]

    def _make(self, *topics: str) -> None:
        new = [NewTopic(one, num_partitions=PARTITIONS, replication_factor=1) for one in topics]
        for one in self._admin.create_topics(new).values():
            one.result(30)

    def delivered(self) -> int:
        """How many results there are, or were when the broker last had time to say so."""
        end: Any = OffsetSpec
        parts = {TopicPartition(self.sink, number): end.latest() for number in range(PARTITIONS)}
        with suppress(KafkaException):  # so soon, the topic's leaders may not be known
            self._delivered = sum(one.result(30).offset for one in self._admin.list_offsets(parts).values())
        return self._delivered

    def fill(self, count: int, **settings: Any) -> Producer:
        """Put so many events into the input topic, evenly over its partitions."""
        own = {"linger.ms": 50, "queue.buffering.max.messages": count}
        producer = Producer({"bootstrap.servers": self.brokers, **own, **settings})
        if settings:
            producer.init_transactions(30)
            producer.begin_transaction()
        for number in range(count):
            producer.produce(self.source, msgspec.json.encode(event(number)), partition=number % PARTITIONS)
        producer.flush()
        return producer

    def fill_hidden(self, count: int) -> Callable[[], None]:
        """Fill it in a transaction: readers see nothing of it until what is returned is called, and then all."""
        return self.fill(count, **{"transactional.id": self._name}).commit_transaction

    def remove(self) -> None:
        """Remove the topics, so that the broker has no more to do for the next contender than for this one."""
        ours = [one for one in self._admin.list_topics(timeout=10).topics if one.startswith(self._name)]
        for one in self._admin.delete_topics(ours).values():
            one.result(30)


def _ports(count: int) -> list[int]:
    """Free ones of loopback."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextmanager
def stage(brokers: str) -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="penstock-kafka-", ignore_cleanup_errors=True) as folder:
        one = Stage(brokers, Path(folder))
        try:
            yield one
        finally:
            one.remove()


class Listener(threading.Thread):
    """Reads the output topic, and notes when each event was born and when it was here."""

    def __init__(self, on: Stage) -> None:
        super().__init__(daemon=True)
        self.heard: list[tuple[float, float]] = []
        self._ended = threading.Event()
        self._consumer = Consumer({"bootstrap.servers": on.brokers, "group.id": on.sink, "enable.auto.commit": False})
        self._consumer.assign([TopicPartition(on.sink, number, 0) for number in range(PARTITIONS)])
        self.start()

    def run(self) -> None:
        """Listen until the end."""
        while not self._ended.is_set():
            first = self._consumer.poll(0.1)
            if first is None:
                continue
            now_s = time.time()
            for record in (first, *self._consumer.consume(1000, 0.0)):
                if record.error() is None:
                    self.heard.append((msgspec.json.decode(record.value() or b"")["born"], now_s))
        self._consumer.close()

    def end(self) -> None:
        """No more of it."""
        self._ended.set()
        self.join()


class Sender(threading.Thread):
    """Sends events at a steady rate, each with the time at which it is sent."""

    def __init__(self, on: Stage, rate: float) -> None:
        super().__init__(daemon=True)
        self.sent = 0
        self._topic, self._rate = on.source, rate
        self._ended = threading.Event()
        self._producer: Any = Producer({"bootstrap.servers": on.brokers, "linger.ms": 0})
        self.start()

    def run(self) -> None:
        """Send until the end; what is due together goes to one partition, so that it leaves together, then to the next.

        With a request for each event, at 2,000 events/s on two cores, they waited for the broker: that was measured.
        """
        begin_s, turn = time.time(), 0
        while not self._ended.wait(0.002):
            due = range(self.sent, int(self._rate * (time.time() - begin_s)))
            turn += bool(due)
            for number in due:
                one = event(number)
                at = {"partition": turn % PARTITIONS, "timestamp": int(1000 * one["born"])}
                self._producer.produce(self._topic, msgspec.json.encode(one), **at)
                self.sent += 1
            self._producer.poll(0)
        self._producer.flush()

    def end(self) -> None:
        """No more of it."""
        self._ended.set()
        self.join()
