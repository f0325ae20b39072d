"""One history at the sink, whatever happens: replicas change, workers are killed, then the driver, then the broker.

    python benchmarks/history.py                        # the database sink (SQLite), all of it
    python benchmarks/history.py --sink kafka           # from topic to topic, on a broker of its own
    python benchmarks/history.py --events 6000 --worker-kills 2 --driver-kills 1

Real DNS queries are counted by name and by domain, each result with both counts. At the end the sequence of every key
must be 1, 2, …, n, with no gap and no repetition, n being how often it came. One worker is killed in the last second.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import psutil
import sqlalchemy as sql
import typer
from history_scenarios import parse, queries
from rich.console import Console

SCENARIOS = Path(__file__).with_name("history_scenarios.py")
DAEMON = "penstock.engine.worker.daemon"
LIMIT_S = 900.0


class Driver:
    """The driver's process, what it has said, and how it can be hurt."""

    def __init__(self, arguments: list[str], log: Path) -> None:
        self._log, self._from = log, log.stat().st_size if log.exists() else 0
        with log.open("ab") as out:
            command = [sys.executable, str(SCENARIOS), *arguments]
            self.process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)

    def said(self, word: str) -> list[list[str]]:
        """The lines that begin with that word."""
        lines = self._log.read_bytes()[self._from :].decode(errors="replace").splitlines()
        return [line.split() for line in lines if line.startswith(f"{word} ") or line == word]

    @property
    def sent(self) -> int:
        """Events that its sources have sent, as it said last."""
        return int(self.said("sent")[-1][1]) if self.said("sent") else 0

    def kill_worker(self, draw: random.Random) -> bool:
        """Kill one of the processes that were forked from Spark's Python daemon; whether there was one."""
        daemons = []
        for child in psutil.Process(self.process.pid).children(recursive=True):
            try:
                if DAEMON in child.cmdline():
                    daemons.append((child, child.ppid()))
            except psutil.Error:
                continue
        forked = {child.pid for child, _ in daemons}
        workers = [child for child, parent in daemons if parent in forked]
        if workers:
            draw.choice(workers).kill()
        return bool(workers)

    def kill(self) -> None:
        """End it as a crash would, with all that it has started."""
        family = psutil.Process(self.process.pid).children(recursive=True)
        for one in (psutil.Process(self.process.pid), *family):
            try:
                one.kill()
            except psutil.Error:
                continue
        self.process.wait()


def faults(events: Iterable[dict[str, Any]], wanted: list[dict[str, Any]]) -> list[str]:
    """What is wrong with the sequences of the keys; nothing, if it is one history."""
    seen: dict[str, Counter[int]] = {}
    count = 0
    for event in events:
        count += 1
        for kind in ("name", "domain"):
            seen.setdefault(f"{kind} {event[kind]}", Counter())[event[f"of_{kind}"]] += 1
    often = Counter(f"{kind} {event[kind]}" for event in wanted for kind in ("name", "domain"))
    wrong = [] if count == len(wanted) else [f"{count} results instead of {len(wanted)}"]
    for key in sorted(often.keys() | seen.keys()):
        has = seen.get(key, Counter())
        twice = sorted(number for number, times in has.items() if times > 1)
        missing = sorted(set(range(1, often[key] + 1)) - has.keys())
        if twice or missing or len(has) != often[key]:
            wrong.append(f"{key}: {often[key]} in all; twice {twice[:8]}, missing {missing[:8]}")
    return wrong


class Scene:
    """A run that is hurt again and again, on one folder and one destination."""

    def __init__(self, folder: Path, endpoints: tuple[str, str], events: int, rate: float, changes: int) -> None:
        self._arguments = [str(folder / "run"), *endpoints, str(events), f"{rate:g}", str(changes)]
        self._log = folder / "driver.log"
        self.events, self.rate = events, rate
        self.kills = 0
        self._draw = random.Random(11)
        self.driver = self._start()

    def _start(self) -> Driver:
        return Driver([*self._arguments, str(self._draw.randrange(1000))], self._log)

    def until(self, true: Any) -> None:
        """Wait; an end of the driver that nobody asked for ends the scene."""
        deadline = time.monotonic() + LIMIT_S
        while not true():
            if self.driver.process.poll() not in (None, 0) or time.monotonic() > deadline:
                raise SystemExit(f"the driver ended, or took too long:\n{self._log.read_text()[-3000:]}")
            time.sleep(0.05)

    def kill_worker(self) -> None:
        """Kill one, as soon as there is one."""
        self.until(lambda: self.driver.kill_worker(self._draw) or self.driver.process.poll() is not None)
        self.kills += 1

    def kill_driver(self) -> None:
        """Kill it and start another on the same folder."""
        self.driver.kill()
        self.driver = self._start()
        self.until(lambda: self.driver.said("began"))

    def end(self) -> list[str]:
        """Wait for the end; how it said that it was."""
        self.until(lambda: self.driver.process.poll() is not None)
        if not (done := self.driver.said("done")):
            raise SystemExit(f"the driver did not finish:\n{self._log.read_text()[-3000:]}")
        return done[-1]

    @property
    def changes(self) -> int:
        """Of replicas, by all drivers."""
        return self._log.read_text(errors="replace").count("changed\n")


