"""What every store has to keep to: SQLite and PostgreSQL."""

from __future__ import annotations

import dataclasses
import sqlite3
import subprocess
import sys
import uuid
from contextlib import closing

import pytest
import sqlalchemy as sa

from penstock.errors import InputError
from penstock.metrics.rows import (
    CheckpointRow,
    DecisionRow,
    FaultRow,
    ForecastRow,
    IntervalRecord,
    IntervalRow,
    LateRow,
    LevelRows,
    ManagerRow,
    OperatorRow,
    PauseRow,
    PromiseRow,
    RunRow,
    SteeringRow,
    TimetableRow,
    WaitingRow,
    WorkerRow,
)
from penstock.metrics.store import Store

READ = "import sys; from penstock.metrics.store import Store; print(len(Store(sys.argv[1]).intervals('r')))"


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


def record(number, operators=2):
    interval = IntervalRow(
        number=number,
        time_s=5.0 * number,
        interval_s=5.0,
        source_input={"tweets": 100},
        entered=100,
        source_output=95.5,
        replicas=4,
        backlog=7,
        dropped=0,
        latency_count=95,
        latency_mean_ms=12.5,
        latency_p50_ms=10.0,
        latency_p99_ms=None,
        note="slots do not suffice",
    )
    names = [f"operator-{n:04}" for n in range(operators)]
    return IntervalRecord(
        interval=interval,
        operators=tuple(operator_row(number, name) for name in names),
        forecasts=(ForecastRow(number=number, series="tweets", step=1, rate=21.5, forecaster="drift"),),
        decisions=tuple(
            DecisionRow(number=number, operator=name, before=1, after=2, expected=100.5, reason="θ = 0.5")
            for name in names
        ),
        timetables=tuple(
            TimetableRow(number=number, operator=name, step=step, replicas=1 + step)
            for name in names
            for step in (1, 2)
        ),
        levels=levels(number),
        faults=(FaultRow(number=number, time_s=5.0 * number, cause="a worker was killed", deaths=1, seconds=2.5),),
        lateness=(LateRow(number=number, late=3),),
        checkpoints=(checkpoint_row(number),),
        waiting=tuple(WaitingRow(number=number, operator=name, held=4, booked=2, outside=1) for name in names),
    )


def checkpoint_row(number):
    return CheckpointRow(
        number=number,
        checkpoint=1_000_000_007,
        age_s=3.5,
        took_s=0.02,
        size_bytes=None,
        committed=7,
        given_up=1,
        every_s=10.0,
    )


def levels(number):
    """Two workers, one of which starts; two words a manager, and a pause."""
    worker = WorkerRow(
        number=number,
        time_s=5.0 * number,
        worker="here-1",
        region="here",
        state="available",
        capacity=2,
        hosted=1,
        utilisation=0.35,
        price=1.5,
    )
    said = ManagerRow(
        sequence=2 * number,
        time_s=5.0 * number,
        who="region here",
        word="proposed",
        subject="start a worker of here",
        reason="0 slots are free, 1 should be",
    )
    return LevelRows(
        workers=(worker, dataclasses.replace(worker, worker="here-2", state="starting", hosted=0, utilisation=None)),
        managers=(said, dataclasses.replace(said, sequence=2 * number + 1, who="infrastructure", word="granted")),
        pauses=(PauseRow(time_s=5.0 * number + 1, why="here-2 joined", seconds=2.25),),
    )


def operator_row(number, name):
    return OperatorRow(
        number=number,
        operator=name,
        received=100,
        received_by={"tweets": 100},
        processed=93,
        backlog=7,
        dropped=0,
        replicas=2,
        pool=8,
        busy_share=0.75,
        cpu_share=0.5,
        execution_time_s=None,
        incomplete=None,
    )


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


def order(number):
    return SteeringRow(
        sequence=number,
        time_s=5.0 * number,
        given_at="2026-01-01T00:00:00Z",
        who="Ana (127.0.0.1)",
        order={"order": "hold", "operator": "clean", "replicas": number + 1},
    )


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


