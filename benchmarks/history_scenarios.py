"""The driver of benchmarks/history.py, in a process of its own: counts real DNS queries by name, then by domain.

    history_scenarios.py FOLDER SOURCE SINK EVENTS RATE CHANGES SEED

SOURCE is `trace`, or a URL of Kafka; SINK the URL of a database or of Kafka. Started again on the same folder it goes
on with the run. It says when its sources began, each change of replicas, and how it ended. On Kafka, whose streams do
not end, it ends when there is a file `stop` beside its folder.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

from penstock import RunOptions, Topology, TraceSource, constant
from penstock.engine.run import Run
from penstock.sources import FileSource

QUERIES = Path(__file__).parents[1] / "data/events/dns_queries_wrccdc_2018.csv.gz"
POOLS = {"parse": 2, "names": 3, "domains": 3, "end": 2}


def queries(count: int) -> list[dict[str, str]]:
    """So many real queries, from the first on again when they are used up."""
    file = FileSource(QUERIES)
    real = [{"query": one["query"], "client": one["client"]} for one in file.read(range(file.total or 0))]
    return [real[number % len(real)] for number in range(count)]


def domain_of(name: str) -> str:
    return ".".join(name.rsplit(".", 2)[-2:])


def parse(event: dict[str, Any]) -> dict[str, Any]:
    return {"name": f"{event['client']} {event['query']}", "domain": domain_of(event["query"])}


def by_name(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    state["seen"] = state.get("seen", 0) + 1
    return {**event, "of_name": state["seen"]}


def by_domain(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    state["seen"] = state.get("seen", 0) + 1
    return {**event, "of_domain": state["seen"]}


def topology(sink: Any) -> Topology:
    dns = Topology("history")
    parsed = dns.operator("parse", parse, inputs=dns.source("queries"), pool=POOLS["parse"])
    names = dns.operator("names", by_name, inputs=parsed, key="name", pool=POOLS["names"], key_groups=32)
    domains = dns.operator("domains", by_domain, inputs=names, key="domain", pool=POOLS["domains"], key_groups=32)
    dns.operator("end", sink, inputs=domains, pool=POOLS["end"])
    return dns


def sink_at(url: str) -> Any:
    import penstock

    return penstock.KafkaSink.from_url(url) if url.startswith("kafka:") else penstock.DatabaseSink(url)


def source_at(url: str, events: int, rate: float) -> Any:
    import penstock

    if url.startswith("kafka:"):
        return penstock.KafkaSource.from_url(url)
    return TraceSource(constant(rate, events / rate), queries(events))


def main(folder: str, source: str, sink: str, *numbers: str) -> None:
    events, rate, changes, seed = int(numbers[0]), float(numbers[1]), int(numbers[2]), int(numbers[3])
    draw, options = random.Random(seed), RunOptions(folder=Path(folder), checkpoint_every_s=2, retries=100)
    run = Run(topology(sink_at(sink)), source_at(source, events, rate), options=options)
    stop = Path(folder).with_name("stop")  # a stream of Kafka ends when somebody says so
    with run:
        print("began", run.epoch_s, flush=True)
        while not run.wait(1.0) and not stop.exists():
            if changes:
                changes -= 1
                name = draw.choice(list(POOLS))
                run.set_replicas(name, draw.sample(range(POOLS[name]), draw.randint(1, POOLS[name])))
                print("changed", flush=True)
            print("sent", sum(run.counters().sources.values()), run.checkpoint_status().number, flush=True)
        run.stop_sources()
        run.wait_drained(60)
        status = run.checkpoint_status()
        print("done", run.counters().restarts, status.committed, status.given_up, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
