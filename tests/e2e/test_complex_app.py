"""The complex application on a real Spark, with a database at its end: every event once, whatever happens."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.apps import AppOptions, PayloadOptions, find_app
from penstock.apps import complex as app
from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.metrics.counters import RunCounters
from penstock.sinks import DatabaseSink
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant
from tests.waiting import LONG_S, until


def topology(database: Path, pool: int) -> Topology:
    def sink(name: str, service_ms: float) -> DatabaseSink:
        return DatabaseSink(f"sqlite:///{database}", name, service_ms=service_ms)

    return find_app("complex").build(AppOptions(sink=sink, service_ms=dict.fromkeys(app.SERVICE_MS, 0.0), pool=pool))


def expected(tweets: list[dict[str, Any]]) -> Counter[bytes]:
    """What should be stored, by calling the operators' functions one after another."""
    stored: list[dict[str, Any]] = []
    for tweet in tweets:
        sent = app.dispatch(dict(tweet))
        if sent is None:
            continue
        if sent.stream == "news":
            news = app.headline(sent.event)
            stored += app.topics(news)
            alert = app.urgency(news)
            stored += [alert] if alert is not None else []
        else:
            stored.append(app.profile(app.sentiment(app.opinion(sent.event))))
    return Counter(_canonical(event) for event in stored)


def found(database: Path) -> tuple[list[str], Counter[bytes]]:
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT id, event FROM store").fetchall()
    return [row[0] for row in rows], Counter(_canonical(msgspec.json.decode(row[1])) for row in rows)


def _canonical(event: Any) -> bytes:
    return msgspec.json.encode(event, order="sorted")


def entered(run: Run) -> int:
    return run.counters().sources.get("tweets", 0)


def ended(run: Run) -> RunCounters:
    """Let no more events in, and wait until all are processed; the counters then."""
    run.stop_sources()
    assert run.wait_drained(LONG_S)
    return run.counters()


def test_thousands_of_events_while_replicas_change_all_the_time(tmp_path: Path) -> None:
    """Every operator's replicas change ten times, up and down, events between: nothing is lost, nothing repeated."""
    database = tmp_path / "events.db"
    tweets = find_app("complex").payloads(PayloadOptions())
    flow = topology(database, pool=3)
    with Run(flow, TraceSource(constant(1000.0, 900.0), tweets)) as run:
        draw = random.Random(7)
        for _ in range(10):
            before = entered(run)
            for name in flow.operators:
                run.set_replicas(name, draw.sample(range(3), draw.randint(1, 3)))
                time.sleep(0.05)
            until(lambda before=before: entered(run) > before + 300)  # type: ignore[misc]
        counters = ended(run)
    ids, events = found(database)
    count = counters.sources["tweets"]
    assert counters.restarts == 0
    assert len(set(ids)) == len(ids)
    assert events == expected([tweets[n % len(tweets)] for n in range(count)])
    assert counters.operators["store"].total.repeated == 0
    assert counters.operators["store"].total.processed == len(ids)


def test_a_killed_worker_is_recovered_and_the_database_holds_every_event_once(tmp_path: Path) -> None:
    """SIGKILL of a Python worker: the query dies, is started again, and takes back what it had stored and does anew."""
    database = tmp_path / "events.db"
    tweets = find_app("complex").payloads(PayloadOptions())
    with Run(topology(database, pool=2), TraceSource(constant(250.0, 900.0), tweets)) as run:
        until(lambda: run.counters().operators["store"].total.processed >= 500)
        victim = run.places()["sentiment", 0].pid
        os.kill(victim, signal.SIGKILL)
        before = entered(run)
        until(lambda: run.counters().restarts and entered(run) > before + 500)
        counters = ended(run)
    ids, events = found(database)
    count = counters.sources["tweets"]
    assert counters.operators["store"].total.processed == len(ids)
    assert counters.operators["store"].total.repeated == 0  # what only the first attempt wrote was taken back
    assert events == expected([tweets[n % len(tweets)] for n in range(count)])


def test_the_run_is_refused_before_spark_starts_when_it_cannot_work(tmp_path: Path) -> None:
    flow = topology(tmp_path / "events.db", pool=2)
    source = TraceSource(constant(10, 1), [{}])
    for replicas, message in (({"sentimnt": 1}, "no operator 'sentimnt'"), ({"store": 3}, "from 1 to the pool of 2")):
        with pytest.raises(Exception, match=message):
            Run(flow, source, replicas=replicas, options=RunOptions())
