"""The scenarios of `engine.py`; each runs in a process of its own: `python engine_scenarios.py latency penstock`."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import psutil
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from rounds import figures

from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.engine.session import open_session
from penstock.metrics.latency import LatencyHistogram
from penstock.sources import FileSource, TraceSource
from penstock.topology import Context, Topology
from penstock.workload import constant

RATE = 200.0
WARM_UP_S = 25.0
MEASURE_S = 20.0
OPERATORS = ("first", "second", "third", "fourth")
ACTIVE = 2
POOL = 4


def step(event: dict[str, Any]) -> dict[str, Any]:
    """What every operator does."""
    event["n"] += 1
    return event


def chain(pool: int, last: Any = step, grouping: str | None = None) -> Topology:
    topology = Topology("chain", pool=pool)
    stream: Any = topology.source("numbers")
    for name in OPERATORS:
        stream = topology.operator(name, last if name == OPERATORS[-1] else step, inputs=stream, grouping=grouping)
    return topology


def numbers(rate: float, seconds: float) -> TraceSource:
    return TraceSource(constant(rate, seconds), [{"n": n, "text": f"event number {n}"} for n in range(1000)])


def cpu_s() -> float:
    """CPU seconds of this process and all below it, living ones and reaped ones."""
    total = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            times = process.cpu_times()
            total += times.user + times.system
        except psutil.Error:
            continue
    return total


def private_bytes(process: psutil.Process) -> int:
    """Memory that a Python worker shares with nobody; 0 for Java and for a process that is gone."""
    try:
        worker = "daemon" in " ".join(process.cmdline())
        return int(process.memory_full_info().uss) if worker else 0
    except psutil.Error:
        return 0


def _options(system: str) -> RunOptions:
    return RunOptions(encrypt=system == "encrypted")


def latency(system: str, rate: str = str(RATE), grouping: str | None = None) -> dict[str, float]:
    """End-to-end latency at a steady rate after a warm-up, and what it costs."""
    events_per_s = float(rate)
    if system == "plain":
        return _plain_latency(events_per_s)
    source = numbers(events_per_s, WARM_UP_S + MEASURE_S + 60)
    topology, replicas = chain(POOL, grouping=grouping), dict.fromkeys(OPERATORS, ACTIVE)
    run = Run(topology, source, replicas=replicas, options=_options(system))
    with run:
        time.sleep(WARM_UP_S)
        before, cpu = run.fresh_counters().latency, cpu_s()
        time.sleep(MEASURE_S)
        after, cpu = run.fresh_counters().latency, cpu_s() - cpu
        run.stop_sources()
    return figures(after.since(before), cpu)


def _plain_stage(folder: str | None) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """One function of the plain query: decode, step, encode; the last one notes when each event was done."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os

        out = open(f"{folder}/{os.getpid()}", "a") if folder else None  # noqa: SIM115, PTH123
        for batch in batches:
            events = [step(msgspec.json.decode(value)) for value in batch.column("value").to_pylist()]
            if out:
                now = time.time()
                out.writelines(f"{event['born']} {now}\n" for event in events)
                out.flush()
            encoded = [msgspec.json.encode(event).decode() for event in events]
            yield pa.RecordBatch.from_arrays([pa.array(encoded, pa.string())], names=["value"])

    return run


def _plain_chain(frame: DataFrame, folder: str | None) -> DataFrame:
    for name in OPERATORS:
        stage = _plain_stage(folder if name == OPERATORS[-1] else None)
        frame = frame.repartition(ACTIVE).mapInArrow(stage, "value string")
    return frame


def _plain_session(folder: Path) -> SparkSession:
    return open_session(8, {"spark.sql.adaptive.enabled": "false"}, folder / "spark.log")


