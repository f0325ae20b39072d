"""One history in a table, whatever dies and whoever goes on for too long; on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import EngineError
from penstock.sinks import DatabaseSink
from penstock.sinks import database as at_work
from penstock.sinks.tables import Marker, connect, database_url, fences, markers
from tests.waiting import LONG_S

from .playing import STEPS, Attempt, Engine, dies

AT_ONCE = ("staged", "prepared by one", "decided")  # steps at which it matters for rows that are stored at once
WITHIN = {
    "publishing": (at_work, "_stored", at_work._stored),  # a row or two are in, the rest is not
    "marking": (Marker, "move", Marker.move),
    "published": (at_work.staging, "remove", lambda *_: None),
}


@pytest.fixture(params=["latest", "committed"])
def engine(request: pytest.FixtureRequest, url: str, table: str, tmp_path: Path) -> Any:
    return Engine(lambda: DatabaseSink(url, table, level=request.param), tmp_path / "sink", run=table)


def goes_on(engine: Engine, old: Attempt) -> None:
    """A straggler does all that it could still do; it may be told off, and nothing else.

    It also takes for its own what the next attempt commits under the same number.
    """
    for act in (
        lambda: old.sinks[0].commit(engine.checkpoint),
        lambda: straggle(old),
        lambda: old.sinks[0].prepare(engine.checkpoint + 1),
        lambda: old.sinks[-1].commit(engine.checkpoint),
    ):
        try:
            act()
        except EngineError as error:
            told = str(error)
            assert "must be written by attempt" in told or "a later attempt has removed it" in told


def straggle(old: Attempt) -> None:
    """Some that were never seen, and some that the next attempt writes, too."""
    old.contexts[0].event_ids = ("late", f"{old.cursor}.0", f"{old.cursor}.1")
    old.sinks[0].process_many([{"n": -1}, {"n": -2}, {"n": -3}])


@pytest.mark.parametrize(
    ("engine", "step"),
    [*(("latest", step) for step in AT_ONCE), *(("committed", step) for step in STEPS)],
    indirect=["engine"],
)
def test_a_death_at_any_step_leaves_one_history(
    engine: Engine, stored: Any, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where another number of replicas goes on, and the dead of the first attempt walk at every step of it."""
    first = engine.start(pool=3)
    engine.complete(first)
    dies(engine, first, step, WITHIN, monkeypatch)
    second = engine.start(pool=2)
    goes_on(engine, first)
    engine.feed(second, 4)
    goes_on(engine, first)
    parts = engine.prepare(second)
    goes_on(engine, first)
    engine.decide(second, parts)
    goes_on(engine, first)
    engine.commit(second)
    goes_on(engine, first)
    second.checkpoint += 1
    engine.complete(second)
    engine.complete(third := engine.start(pool=4))
    assert [(key, event) for _, key, event in stored()] == sorted(engine.history, key=lambda one: one[0])
    assert sorted(event["n"] for _, _, event in stored()) == list(range(engine.cursor))
    last = engine.start(pool=1)
    for attempt in (first, second, third, last):
        attempt.close()
    assert not list(last.contexts[0].folder.glob("*"))


def test_a_checkpoint_that_is_given_up_is_covered_by_the_next(engine: Engine, stored: Any) -> None:
    attempt = engine.start(pool=3)
    engine.complete(attempt)
    engine.give_up(attempt, most=1)
    engine.give_up(attempt)
    engine.complete(attempt)
    engine.give_up(attempt)
    attempt.close()
    engine.complete(again := engine.start(pool=2))
    again.close()
    assert [(key, event) for _, key, event in stored()] == sorted(engine.history, key=lambda one: one[0])


def test_a_checkpoint_is_prepared_before_the_last_one_is_told(engine: Engine, stored: Any) -> None:
    """The record of the second names what the first has published; a recovery must not publish it again."""
    attempt = engine.start()
    engine.feed(attempt, 6)
    parts = engine.prepare(attempt)
    engine.decide(attempt, parts)
    attempt.checkpoint += 1
    engine.feed(attempt, 6)
    parts = engine.prepare(attempt)
    engine.commit(attempt)
    engine.decide(attempt, parts)
    attempt.close()
    engine.complete(again := engine.start())
    again.close()
    assert [(key, event) for _, key, event in stored()] == sorted(engine.history, key=lambda one: one[0])


