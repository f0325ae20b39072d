"""The driver of benchmarks/faults.py, in a process of its own: counts real DNS queries by name, then by domain.

    faults_scenarios.py SETUP     # a file with a `Setup` as JSON

Started again on the same folder it goes on with the run. Commands come as lines: `replicas SEED`, `layout SEED`, `cut
SECONDS`, `slow SECONDS`. It says when its sources began, what it has done of that, and how it ended. On Kafka, whose
streams do not end, it ends when there is a file `stop` beside its setup.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from faults_checker import DEAD, DROP

import penstock
from penstock import RunOptions, Topology, TraceSource, constant
from penstock.engine.run import Run

POOLS = {"names": 3, "domains": 3, "end": 2, "letters": 1}
LOOK_S = 0.2


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """Where the run is, what it reads and where its results go."""

    folder: str
    events: str  # a file: a line of JSON an event
    rate: float
    source: str  # `events`, or a URL of Kafka
    sinks: tuple[str, str]  # URLs of results and of dead letters: a database's with the table behind a `#`, or Kafka's
    level: str
    spark: Mapping[str, str] = {}
    executors: int = 1
    standby: bool = False


def by_name(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    state["seen"] = state.get("seen", 0) + 1
    if event["poison"] == DEAD:  # only now: what it has changed must be undone
        raise ValueError("poisoned")
    return {**event, "of_name": state["seen"]}


def by_domain(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    state["seen"] = state.get("seen", 0) + 1
    if event["poison"] == DROP:
        raise ValueError("poisoned")
    return {**event, "of_domain": state["seen"]}


def topology(results: Any, letters: Any) -> Topology:
    dns = Topology("faults")
    queries, letter = dns.source("queries"), "dead_letter"
    names = dns.operator("names", by_name, inputs=queries, key="name", pool=3, key_groups=32, on_error=letter)
    domains = dns.operator("domains", by_domain, inputs=names, key="domain", pool=3, key_groups=32, on_error="drop")
    dns.operator("end", results, inputs=domains, pool=POOLS["end"])
    dns.dead_letters(letters, name="letters")
    return dns


def sink_at(url: str, level: str) -> Any:
    if url.startswith("kafka:"):
        return penstock.KafkaSink.from_url(f"{url}?level={level}")
    address, _, table = url.partition("#")
    return penstock.DatabaseSink(address, table, level=level)


def source_of(setup: Setup) -> Any:
    if setup.source.startswith("kafka:"):
        return penstock.KafkaSource.from_url(setup.source)
    events = [msgspec.json.decode(line) for line in Path(setup.events).read_bytes().splitlines()]
    return TraceSource(constant(setup.rate, len(events) / setup.rate), events)


def change_replicas(run: Run, draw: random.Random) -> None:
    name = draw.choice([name for name, pool in run.pools.items() if len(pool) > 1])
    pool = run.pools[name]
    run.set_replicas(name, draw.sample(pool, draw.randint(1, len(pool))))


def lay_out(run: Run, draw: random.Random) -> None:
    """The same pools in another order, some without a replica that is not active."""
    pools = {name: list(range(size)) for name, size in POOLS.items()}
    for name, pool in pools.items():
        idle = sorted(set(pool) - set(run.active[name]))
        if idle and draw.random() < 0.5:
            pool.remove(draw.choice(idle))
    run.lay_out_anew(pools)


def cut(run: Run, seconds: float) -> None:
    run.cut_channel(True)
    time.sleep(seconds)
    run.cut_channel(False)


def slow(run: Run, seconds: float) -> None:
    """The thread that serves the channel does nothing for most of the time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        run._server._soon(time.sleep, 0.4)
        time.sleep(0.5)


COMMANDS: Mapping[str, Callable[[Run, float], None]] = {
    "replicas": lambda run, seed: change_replicas(run, random.Random(seed)),
    "layout": lambda run, seed: lay_out(run, random.Random(seed)),
    "cut": cut,
    "slow": slow,
}


def obey(run: Run) -> None:
    """Do what the lines say, each in a thread of its own: a lay-out takes seconds, and others go on meanwhile."""
    for line in sys.stdin:
        word, number = line.split()
        threading.Thread(target=_do, args=(run, word, float(number)), daemon=True).start()


def _do(run: Run, word: str, number: float) -> None:
    try:
        COMMANDS[word](run, number)
        print("did", word, flush=True)
    except Exception as error:  # that it cannot be done now is an answer
        print("refused", word, " ".join(str(error).split())[:300], flush=True)


def main(path: str) -> None:
    setup = msgspec.json.decode(Path(path).read_bytes(), type=Setup)
    options = RunOptions(
        folder=Path(setup.folder),
        checkpoint_every_s=2,
        checkpoint_timeout_s=60,
        source_slots=1 if setup.source == "events" else 2,
        executors=setup.executors,
        standby=setup.standby,
        spark=dict(setup.spark),
    )
    results, letters = (sink_at(url, setup.level) for url in setup.sinks)
    stop = Path(path).with_name("stop")
    with Run(topology(results, letters), source_of(setup), options=options) as run:
        print("began", run.epoch_s, flush=True)
        threading.Thread(target=obey, args=(run,), daemon=True).start()
        while not run.wait(1.0) and not stop.exists():
            print("sent", sum(run.counters().sources.values()), flush=True)
            time.sleep(LOOK_S)
        print("ending", flush=True)
        run.stop_sources()
        run.wait_drained(60)
        counters, status = run.counters(), run.checkpoint_status()
        print("done", counters.restarts, status.committed, status.given_up, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