def _plain_latency(rate: float) -> dict[str, float]:
    folder = Path(tempfile.mkdtemp())
    (folder / "out").mkdir()
    spark = _plain_session(folder)
    jvm: Any = spark._jvm
    memory = getattr(jvm, "org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream")
    stream = memory.apply(spark._jsparkSession, ACTIVE, getattr(jvm, "org.apache.spark.sql.Encoders").STRING())
    frame = _plain_chain(DataFrame(stream.toDF(), spark), str(folder / "out"))
    query = frame.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint")).start()
    to_seq = getattr(jvm, "org.apache.spark.api.python.PythonUtils").toSeq
    begin, sent, cpu = time.time(), 0, 0.0
    while (elapsed := time.time() - begin) < WARM_UP_S + MEASURE_S:
        cpu = cpu or (cpu_s() if elapsed > WARM_UP_S else 0.0)
        due = int(rate * elapsed) - sent
        if due:
            born = [begin + (sent + n) / rate for n in range(due)]
            rows = [json.dumps({"n": sent + n, "text": f"event number {n}", "born": born[n]}) for n in range(due)]
            stream.addData(sent % ACTIVE, to_seq(rows))
            sent += due
        time.sleep(0.01)
    cpu = cpu_s() - cpu
    time.sleep(3)
    histogram = LatencyHistogram()
    for path in (folder / "out").iterdir():
        for line in path.read_text().splitlines():
            start, done = map(float, line.split())
            if start >= begin + WARM_UP_S:
                histogram.add(1000 * (done - start))
    query.stop()
    spark.stop()
    return figures(histogram, cpu)


def _file_of_events(folder: Path, count: int, parts: int) -> None:
    folder.mkdir()
    for part in range(parts):
        rows = (f'{{"n": {n}, "text": "event number {n}", "born": 0.0}}\n' for n in range(part, count, parts))
        (folder / f"{part:03}.jsonl").write_text("".join(rows))


def rate(system: str, count: str = "600000", grouping: str | None = None) -> dict[str, float]:
    """Events per second when everything is there from the start: the second half of the way, when all is warm."""
    events, folder = int(count), Path(tempfile.mkdtemp())
    if system == "plain":
        _file_of_events(folder / "in", events, 24)
        return _plain_rate(folder, events)
    _file_of_events(folder / "in", events, 1)
    source = FileSource(folder / "in" / "000.jsonl")
    topology, replicas = chain(POOL, grouping=grouping), dict.fromkeys(OPERATORS, ACTIVE)
    run = Run(topology, source, replicas=replicas, options=_options(system))
    seen: list[tuple[float, int]] = []
    with run:
        while not run.wait(0.1):
            seen.append((time.time(), run.counters().operators[OPERATORS[-1]].total.processed))
        seen.append((time.time(), events))
    return {"rate": _second_half(seen)}


def _plain_rate(folder: Path, events: int) -> dict[str, float]:
    spark = _plain_session(folder)
    (folder / "out").mkdir()
    frame = spark.readStream.format("text").option("maxFilesPerTrigger", 4).load(str(folder / "in"))
    query = (
        _plain_chain(frame, None)
        .writeStream.format("noop")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start()
    )
    seen, done = [(time.time(), 0)], 0
    while done < events:
        done = sum(progress["numInputRows"] for progress in query.recentProgress)
        seen.append((time.time(), done))
        time.sleep(0.1)
    query.stop()
    spark.stop()
    return {"rate": _second_half(seen)}


def _second_half(seen: list[tuple[float, int]]) -> float:
    """Rate from the moment when half was done to the end."""
    end_s, total = seen[-1]
    start_s, done = next((time_s, done) for time_s, done in seen if done >= total / 2)
    if done == total:
        start_s, done = max((one for one in seen if one[1] < total), key=lambda one: one[0])
    return (total - done) / max(end_s - start_s, 1e-9)


def idle(pool: str) -> dict[str, float]:
    """Cores and private memory used by a chain through which nothing flows."""
    with Run(chain(int(pool)), numbers(0.001, 1e5)):
        time.sleep(WARM_UP_S)
        cpu = cpu_s()
        time.sleep(MEASURE_S)
        cores = (cpu_s() - cpu) / MEASURE_S
        private = sum(map(private_bytes, psutil.Process().children(recursive=True)))
    return {"cores": cores, "private_mb": private / 1e6, "replicas": 4 * int(pool)}