def test_nothing_is_seen_before_it_is_committed(url: str, table: str, stored: Any, tmp_path: Path) -> None:
    engine = Engine(lambda: DatabaseSink(url, table, level="committed"), tmp_path / "sink", run=table)
    attempt = engine.start()
    engine.feed(attempt, 6)
    parts = engine.prepare(attempt)
    assert stored() == []
    engine.decide(attempt, parts)
    engine.commit(attempt, 1)
    assert len(stored()) == 3
    engine.commit(attempt)
    assert len(stored()) == 6
    attempt.close()


def test_a_straggler_is_told_so(url: str, table: str, tmp_path: Path) -> None:
    engine = Engine(lambda: DatabaseSink(url, table), tmp_path / "sink", run="r1")
    first = engine.start()
    second = engine.start()
    told = f"^table '{table}': must be written by attempt 2 of run 'r1' or a later one; got 1$"
    with pytest.raises(EngineError, match=told):
        straggle(first)
    with pytest.raises(EngineError, match=told):
        first.sinks[0].open(first.contexts[0])
    first.close()
    second.close()


def test_a_straggler_that_waits_for_the_fence_does_not_get_through(database: Any, tmp_path: Path) -> None:
    """PostgreSQL: it asks while the clean-up is under way, and is answered once that is committed."""
    table = f"fenced_{time.time_ns()}"
    engine = Engine(lambda: DatabaseSink(database.url, table), tmp_path / "sink", run=table)
    first = engine.start()
    told: list[BaseException] = []

    def late() -> None:
        try:
            straggle(first)
        except EngineError as error:
            told.append(error)

    other = sql.create_engine(database.url)
    with other.connect() as connection:
        connection.execute(fences.update().where(fences.c.run == table).values(attempt=2))
        thread = threading.Thread(target=late)
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        connection.commit()
        thread.join(LONG_S)
    other.dispose()
    first.close()
    assert len(told) == 1


def test_at_least_once_keeps_what_came_first(url: str, table: str, stored: Any, tmp_path: Path) -> None:
    engine = Engine(lambda: DatabaseSink(url, table, level="at_least_once"), tmp_path / "sink", run="r")
    for _ in range(3):
        attempt = engine.start()
        engine.feed(attempt, 2)
        attempt.close()
    assert [(key, event["attempt"]) for _, key, event in stored()] == [("0.0", 2), ("0.1", 1), ("1.0", 2), ("1.1", 1)]


def test_a_new_level_goes_on_from_the_old(url: str, table: str, stored: Any, tmp_path: Path) -> None:
    """What `committed` has decided and not published is published, whatever the level after it."""
    level = "committed"
    engine = Engine(lambda: DatabaseSink(url, table, level=level), tmp_path / "sink", run="r")
    attempt = engine.start()
    engine.feed(attempt, 6)
    engine.decide(attempt, engine.prepare(attempt))
    attempt.close()
    level = "latest"
    attempt = engine.start()
    attempt.close()
    assert [(key, event) for _, key, event in stored()] == sorted(engine.history, key=lambda one: one[0])


def test_runs_that_share_a_table_do_not_touch_each_other(url: str, table: str, stored: Any, tmp_path: Path) -> None:
    runs = [Engine(lambda: DatabaseSink(url, table), tmp_path / name, run=name) for name in ("a", "b")]
    attempts = [run.start() for run in runs]
    for run, attempt in zip(runs, attempts, strict=True):
        run.feed(attempt, 2)
        attempt.close()
    runs[0].start().close()
    assert [(run, key) for run, key, _ in stored()] == [("b", "0.1"), ("b", "1.1")]


