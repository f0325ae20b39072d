"""What a run came to: one object for programs, a table for people."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from rich.table import Table

from penstock.cli.drive import Driven, workload_for
from penstock.control.declare import declared
from penstock.metrics.counters import OperatorCounters, ReplicaCounters, RunCounters
from penstock.metrics.paper import overestimated_replicas, saved_resources, throughput_degradation
from penstock.metrics.rows import IntervalRow
from penstock.metrics.shares import counted_edges, source_output
from penstock.report.run import PUBLISHED

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def summarise(driven: Driven, counters: RunCounters) -> dict[str, Any]:
    """The JSON of `penstock run`."""
    edges = counted_edges(counters, declared(driven.topology))
    done = {name: float(one.total.processed) for name, one in counters.operators.items()}
    events = sum(counters.sources.values())
    processed = round(source_output(counters.sources, done, edges))
    latency = counters.latency
    intervals = driven.store.intervals(driven.name)
    return {
        "app": driven.request.app,
        "policy": driven.request.policy,
        "events": events,
        "processed": processed,
        "repeated": sum(one.total.repeated for one in counters.operators.values()),
        "dropped": counters.dropped,
        "latency_ms": {"mean": _number(latency.mean_ms)}
        | {name: _number(latency.percentile_ms(q)) for name, q in PERCENTILES.items()},
        "duration_s": round(driven.ended_s - driven.started_s, 3),
        "restarts": counters.restarts,
        **_four_metrics(driven, counters, intervals, processed / events if events else math.nan),
        "operators": {name: _operator(one) for name, one in counters.operators.items()},
        **({"workers": driven.clustered.summary()} if driven.clustered else {}),
    }


def _four_metrics(
    driven: Driven, counters: RunCounters, intervals: list[IntervalRow], ratio: float
) -> dict[str, float | int | None]:
    """The paper's metrics; latency is among them under `latency_ms`."""
    times = {name: one.execution_time_s for name, one in counters.operators.items()}
    workload = workload_for(driven, {name: time_s for name, time_s in times.items() if time_s is not None})
    r_over = overestimated_replicas(workload.peak_rate, workload.shares, workload.execution_times_s)
    played = [row for row in intervals if row.entered]
    return {
        "saved_resources": _number(saved_resources([row.replicas for row in played], r_over)),
        "throughput_degradation": _number(
            throughput_degradation([row.entered for row in played], [row.source_output for row in played])
        ),
        "processed_ratio": _number(ratio),
        "r_over": r_over,
    }


def _operator(one: OperatorCounters) -> dict[str, Any]:
    total = one.total
    return {
        "active": list(one.active),
        "pool": one.pool,
        "received": total.received,
        "processed": total.processed,
        "emitted": total.emitted,
        "dropped": total.dropped,
        "repeated": total.repeated,
        "backlog": one.backlog,
        "busy_s": round(total.busy_s, 6),
        "cpu_s": round(total.cpu_s, 6),
        "execution_time_ms": None if one.execution_time_s is None else round(1000 * one.execution_time_s, 4),
        "latency_ms": {"mean": _number(total.latency.mean_ms)}
        | {name: _number(total.latency.percentile_ms(q)) for name, q in PERCENTILES.items()},
        **_state(total),
        "replicas": {
            str(number): {"received": r.received, "processed": r.processed, "busy_s": round(r.busy_s, 6)}
            for number, r in sorted(one.replicas.items())
        },
    }


def _state(total: ReplicaCounters) -> dict[str, Any]:
    """Of an operator that keeps state: how much, and how long what moved had to wait."""
    if not total.state_keys and not total.groups_moved:
        return {}
    waits = {"mean": _number(total.moving.mean_ms), "max": _number(total.moving.max_ms) if total.moving.count else None}
    return {
        "state_bytes": total.state_bytes,
        "state_keys": total.state_keys,
        "groups_moved": total.groups_moved,
        "wait_ms": waits | {name: _number(total.moving.percentile_ms(q)) for name, q in PERCENTILES.items()},
    }


def _number(value: float) -> float | None:
    return round(value, 4) if math.isfinite(value) else None


def operators_table(summary: Mapping[str, Any]) -> Table:
    """One row an operator."""
    table = Table(title="operators", title_justify="left", header_style="bold")
    for name, justify in (("operator", "left"), ("active", "right"), ("processed", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for name in ("dropped", "backlog", "et ms", "busy s", "CPU s"):
        table.add_column(name, justify="right")
    for name, one in summary["operators"].items():
        dropped = ", ".join(f"{cause} {count}" for cause, count in one["dropped"].items()) or "0"
        table.add_row(
            name,
            f"{len(one['active'])}/{one['pool']}",
            f"{one['processed']:,}",
            dropped,
            f"{one['backlog']:,}",
            _shown(one["execution_time_ms"], 2),
            f"{one['busy_s']:.1f}",
            f"{one['cpu_s']:.1f}",
        )
    return table


def metrics_table(summary: Mapping[str, Any]) -> Table:
    """The four metrics, the paper's beside them where it ran the same application."""
    published = PUBLISHED.get(str(summary["app"]))
    paper = dataclasses.astuple(published) if published else None
    table = Table(title="the four metrics", title_justify="left", header_style="bold")
    table.add_column("")
    table.add_column("here", justify="right")
    if paper:
        table.add_column("paper", justify="right")
    rows = (
        ("saved resources", _shown(summary["saved_resources"], 4)),
        ("throughput degradation", _shown(summary["throughput_degradation"], 4)),
        ("processed ratio", _shown(summary["processed_ratio"], 4)),
        ("latency ms (mean)", _shown(summary["latency_ms"]["mean"], 1)),
    )
    for number, (name, value) in enumerate(rows):
        table.add_row(name, value, *([f"{paper[number]:g}"] if paper else []))
    return table


def headline(summary: Mapping[str, Any]) -> str:
    """What happened to the events, in a line."""
    dropped = sum(summary["dropped"].values())
    latency = summary["latency_ms"]
    return (
        f"{summary['events']:,} events sent, {summary['processed']:,} processed, {dropped:,} dropped, "
        f"{summary['repeated']:,} repeated; "
        f"latency p50 {_shown(latency['p50'], 0)} ms, p99 {_shown(latency['p99'], 0)} ms; "
        f"{summary['duration_s']:.0f} s, {summary['restarts']} restarts"
    )


def workers_line(workers: Mapping[str, Any]) -> str:
    """What became of the workers, in a line.

    >>> workers_line({"worker_seconds": 240.0, "pauses": [{"seconds": 0.025}]})
    'workers: 240 worker-seconds; 1 change of them, sources stood still for at most 25 ms'
    """
    pauses = [one["seconds"] for one in workers["pauses"]]
    changes = f"{len(pauses)} change{'s' if len(pauses) != 1 else ''} of them"
    stood = f", sources stood still for at most {1000 * max(pauses):.0f} ms" if pauses else ""
    return f"workers: {workers['worker_seconds']:,.0f} worker-seconds; {changes}{stood}"


def _shown(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