class TestSqlite:
    def test_another_process_reads_in_the_middle_of_a_transaction(self, tmp_path):
        path = tmp_path / "metrics.sqlite"
        with closing(Store(str(path))) as store:
            store.start_run(RunRow(run="r", topology="t", policy="p", td_s=1, started_at="now"))
            store.write("r", record(0))
            with closing(sqlite3.connect(path)) as writer:
                writer.execute("BEGIN EXCLUSIVE")
                command = [sys.executable, "-c", READ, path]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout == "1\n"

    def test_a_reader_makes_no_new_file(self, tmp_path):
        with pytest.raises(InputError, match="no such file"):
            Store(str(tmp_path / "none.sqlite"), must_exist=True)

    def test_a_file_that_is_no_store(self, tmp_path):
        path = tmp_path / "notes.txt"
        path.write_text("not a database, and long enough to be read as one" * 20)
        with pytest.raises(InputError, match="cannot be opened; file is not a database"):
            Store(str(path))

    def test_a_reader_leaves_another_database_alone(self, tmp_path):
        path = tmp_path / "events.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE events (id TEXT)")
        with pytest.raises(InputError, match="has no tables of runs"):
            Store(str(path), must_exist=True)
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("events",)]

    def test_a_folder_that_cannot_be_made(self, tmp_path):
        (tmp_path / "notes.txt").write_text("a file")
        with pytest.raises(InputError, match=r"store '.*m\.db': cannot be opened; .*File exists"):
            Store(str(tmp_path / "notes.txt" / "m.db"))

    def test_tables_of_another_version(self, tmp_path):
        path = str(tmp_path / "metrics.sqlite")
        Store(path).close()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE schema_version SET version = 99")
            connection.commit()
        with pytest.raises(InputError, match="tables must be of version 1 to 9; got 99"):
            Store(path)

    @pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6, 7, 8])
    def test_a_store_of_an_older_version(self, version, tmp_path):
        """A reader leaves it as it is; a run that writes to it adds what it lacks, and loses nothing."""
        path = old_store(tmp_path / "metrics.sqlite", version)
        before, kept, workers = path.read_bytes(), 4 * (version >= 2), version >= 3
        with closing(Store(str(path), must_exist=True)) as reader:
            assert (reader.version, len(reader.intervals("r")), len(reader.timetables("r"))) == (version, 1, kept)
            assert (len(reader.workers("r")), len(reader.pauses("r")), len(reader.faults("r"))) == (
                2 * workers,
                workers,
                version >= 4,
            )
            assert (len(reader.waiting("r")), reader.steering("r")) == (2 * (version >= 5), [])
            late = [LateRow(number=0, late=3)] if version >= 7 else []
            assert (reader.promise("r"), reader.lateness("r"), reader.scores("r")) == (None, late, [])
            assert reader.checkpoints("r") == []
        assert path.read_bytes() == before
        with closing(Store(str(path))) as store:
            store.write("r", record(1))
            store.write_order("r", order(1))
            assert [row.number for row in store.intervals("r")] == [0, 1]
            assert {row.number for row in store.timetables("r")} == ({0, 1} if kept else {1})
            assert {row.number for row in store.workers("r")} == ({0, 1} if workers else {1})
        with closing(Store(str(path), must_exist=True)) as reader:
            assert (reader.version, len(reader.timetables("r"))) == (9, kept + 4)
            assert (len(reader.workers("r")), len(reader.managers("r"))) == (2 + 2 * workers, 2 + 2 * workers)
            assert (len(reader.pauses("r")), len(reader.faults("r"))) == (1 + workers, 1 + (version >= 4))
            assert [row.number for row in reader.waiting("r")] == [*([0, 0] if version >= 5 else []), 1, 1]
            assert reader.steering("r") == [order(1)]
            assert (reader.promise("r"), reader.lateness("r")) == (None, [*late, LateRow(number=1, late=3)])
            assert [row.number for row in reader.checkpoints("r")] == [1]

    @pytest.mark.parametrize("place", ["sqlite://", "sqlite:///:memory:"])
    def test_memory_is_refused(self, place):
        with pytest.raises(InputError, match="SQLite needs a file"):
            Store(place)


WORKERS = ("workers", "managers", "pauses")
LATEST = ("faults", "waiting", "steering", "promises", "lateness", "scores", "limits", "shadows", "deciders")
LATEST += ("checkpoints",)
LATER_TABLES = {
    1: ("timetables", *WORKERS, *LATEST),
    2: (*WORKERS, *LATEST),
    3: LATEST,
    4: LATEST[1:],
    5: LATEST[2:],
    6: LATEST[3:],
    7: LATEST[5:],
    8: LATEST[9:],
}


def old_store(path, version):
    """A store with one interval, as that version left it."""
    with closing(Store(str(path))) as store:
        store.start_run(RunRow(run="r", topology="t", policy="p", td_s=1, started_at="now"))
        store.write("r", record(0))
    with closing(sqlite3.connect(path)) as connection:
        for table in LATER_TABLES[version]:
            connection.execute(f"DROP TABLE {table}")
        connection.execute("UPDATE schema_version SET version = ?", (version,))
        connection.commit()
    return path


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