class Stamps:
    """Notes when and in which replica each event was processed."""

    def __init__(self, folder: str, service_s: float = 0.0) -> None:
        self._folder = folder
        self._service_s = service_s

    def open(self, context: Context) -> None:
        """Open this replica's file."""
        self._replica = context.replica
        self._file = open(f"{self._folder}/{context.replica}-{time.time_ns()}", "a", buffering=1)  # noqa: SIM115, PTH123

    def process(self, _: dict[str, Any]) -> None:
        """Note one event."""
        if self._service_s:
            time.sleep(self._service_s)
        self._file.write(f"{time.time()} {self._replica}\n")


def _stamps(folder: str) -> list[tuple[float, int]]:
    lines = (line.split() for path in Path(folder).iterdir() for line in path.read_text().splitlines())
    return sorted((float(stamp), int(replica)) for stamp, replica in lines)


def counted(event: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    """Keeps some of what came for each key."""
    state["seen"] = state.get("seen", 0) + 1
    state["last"] = event["text"]
    return event


def checkpoints(every_s: str) -> dict[str, float]:
    """Latency through four operators, one of which keeps state, with checkpoints so often; and how long these take."""
    topology = Topology("chain", pool=POOL)
    stream: Any = topology.source("numbers")
    for name in OPERATORS[:2]:
        stream = topology.operator(name, step, inputs=stream)
    stream = topology.operator("third", counted, inputs=stream, key="text", key_groups=32)
    topology.operator("fourth", step, inputs=stream)
    options = RunOptions(checkpoint_every_s=float(every_s))
    source = numbers(RATE, WARM_UP_S + 2 * MEASURE_S + 60)
    with Run(topology, source, replicas=dict.fromkeys(OPERATORS, ACTIVE), options=options) as run:
        time.sleep(WARM_UP_S)
        before, cpu, took = run.fresh_counters().latency, cpu_s(), []
        until = time.monotonic() + 2 * MEASURE_S
        while time.monotonic() < until:
            time.sleep(0.2)
            took.append(run.checkpoint_status().took_s)
        after, cpu, made = run.fresh_counters().latency, cpu_s() - cpu, run.checkpoint_status().committed
        run.stop_sources()
    times = {"took_ms": 1000 * median(took), "longest_ms": 1000 * max(took), "made": made}
    return figures(after.since(before), cpu) | times


def activation() -> dict[str, float]:
    """From set_replicas to the first event of the new replica, and the longest pause of the others meanwhile."""
    folder = tempfile.mkdtemp()
    topology = Topology("activation", pool=POOL)
    topology.operator("slow", Stamps(folder, 0.02), inputs=topology.source("numbers"))
    with Run(topology, numbers(40.0, 120.0)) as run:
        time.sleep(WARM_UP_S)
        called = time.time()
        run.set_replicas("slow", 2)
        time.sleep(10)
        run.stop_sources()
    stamps = _stamps(folder)
    first = next(stamp for stamp, replica in stamps if replica == 1)
    others = [stamp for stamp, replica in stamps if replica == 0]
    gaps = [(earlier, later - earlier) for earlier, later in pairwise(others)]
    return {
        "at_work_s": first - called,
        "longest_pause_before_s": max(gap for at, gap in gaps if called - 10 < at < called - 1),
        "longest_pause_around_s": max(gap for at, gap in gaps if called - 1 <= at < called + 4),
    }


if __name__ == "__main__":
    scenarios: dict[str, Callable[..., dict[str, float]]] = {
        "latency": latency,
        "rate": rate,
        "idle": idle,
        "checkpoints": checkpoints,
        "activation": activation,
    }
    print(json.dumps(scenarios[sys.argv[1]](*sys.argv[2:])))
