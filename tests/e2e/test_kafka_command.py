"""`penstock run --source kafka://… --sink kafka://…`, as a user starts it: each record once, also after a resume."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from confluent_kafka import Consumer, Producer

from tests.services.kafka import Kafka
from tests.waiting import LONG_S, until

APP = """
from penstock import Topology

def shout(event):
    return {"word": event["word"].upper()}

topology = Topology("shout", pool=2)
topology.operator("loud", shout, inputs=topology.source("words"))
"""
PARTITIONS = 2


def put(kafka: Kafka, topic: str, words: list[str]) -> None:
    producer = Producer({"bootstrap.servers": kafka.address})
    for word in words:
        producer.produce(topic, msgspec.json.encode({"word": word}), key=word)
    assert producer.flush(LONG_S) == 0


class Committed:
    """A reader that sees only what is committed."""

    def __init__(self, kafka: Kafka, topic: str) -> None:
        settings = {"group.id": topic, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
        self._consumer: Any = Consumer({"bootstrap.servers": kafka.address, **settings})
        self._consumer.subscribe([topic])
        self.found: list[tuple[str, str]] = []  # id and word

    def close(self) -> None:
        self._consumer.close()

    def read(self) -> int:
        """All that is there by now; how many in all."""
        for record in self._consumer.consume(1000, 1.0):
            assert record.error() is None, record.error()
            headers = dict(record.headers())
            self.found.append((headers["penstock-id"].decode(), json.loads(record.value())["word"]))
        return len(self.found)


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "penstock.cli", "run", "mine:topology", "--checkpoint-every", "1", *arguments]
    with (folder / "output").open("wb") as output:
        return subprocess.Popen(
            command,
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )


def play(reader: Committed, wanted: int, folder: Path, *arguments: str) -> None:
    """A run until so many results are there, ended by Ctrl-C."""
    run = start(folder, *arguments, "--json", "run.json")
    try:
        until(lambda: reader.read() >= wanted or run.poll() is not None, (folder / "output").read_text)
        run.send_signal(signal.SIGINT)
        assert run.wait(LONG_S) == 0, (folder / "output").read_text()
    finally:
        run.kill()
        run.wait()


def test_from_topic_to_topic_and_carried_on(kafka: Kafka, tmp_path: Path) -> None:
    """What came while no run was there is read by the next; what was stopped in order is not sent again."""
    (tmp_path / "mine.py").write_text(APP)
    source, results = kafka.create("command-in", PARTITIONS), kafka.create("command-out", PARTITIONS)
    ends = ["--source", f"kafka://{kafka.address}/{source}?begin=earliest"]
    ends += ["--sink", f"kafka://{kafka.address}/{results}?level=committed"]
    words, later = [f"a{n}" for n in range(300)], [f"b{n}" for n in range(200)]
    put(kafka, source, words)
    with closing(Committed(kafka, results)) as reader:
        play(reader, len(words), tmp_path, *ends)
        put(kafka, source, later)
        (folder,) = (tmp_path / "out").iterdir()
        play(reader, len(words + later), tmp_path, *ends, "--resume", str(folder))
        reader.read()
    assert sorted(word for _, word in reader.found) == sorted(word.upper() for word in words + later)
    assert len({event_id for event_id, _ in reader.found}) == len(reader.found)
    assert json.loads((tmp_path / "run.json").read_text())["events"] == len(later)
