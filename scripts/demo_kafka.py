"""`make demo-kafka`: real DNS queries through a topic, the DNS application under psps, its results in another topic.

    python scripts/demo_kafka.py --seconds 60

Starts a Kafka broker of its own on loopback, in a folder that is gone afterwards; plays a real trace into a topic, with
the queries that were asked in it; runs `penstock run dns` from topic to topic, which begins behind by as long as Spark
takes to start, and catches up; reads the results as a consumer with `read_committed` does, each once. Ends all that it
has started, also on Ctrl-C.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
from confluent_kafka import Consumer, KafkaError, Producer

from penstock import Slot, Trace, load_trace
from penstock.apps.deployment import Deployment
from penstock.workload import data_file, played

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))
from tests.services.kafka import Kafka, java  # noqa: E402 - the tests' broker

QUERIES, RESULTS = "queries", "results"
PARTITIONS = 4
TRACE = "dns_wrccdc_2018_1s.csv"
MEAN_RATE = 60.0
SPEEDUP = 10.0
CHECKPOINT_S = 5


class Player(threading.Thread):
    """Plays the trace into the topic, each query at its time, until there are no more or nobody wants them."""

    def __init__(self, brokers: str, trace: Trace) -> None:
        super().__init__(daemon=True)
        queries = Deployment(app="dns").source(trace)
        self._queries = queries.open(Slot("demo", QUERIES, 0, 1, time.time()), None)
        self._producer: Any = Producer({"bootstrap.servers": brokers, "log_level": 0})
        self._ended = threading.Event()
        self.sent = 0

    def run(self) -> None:
        """Send what is due."""
        while not self._ended.is_set() and not self._queries.ended:
            for _, born_s, query in self._queries.poll(1000, 0.05):
                value, time_ms = msgspec.json.encode(query), int(1000 * born_s)
                self._producer.produce(QUERIES, value, key=query["client"], timestamp=time_ms)
                self.sent += 1
            self._producer.poll(0)
        self._producer.flush(10)

    def end(self) -> None:
        """Send no more."""
        self._ended.set()
        self.join()


def results(brokers: str) -> list[dict[str, Any]]:
    """All that a reader sees who takes only what is committed."""
    settings = {"group.id": "demo", "auto.offset.reset": "earliest", "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": brokers, "isolation.level": "read_committed", **settings})
    consumer.subscribe([RESULTS])
    found, ends = [], 0
    while ends < PARTITIONS:
        record = consumer.poll(10.0)
        if record is None:
            break
        if record.error() is None:
            found.append((dict(record.headers() or []), msgspec.json.decode(record.value() or b"")))
        elif record.error().code() == KafkaError._PARTITION_EOF:
            ends += 1
    consumer.close()
    return [{"id": headers["penstock-id"].decode(), **event} for headers, event in found]


def run(brokers: str, seconds: float) -> int:
    """`penstock run` from topic to topic, in this terminal; it is handed each Ctrl-C, and ends in order."""
    command = [sys.executable, "-m", "penstock.cli", "run", "dns", "--policy", "psps", "--td", "5"]
    command += ["--source", f"kafka://{brokers}/{QUERIES}?group=demo-kafka", "--duration", f"{seconds:g}"]
    command += ["--sink", f"kafka://{brokers}/{RESULTS}?level=committed", "--checkpoint-every", str(CHECKPOINT_S)]
    print(f"$ penstock {' '.join(command[3:])}", flush=True)
    started = subprocess.Popen(command, start_new_session=True)  # else a terminal would tell it a second time
    while True:
        try:
            return started.wait()
        except KeyboardInterrupt:
            started.send_signal(signal.SIGINT)


def tell(sent: int, found: list[dict[str, Any]]) -> None:
    """What came out."""
    once = len({one["id"] for one in found})
    print(f"{sent:,} queries were sent; {len(found):,} results are committed, {once:,} of them different")
    if once < sent:
        print(f"  the other {sent - once:,} came too late to be read, and wait in the topic for the next run")
    for label, count in Counter(str(one["class"]) for one in found).most_common():
        print(f"  {label}: {count:,}")
    for one in found[:3]:
        print(f"  {msgspec.json.encode(one).decode()}")


def main() -> None:
    """All of it."""
    arguments = argparse.ArgumentParser(description="The DNS application on a Kafka of its own.")
    arguments.add_argument("--seconds", type=float, default=60.0, help="that the application runs")
    seconds = arguments.parse_args().seconds
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    if java() is None and subprocess.run([ROOT / "scripts" / "kafka.sh"], check=False).returncode:
        raise SystemExit("penstock: the demo needs a Kafka broker, which cannot be had here: see the message above")
    trace = played(load_trace(data_file("traces", TRACE)), MEAN_RATE, SPEEDUP, None)
    with tempfile.TemporaryDirectory(prefix="penstock-demo-", ignore_cleanup_errors=True) as folder:
        broker = Kafka(Path(folder))
        player = None
        try:
            print("starting a Kafka broker", flush=True)
            broker.start()
            for topic in (QUERIES, RESULTS):
                broker.create(topic, PARTITIONS)
            player = Player(broker.address, trace)
            player.start()
            code = run(broker.address, seconds)
            player.end()
            tell(player.sent, results(broker.address))
        except KeyboardInterrupt:
            code = 130
        finally:
            if player is not None and player.is_alive():
                player.end()
            broker.kill()
    raise SystemExit(code)


if __name__ == "__main__":
    main()
