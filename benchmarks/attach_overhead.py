"""What a keeper costs the driver, in cores, while it keeps the executors of one, two and four queries.

    python benchmarks/attach_overhead.py --json overhead.json
    python benchmarks/attach_overhead.py --short
    python benchmarks/attach_overhead.py --local

Queries come one after another into one session on a Spark Standalone cluster of this machine, each with a trigger of
5 s, which is the keeper's interval, too. It has a store. Counted is the CPU time of its thread, of the one that writes
the store, and of Java's thread that answers its calls; nothing of it runs on executors. `--local` needs no cluster: it
is advice on `local[2]`, so nobody is asked for executors.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import penstock
from penstock.forecast.base import Forecast
from penstock.infra.cluster_workers import await_workers
from penstock.infra.standalone import StandaloneCluster, StandaloneOptions
from penstock.metrics.snapshot import Snapshot
from penstock.policy.base import Plan
from penstock.policy.psps import Psps

QUERIES = (1, 2, 4)
SLOTS_EACH = 4
TARGET_MS = 15_000.0
JAVA_NAME = "penstock-keeper"  # Linux knows 15 letters of it


class Named:
    """The keeper's usual policy; counts plans, and at the first has Java's thread for its caller named."""

    def __init__(self, spark: SparkSession) -> None:
        self.policy = Psps(use_forecast=True)
        self.plans = 0
        self._jvm: Any = spark.sparkContext._jvm

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """The policy's plan."""
        if not self.plans:
            self._jvm.java.lang.Thread.currentThread().setName(JAVA_NAME)
        self.plans += 1
        return self.policy.plan(snapshot, forecast)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--seconds", type=float, default=180.0, help="that are counted, with each number of queries")
    arguments.add_argument("--settle", type=float, default=60.0, help="that are not, before each")
    arguments.add_argument("--short", action="store_true", help="30 s each")
    arguments.add_argument("--local", action="store_true", help="only advise, on local[2]")
    arguments.add_argument("--json", type=Path, help="also write the result here")
    options = arguments.parse_args()
    if options.short:
        options.seconds = options.settle = 30.0
    with tempfile.TemporaryDirectory() as folder:
        found = (locally if options.local else on_cluster)(Path(folder), options.seconds, options.settle)
    text = json.dumps(found, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


def on_cluster(folder: Path, seconds: float, settle_s: float) -> dict[str, Any]:
    """The cores that a keeper takes which may change executors."""
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    with StandaloneCluster(folder / "cluster", StandaloneOptions(cores=SLOTS_EACH, memory_mb=600)) as cluster:
        await_workers(cluster, 1)
        return by_queries(session(cluster.url, cluster.settings), folder, seconds, settle_s)


def locally(folder: Path, seconds: float, settle_s: float) -> dict[str, Any]:
    """The cores that a keeper takes which only advises."""
    return by_queries(session("local[2]", {}), folder, seconds, settle_s, mode="advise")


def by_queries(spark: SparkSession, folder: Path, seconds: float, settle_s: float, mode: str = "act") -> dict[str, Any]:
    """One keeper, which is given more and more queries."""
    policy, found, running = Named(spark), {}, 0
    for number in QUERIES:
        queries = [started(spark, folder, name) for name in range(running, number)]
        running = number
        keeper = penstock.attach(queries, "1..1", TARGET_MS, mode=mode, policy=policy, store=folder / "metrics.db")
        time.sleep(settle_s)
        found[str(number)] = cores(spark, policy, seconds)
        print(number, json.dumps(found[str(number)]), file=sys.stderr)
    keeper.stop()
    spark.stop()
    return {"mode": mode, "seconds": seconds, "td_s": keeper.options.td_s, "queries": found}


def started(spark: SparkSession, folder: Path, number: int) -> Any:
    """A query that has rows in every batch, with state."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    counts = rows.groupBy((rows.value % 16).alias("key")).count().writeStream.outputMode("update").format("noop")
    named = counts.queryName(f"query_{number}").option("checkpointLocation", str(folder / f"query_{number}"))
    return named.trigger(processingTime="5 seconds").start()


def cores(spark: SparkSession, policy: Named, seconds: float) -> dict[str, Any]:
    """CPU time over so long, of which threads; and how many intervals that were."""
    gateway: Any = spark.sparkContext._gateway
    before, plans, since_s = cpu_s(gateway.proc.pid), policy.plans, time.monotonic()
    time.sleep(seconds)
    after, passed_s, intervals = cpu_s(gateway.proc.pid), time.monotonic() - since_s, policy.plans - plans
    spent = {name: after[name] - before.get(name, 0.0) for name in after}
    total_s = sum(spent.values())
    return {
        "cores": round(total_s / passed_s, 5),
        "by_thread": {name: round(one / passed_s, 5) for name, one in spent.items()},
        "intervals": intervals,
        "ms_an_interval": round(1000 * total_s / max(1, intervals), 2),
        "load": os.getloadavg()[0],
    }


def cpu_s(java: int) -> dict[str, float]:
    """What the keeper's threads have taken so far, by name."""
    found = {
        one.name: spent_s(os.getpid(), one.native_id)
        for one in threading.enumerate()
        if one.name.startswith("penstock")
    }
    named = [int(task.name) for task in Path(f"/proc/{java}/task").iterdir() if name_of(task) == JAVA_NAME]
    return {**found, "java": sum(spent_s(java, task) for task in named)}


def name_of(task: Path) -> str:
    """A thread's name; none if it has ended meanwhile."""
    try:
        return (task / "comm").read_text().strip()
    except OSError:
        return ""


def spent_s(process: int, thread: int | None) -> float:
    """CPU time of a thread, as Linux has it."""
    return int(Path(f"/proc/{process}/task/{thread}/schedstat").read_text().split()[0]) / 1e9


def session(master: str, more: Mapping[str, str]) -> SparkSession:
    """A session of one executor, or none."""
    settings: dict[str, Any] = {
        "spark.executor.cores": str(SLOTS_EACH),
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        **penstock.executor_settings(),
        **more,
    }
    return SparkSession.builder.appName("overhead").master(master).config(map=settings).getOrCreate()


if __name__ == "__main__":
    main()
