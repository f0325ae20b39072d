"""Events that fail, on a real Spark: each is counted once and stored once, and a run that they end says which."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.engine.run import Run
from penstock.errors import EngineError
from penstock.sinks import CollectSink, DatabaseSink, collected
from penstock.sources import TraceSource
from penstock.sources.base import Undecoded
from penstock.topology import Topology
from penstock.workload import constant
from tests.waiting import LONG_S

COUNT = 600


class Order(msgspec.Struct):
    n: int
    user: str | None


def parse(order: Order) -> Any:
    """Numbers of 2 modulo 20 raise, those of 3 have an output that cannot be encoded, of 4 one that has no key."""
    if order.n % 20 == 2:
        raise ValueError(f"{order.n} is not for me")
    if order.n % 20 == 3:
        return [{"n": order.n, "user": order.user}, {"n": order.n, "user": order.user, "lock": object()}]
    return {"n": order.n, "user": None if order.n % 20 == 4 else order.user}


def count(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    """Those of 5 raise when they have been counted already."""
    state["count"] = state.get("count", 0) + 1
    if event["n"] % 20 == 5:
        raise ValueError("too late")
    return {"n": event["n"], "user": event["user"], "count": state["count"]}


def orders() -> TraceSource:
    """Numbers of 0 modulo 20 could not be decoded, those of 1 are of another type."""

    def order(n: int) -> Any:
        if n % 20 == 0:
            return Undecoded(b"?", "JSON is malformed")
        return {"n": str(n) if n % 20 == 1 else n, "user": "abc"[n % 3]}

    return TraceSource(constant(600.0, COUNT / 600), [order(n) for n in range(COUNT)])


EXPECTED = {  # what failed, by operator, for each twentieth event
    ("orders", "JSON is malformed"),
    ("parse", "it is not Order: Expected `int`, got `str` - at `$.n`"),
    ("parse", "ValueError: {n} is not for me"),
    ("parse", "cannot send {{'n': {n}, 'user': '{user}', 'lock': <object object at "),
    ("parse", "cannot send {{'n': {n}, 'user': None}} to 'count': grouping 'key_groups': the event's key is None"),
    ("count", "ValueError: too late"),
}


def test_whatever_fails_is_a_dead_letter_once(tmp_path: Path, collected_in: Path) -> None:
    database = f"sqlite:///{tmp_path / 'letters.db'}"
    topology = Topology("orders", pool=2)
    source = topology.source("orders", on_error="dead_letter")
    parsed = topology.operator("parse", parse, inputs=source, on_error="dead_letter")
    counted = topology.operator("count", count, inputs=parsed, key="user", on_error="retry:1,dead_letter")
    topology.operator("end", CollectSink(collected_in), inputs=counted)
    topology.dead_letters(DatabaseSink(database, "letters"))
    with Run(topology, orders()) as run:
        assert run.wait(LONG_S)
        counters = run.fresh_counters()
    failed = COUNT // 20
    assert counters.source_dropped == {"orders": {"dead_letter": failed}}
    total = {name: one.total for name, one in counters.operators.items()}
    assert {name: (one.processed, sum(one.dropped.values())) for name, one in total.items()} == {
        "parse": (COUNT - 5 * failed, 4 * failed),
        "count": (COUNT - 6 * failed, failed),
        "end": (COUNT - 6 * failed, 0),
        "dead_letters": (6 * failed, 0),
    }
    assert counters.dropped == {"dead_letter": 6 * failed}
    check_letters(tmp_path / "letters.db", failed)
    check_counts(collected_in)


def check_letters(file: Path, failed: int) -> None:
    with sqlite3.connect(file) as database:
        rows = database.execute("select id, event from letters").fetchall()
    database.close()
    assert len(rows) == len({one for one, _ in rows}) == 6 * failed
    found = Counter[tuple[str, str]]()
    for row_id, text in rows:
        letter = json.loads(text)
        assert row_id == f"{letter['id']}.{letter['operator']}"
        n = int(letter["id"])
        (kind,) = (
            (operator, error)
            for operator, error in EXPECTED
            if operator == letter["operator"] and letter["error"].startswith(error.format(n=n, user="abc"[n % 3]))
        )
        found[kind] += 1
        assert ("test_on_error.py" in letter["line"]) == ("ValueError" in letter["error"])
    assert found == dict.fromkeys(EXPECTED, failed)


def check_counts(folder: Path) -> None:
    """For each user 1, 2, …, without a gap: what failed has left no trace in the state."""
    counts: dict[str, list[int]] = {}
    for _, event in collected(folder):
        assert event["n"] % 20 > 5
        counts.setdefault(event["user"], []).append(event["count"])
    assert {user: sorted(found) for user, found in counts.items()} == {
        user: list(range(1, len(found) + 1)) for user, found in counts.items()
    }


def picky(event: dict[str, Any]) -> dict[str, Any]:
    if event["n"] == 70:
        raise ValueError("seventy is not for me")
    return event


def test_an_event_that_fails_twice_in_the_same_way_ends_the_run() -> None:
    topology = Topology("picky", pool=1)
    operator = topology.operator("picky", picky, inputs=topology.source("numbers"))
    numbers = TraceSource(constant(100.0, 2.0), [{"n": n} for n in range(200)])
    run = Run(topology, numbers)
    with pytest.raises(EngineError) as caught, run:
        run.wait(LONG_S)
    assert str(caught.value).startswith(
        f"an event failed in the same way each time: {operator}: ValueError: seventy is not for me; "
        "on event 70: {'n': 70}"
    )
    assert run.counters().restarts == 1


def crash(event: dict[str, int]) -> dict[str, int]:
    if event["n"] == 41:
        os.kill(os.getpid(), signal.SIGKILL)  # as a library that breaks memory, or takes all of it
    return picky(event)


def test_an_event_that_raises_is_left_out_and_one_that_ends_its_process_each_time_is_found(collected_in: Path) -> None:
    """The run was started again for ever."""
    topology = Topology("crashing", pool=2)
    risky = topology.operator("risky", crash, inputs=topology.source("numbers"), on_error="drop")
    topology.operator("end", CollectSink(collected_in), inputs=risky)
    with Run(topology, TraceSource(constant(50.0, 2.0), [{"n": n} for n in range(100)])) as run:
        assert run.wait(2 * LONG_S)  # four restarts, or more
        counters = run.counters()
    assert counters.dropped == counters.operators["risky"].total.dropped == {"error": 2}
    assert {str(n) for n in range(100)} - dict(collected(collected_in)).keys() == {"41", "70"}