def play(scene: Scene, ends: Database | Topics, kills: tuple[int, int], console: Console) -> list[str]:
    """Hurt the run at even distances, and once in its last second."""
    worker_kills, driver_kills = kills
    scene.until(lambda: scene.driver.said("began"))
    ends.begin()
    epoch_s = float(scene.driver.said("began")[0][1])
    blows = ["worker"] * max(worker_kills - 1, 0) + ["driver"] * driver_kills
    random.Random(5).shuffle(blows)
    for number, blow in enumerate(blows, start=1):
        at_s = epoch_s + number / (len(blows) + 1) * scene.events / scene.rate
        scene.until(lambda at_s=at_s: time.time() >= at_s)
        console.print(f"{time.time() - epoch_s:6.1f} s: kill the {blow}")
        scene.kill_worker() if blow == "worker" else scene.kill_driver()
    if worker_kills:
        last_s = epoch_s + scene.events / scene.rate - 0.5
        scene.until(lambda: time.time() >= last_s)
        console.print(f"{time.time() - epoch_s:6.1f} s: kill a worker in the last second")
        scene.kill_worker()
    ends.end()
    return scene.end()


class Database:
    """A trace in, a table of SQLite out."""

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
        engine = sql.create_engine(self.urls[1])
        with engine.connect() as connection:
            for (event,) in connection.execute(sql.text("SELECT event FROM events")):
                yield msgspec.json.decode(event)
        engine.dispose()


class Topics:
    """Queries into a topic at a steady rate, results from another one, on a broker that is killed half-way."""

    def __init__(self, folder: Path, events: int, rate: float) -> None:
        sys.path.append(str(Path(__file__).parents[1]))
        from tests.services.kafka import Kafka, java

        if java() is None:
            raise SystemExit("there is no Kafka here: scripts/kafka.sh says why")
        (folder / "kafka").mkdir()
        self._kafka, self._folder, self._events, self._rate = Kafka(folder / "kafka"), folder, events, rate
        self._kafka.start()
        for topic in ("queries", "results"):
            self._kafka.create(topic, partitions=3)
        address = self._kafka.address
        self.urls = (f"kafka://{address}/queries?group=history", f"kafka://{address}/results?level=committed")
        self.restarts = 0
        self._producing = threading.Thread(target=self._produce, daemon=True)

    def begin(self) -> None:
        """Begin to produce; half-way the broker is killed and started again."""
        self._producing.start()

    def _produce(self) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._kafka.address, "enable.idempotence": True, "log_level": 0})
        began_s = time.monotonic()
        for number, query in enumerate(queries(self._events)):
            time.sleep(max(0.0, began_s + number / self._rate - time.monotonic()))
            producer.produce("queries", msgspec.json.encode(query), key=query["client"])
            producer.poll(0)
            if number == self._events // 2:
                self._kafka.kill()
                self._kafka.start()
                self.restarts += 1
        producer.flush(120)

    def end(self) -> None:
        """Wait until a reader has as many results as there are queries, and a little longer; then have the run end."""
        self._producing.join(LIMIT_S)
        deadline, seen = time.monotonic() + LIMIT_S, Counter[str]()
        for _ in self._read(lambda: seen.total() >= self._events or time.monotonic() > deadline):
            seen["results"] += 1
        (self._folder / "stop").touch()

    def stored(self) -> Iterator[dict[str, Any]]:
        """All that a reader of the topic sees with read_committed."""
        quiet_s = time.monotonic() + 20
        return self._read(lambda: time.monotonic() > quiet_s)

    def _read(self, enough: Callable[[], bool]) -> Iterator[dict[str, Any]]:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        settings = {"group.id": "reader", "isolation.level": "read_committed", "log_level": 0}
        reader = Consumer({"bootstrap.servers": self._kafka.address, "enable.auto.commit": False, **settings})
        reader.assign([TopicPartition("results", part, OFFSET_BEGINNING) for part in range(3)])
        while not enough():
            for message in reader.consume(500, 0.5):
                if message.error() is None:
                    yield msgspec.json.decode(message.value() or b"null")
        reader.close()

    def close(self) -> None:
        """End the broker."""
        self._kafka.kill()


ENDS = {"database": Database, "kafka": Topics}


def main(
    sink: Annotated[str, typer.Option(help="database or kafka")] = "database",
    events: Annotated[int, typer.Option(help="queries, of real ones in turn")] = 72_000,
    rate: Annotated[float, typer.Option(help="queries a second")] = 400.0,
    worker_kills: int = 10,
    driver_kills: int = 2,
    changes: Annotated[int, typer.Option(help="of replicas, by each driver")] = 20,
) -> None:
    """Run the scene, and say what is wrong with the history at the sink."""
    console = Console()
    if sink not in ENDS:
        raise typer.BadParameter(f"must be {' or '.join(ENDS)}; got {sink!r}", param_hint="--sink")
    with tempfile.TemporaryDirectory(prefix="penstock-history-", ignore_cleanup_errors=True) as name:
        ends = ENDS[sink](Path(name), events, rate)
        scene = Scene(Path(name), ends.urls, events, rate, changes)
        try:
            done = play(scene, ends, (worker_kills, driver_kills), console)
            wrong = faults(ends.stored(), [parse(one) for one in queries(events)])
        finally:
            if scene.driver.process.poll() is None:
                scene.driver.kill()
            ends.close()
        console.print(
            f"{events} events, {scene.changes} changes of replicas; killed: {scene.kills} workers, "
            f"{driver_kills} drivers, {ends.restarts} brokers; checkpoints of the last driver: {done[2]}, "
            f"given up {done[3]}"
        )
        for line in wrong[:20]:
            console.print(line)
        console.print(f"{len(wrong)} faults" if wrong else "one history: every sequence is 1, 2, …, n")
    raise typer.Exit(bool(wrong))


if __name__ == "__main__":
    typer.run(main)
