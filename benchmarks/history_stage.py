"""What the benchmarks of faults stand on: a driver in a process of its own, and the ends of its stream."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psutil
import sqlalchemy as sql

DAEMONS = ("penstock.engine.worker.daemon", "pyspark.daemon")  # ours and Spark's own
LIMIT_S = 900.0


class Driver:
    """The driver's process, what it has said, and how it can be hurt."""

    def __init__(self, command: Sequence[str], log: Path, environment: dict[str, str] | None = None) -> None:
        self._log, self._from = log, log.stat().st_size if log.exists() else 0
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environment,
            )

    def said(self, word: str) -> list[list[str]]:
        """The lines that begin with that word."""
        lines = self._log.read_bytes()[self._from :].decode(errors="replace").splitlines()
        return [line.split() for line in lines if line.startswith(f"{word} ") or line == word]

    def tell(self, line: str) -> bool:
        """Send it a line; whether it could be sent."""
        try:
            assert self.process.stdin is not None
            self.process.stdin.write(f"{line}\n".encode())
            self.process.stdin.flush()
        except (OSError, ValueError):  # it has ended
            return False
        return True

    @property
    def sent(self) -> int:
        """Events that its sources have sent, as it said last."""
        return int(self.said("sent")[-1][1]) if self.said("sent") else 0

    def family(self) -> list[psutil.Process]:
        """All that it has started and that is still below it."""
        try:
            return list(psutil.Process(self.process.pid).children(recursive=True))
        except psutil.Error:
            return []

    def kill_worker(self, draw: random.Random) -> bool:
        """Kill one of the processes that were forked from Spark's Python daemon; whether there was one."""
        workers = python_workers(self.family())[1]
        if workers:
            draw.choice(workers).kill()
        return bool(workers)

    def kill_alone(self) -> None:
        """End its process as a crash would; what it has started is left to notice that."""
        self.process.kill()
        self.process.wait()

    def kill(self) -> None:
        """End it as a crash would, with all that it has started."""
        for one in (*self.family(), self.process):
            try:
                one.kill()
            except psutil.Error:
                continue
        self.process.wait()


def python_workers(family: Sequence[psutil.Process]) -> tuple[list[psutil.Process], list[psutil.Process]]:
    """Of these processes Spark's Python daemons, and those that were forked from them."""
    found = []
    for one in family:
        try:
            if any(name in one.cmdline() for name in DAEMONS):
                found.append((one, one.ppid()))
        except psutil.Error:
            continue
    pids = {one.pid for one, _ in found}
    return [one for one, parent in found if parent not in pids], [one for one, parent in found if parent in pids]


class Database:
    """Events of the driver's own in, a table of SQLite out."""

    def __init__(self, folder: Path, *_: object) -> None:
        self.urls = ("trace", f"sqlite:///{folder}/history.db")
        self.restarts = 0

    def begin(self) -> None:
        """The trace begins with the run."""

    def end(self) -> None:
        """The trace ends by itself."""

    def close(self) -> None:
        """Nothing is open."""

    def stored(self) -> Iterator[dict[str, Any]]:
        """What the table holds."""
        return rows_of(self.urls[1], "events")


def rows_of(url: str, table: str) -> Iterator[dict[str, Any]]:
    """The events that a table of a DatabaseSink holds."""
    engine = sql.create_engine(url)
    try:
        with engine.connect() as connection:
            for (event,) in connection.execute(sql.text(f"SELECT event FROM {table}")):
                yield msgspec.json.decode(event)
    finally:
        engine.dispose()


class Topics:
    """Events into a topic at a steady rate, results from another one, on a broker that can be killed half-way."""

    def __init__(self, folder: Path, payloads: Sequence[Any], rate: float, *, key: str, kill: bool = True) -> None:
        sys.path.append(str(Path(__file__).parents[1]))
        from tests.services.kafka import Kafka, java

        if java() is None:
            raise SystemExit("there is no Kafka here: scripts/kafka.sh says why")
        (folder / "kafka").mkdir()
        self.kafka, self._payloads, self._rate = Kafka(folder / "kafka"), payloads, rate
        self._stop, self._key, self._kill = folder / "stop", key, kill
        self.kafka.start()
        for topic in ("queries", "results"):
            self.kafka.create(topic, partitions=3)
        address = self.kafka.address
        self.urls = (f"kafka://{address}/queries?group=history", f"kafka://{address}/results?level=committed")
        self.restarts = 0
        self._producing = threading.Thread(target=self._produce, daemon=True)

    def begin(self) -> None:
        """Begin to produce; half-way the broker is killed and started again, if it is to be."""
        self._producing.start()

    def _produce(self) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.kafka.address, "enable.idempotence": True, "log_level": 0})
        began_s = time.monotonic()
        for number, event in enumerate(self._payloads):
            time.sleep(max(0.0, began_s + number / self._rate - time.monotonic()))
            producer.produce("queries", msgspec.json.encode(event), key=event[self._key])
            producer.poll(0)
            if self._kill and number == len(self._payloads) // 2:
                self.kafka.kill()
                self.kafka.start()
                self.restarts += 1
        producer.flush(120)

    def await_produced(self) -> None:
        """Wait until all events are in the topic."""
        self._producing.join(LIMIT_S)

    def end(self) -> None:
        """Wait until a reader has as many results as there are events, and a little longer; then have the run end."""
        self.await_produced()
        deadline, seen = time.monotonic() + LIMIT_S, Counter[str]()
        for _ in self.read("results", lambda: seen.total() >= len(self._payloads) or time.monotonic() > deadline):
            seen["results"] += 1
        self._stop.touch()

    def stored(self) -> Iterator[dict[str, Any]]:
        """All that a reader of the topic sees with read_committed."""
        quiet_s = time.monotonic() + 20
        return self.read("results", lambda: time.monotonic() > quiet_s)

    def read_all(self, topic: str, quiet_s: float) -> Iterator[dict[str, Any]]:
        """What a reader of a topic sees, from its beginning until nothing has come for so long."""
        last_s = [time.monotonic() + 3 * quiet_s]
        for event in self.read(topic, lambda: time.monotonic() > last_s[0]):
            last_s[0] = max(last_s[0], time.monotonic() + quiet_s)
            yield event

    def ends(self, topic: str) -> tuple[int, ...]:
        """Where the partitions of a topic end."""
        from confluent_kafka import Consumer, TopicPartition

        looking = Consumer({"bootstrap.servers": self.kafka.address, "group.id": "looking", "log_level": 0})
        try:
            parts = [TopicPartition(topic, part) for part in range(3)]
            return tuple(looking.get_watermark_offsets(one, timeout=2.0)[1] for one in parts)
        finally:
            looking.close()

    def read(self, topic: str, enough: Callable[[], bool]) -> Iterator[dict[str, Any]]:
        """What a reader of a topic sees, from its beginning until there is enough."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        settings = {"group.id": "reader", "isolation.level": "read_committed", "log_level": 0}
        reader = Consumer({"bootstrap.servers": self.kafka.address, "enable.auto.commit": False, **settings})
        reader.assign([TopicPartition(topic, part, OFFSET_BEGINNING) for part in range(3)])
        while not enough():
            for message in reader.consume(500, 0.5):
                if message.error() is None:
                    yield msgspec.json.decode(message.value() or b"null")
        reader.close()

    def close(self) -> None:
        """End the broker."""
        self.kafka.kill()