def test_a_failover_is_waited_for_and_nothing_is_lost_or_doubled(
    database: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """PostgreSQL goes away in the middle of a stream, for a while, at both levels."""
    table = f"waited_{time.time_ns()}"
    levels = ("latest", "committed")
    engines = [
        Engine(lambda level=level: DatabaseSink(database.url, f"{table}_{level}", level=level), tmp_path / level, table)
        for level in levels
    ]
    attempts = [engine.start() for engine in engines]
    for engine, attempt in zip(engines, attempts, strict=True):
        engine.complete(attempt)
    database.stop()
    back = threading.Timer(0.7, database.start)
    back.start()
    for engine, attempt in zip(engines, attempts, strict=True):
        engine.complete(attempt)
        attempt.close()
    back.join()
    for engine, level in zip(engines, levels, strict=True):
        reading = sql.create_engine(database.url)
        with reading.connect() as connection:
            found = connection.execute(sql.text(f'SELECT id, event FROM "{table}_{level}" ORDER BY id')).all()
        reading.dispose()
        assert [row.id for row in found] == sorted(key for key, _ in engine.history)
    told = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert any(": away, waited for up to 900 s; " in one for one in told)
    assert any(": back after " in one for one in told)


def test_a_database_that_stays_away_is_given_up(database: Any, tmp_path: Path) -> None:
    table = f"given_up_{time.time_ns()}"
    engine = Engine(lambda: DatabaseSink(database.url, table, patience_s=0.3), tmp_path / "sink", run=table)
    attempt = engine.start()
    database.stop()
    try:
        with pytest.raises(EngineError, match=f"^table '{table}' at postgresql.*: away for 0.3 s; .*"):
            engine.feed(attempt, 2)
    finally:
        database.start()
    attempt.close()


def test_an_error_of_sql_is_not_waited_for(url: str, table: str, tmp_path: Path) -> None:
    engine = Engine(lambda: DatabaseSink(url, table), tmp_path / "sink")
    attempt = engine.start()
    other = connect(database_url(url))
    with other.begin() as connection:
        connection.exec_driver_sql(f"DROP TABLE {table}")
    other.dispose()
    with pytest.raises(sql.exc.DBAPIError, match=table):
        engine.feed(attempt, 2)
    attempt.close()


def test_the_marker_says_how_far_a_part_is(url: str, table: str, tmp_path: Path) -> None:
    engine = Engine(lambda: DatabaseSink(url, table, level="committed"), tmp_path / "sink", run=table)
    attempt = engine.start(pool=2)
    engine.complete(attempt)
    engine.complete(attempt, count=1)  # all of it for the first replica
    attempt.close()
    reading = sql.create_engine(database_url(url))
    with reading.connect() as connection:
        found = connection.execute(sql.select(markers).where(markers.c.run == table).order_by("part")).all()
    reading.dispose()
    assert [(row.operator, row.part, row.checkpoint) for row in found] == [("end", 0, 2), ("end", 1, 1)]


faults = st.tuples(st.sampled_from(STEPS), st.integers(1, 4), st.integers(0, 2), st.booleans())


@pytest.mark.parametrize("level", ["latest", "committed"])
@given(plan=st.lists(faults, min_size=1, max_size=4))
@settings(max_examples=8)
def test_whatever_the_faults_there_is_one_history(
    level: str, plan: list[tuple[str, int, int, bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """SQLite: any sequence of deaths, with any pools, after any number of good checkpoints, some given up."""
    folder = tmp_path_factory.mktemp("history")
    url = f"sqlite:///{folder / 'events.db'}"
    engine = Engine(lambda: DatabaseSink(url, "events", level=level), folder / "sink")
    dead: list[Attempt] = []
    with pytest.MonkeyPatch.context() as patch:
        for step, pool, good, given_up in plan:
            attempt = engine.start(pool)
            for old in dead:
                goes_on(engine, old)
            for _ in range(good):
                engine.complete(attempt, count=5)
            if given_up:
                engine.give_up(attempt, count=3, most=1)
            for old in dead:
                goes_on(engine, old)
            dies(engine, attempt, step, WITHIN, patch)
            dead.append(attempt)
        engine.complete(last := engine.start(2))
    for attempt in (*dead, last):
        attempt.close()
    reading = sql.create_engine(url)
    with reading.connect() as connection:
        found = connection.execute(sql.text("SELECT id, event FROM events ORDER BY id")).all()
    reading.dispose()
    assert [row.id for row in found] == sorted(key for key, _ in engine.history)
    assert [json.loads(row.event) for row in found] == [
        event for _, event in sorted(engine.history, key=lambda one: one[0])
    ]
