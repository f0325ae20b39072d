"""What every store has to keep to: SQLite and PostgreSQL."""

from __future__ import annotations

import uuid
from contextlib import closing

import pytest
import sqlalchemy as sa

from penstock.errors import InputError
from penstock.metrics.rows import (
    IntervalRecord,
    LevelRows,
    PromiseRow,
    RunRow,
)
from penstock.metrics.store import Store

from .stored import levels, order, record


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "new" / "metrics.sqlite")
    return request.getfixturevalue("database").url


@pytest.fixture
def store(place):
    with closing(Store(place)) as store:
        yield store


@pytest.fixture
def run(store):
    row = RunRow(
        run=uuid.uuid4().hex,
        topology="twitter",
        policy="psps",
        td_s=5.0,
        started_at="2026-01-01T00:00:00Z",
        settings={"pool": 8, "grouping": "load_balancing"},
    )
    store.start_run(row, PromiseRow(late=0.01, target_ms=2000.0))
    return row


def test_what_was_written_is_read(store, run):
    one = record(0)
    store.write(run.run, one)
    assert run in store.runs()
    assert store.intervals(run.run) == [one.interval]
    assert store.operators(run.run) == list(one.operators)
    assert store.forecasts(run.run) == list(one.forecasts)
    assert store.decisions(run.run) == list(one.decisions)
    assert store.timetables(run.run) == list(one.timetables)
    assert store.workers(run.run) == list(one.levels.workers)
    assert store.managers(run.run) == list(one.levels.managers)
    assert store.pauses(run.run) == list(one.levels.pauses)
    assert store.faults(run.run) == list(one.faults)
    assert store.waiting(run.run) == list(one.waiting)
    assert store.lateness(run.run) == list(one.lateness)
    assert store.checkpoints(run.run) == list(one.checkpoints)
    assert store.promise(run.run) == PromiseRow(late=0.01, target_ms=2000.0)
    assert store.promise("another") is None


def test_orders_are_read_as_they_were_given(store, run):
    for number in (2, 1):
        store.write_order(run.run, order(number))
    assert store.steering(run.run) == [order(1), order(2)]
    assert store.steering("another") == []


def test_rows_come_in_order_and_one_operator_alone(store, run):
    for number in (2, 0, 1):
        store.write(run.run, record(number))
    assert [row.number for row in store.intervals(run.run)] == [0, 1, 2]
    one = store.operators(run.run, "operator-0001")
    assert [(row.number, row.operator) for row in one] == [(n, "operator-0001") for n in range(3)]
    assert len(store.decisions(run.run, "operator-0000")) == 3
    ahead = store.timetables(run.run, "operator-0000")
    assert [(row.number, row.step) for row in ahead] == [(n, step) for n in range(3) for step in (1, 2)]
    workers = store.workers(run.run)
    assert [(row.number, row.worker) for row in workers] == [(n, w) for n in range(3) for w in ("here-1", "here-2")]
    assert [row.sequence for row in store.managers(run.run)] == list(range(6))
    assert [row.time_s for row in store.pauses(run.run)] == [1.0, 6.0, 11.0]


def test_runs_are_kept_apart(store, run):
    store.write(run.run, record(0))
    assert store.intervals("another") == store.workers("another") == store.managers("another") == []
    assert store.pauses("another") == []


def test_a_run_that_ended(store, run):
    store.finish_run(run.run, "2026-01-01T01:00:00Z")
    (row,) = [one for one in store.runs() if one.run == run.run]
    assert row.finished_at == "2026-01-01T01:00:00Z"


def test_a_name_is_used_once(store, run):
    with pytest.raises(InputError, match="a run's name must be new"):
        store.start_run(run)


def test_an_interval_is_written_whole_or_not_at_all(store, run):
    broken = record(0)
    twice = (*broken.decisions, broken.decisions[0])
    with pytest.raises(Exception, match=r"(?i)unique"):
        store.write(run.run, IntervalRecord(interval=broken.interval, operators=broken.operators, decisions=twice))
    assert store.intervals(run.run) == []
    assert store.operators(run.run) == []
    same_worker = LevelRows(workers=levels(0).workers[:1] * 2, managers=levels(0).managers)
    with pytest.raises(Exception, match=r"(?i)unique"):
        store.write(run.run, IntervalRecord(interval=broken.interval, levels=same_worker))
    assert store.intervals(run.run) == store.workers(run.run) == store.managers(run.run) == []


def test_another_reads_while_a_run_writes(place, store, run):
    with closing(Store(place, must_exist=True)) as reader:
        for number in range(20):
            store.write(run.run, record(number))
            assert len(reader.intervals(run.run)) == number + 1


def test_hundreds_of_operators_take_no_more_statements_than_one(store, run):
    """A statement for each would not be done within a short interval."""
    statements = []
    sa.event.listen(store._engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    store.write(run.run, record(0, operators=1))
    of_one = statements[:]
    store.write(run.run, record(1, operators=500))
    assert statements == of_one * 2
    assert len(store.operators(run.run)) == 501


def test_a_run_that_cannot_begin_leaves_no_connection(store, run):
    """Nobody closed its store: Python 3.13 warns of that."""
    with pytest.raises(InputError, match="a run's name must be new"), store.closed_unless_done():
        store.start_run(run)
    assert store._engine.pool.checkedin() == 0
    with store.closed_unless_done():
        store.runs()
    assert store._engine.pool.checkedin() == 1


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("mysql://host/db", "must be SQLite or PostgreSQL; got 'mysql'"),
        ("://", "must be a file or a database URL; got '://'"),
        (
            "postgresql://me:hush@host:port/db",
            r"must be a file or a database URL; got 'postgresql://me:\*\*\*@host:port/db'",
        ),
    ],
)
def test_places_that_cannot_be(place, message):
    with pytest.raises(InputError, match=message):
        Store(place)


def test_a_database_that_is_not_there_is_said_without_its_password():
    with pytest.raises(InputError, match="cannot be opened") as raised:
        Store("postgresql://user:hush@127.0.0.1:1/penstock")
    assert "hush" not in str(raised.value)
