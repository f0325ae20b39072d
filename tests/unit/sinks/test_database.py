"""The database sink: every event once, on SQLite and on PostgreSQL."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cloudpickle
import pytest
import sqlalchemy as sql

from penstock.errors import EngineError, InputError
from penstock.sinks import DatabaseSink
from penstock.sinks.database import ADDED, table_of
from penstock.sinks.tables import connect, database_url, resolved, versions
from tests.waiting import LONG_S

from ...services import free_port
from .playing import Replica

WRITE = """
import sys
from types import SimpleNamespace
from penstock.sinks import DatabaseSink
url, table, first = sys.argv[1], sys.argv[2], int(sys.argv[3])
context = SimpleNamespace(
    run="r", operator="end", replica=0, checkpoint=1, attempt=1, event_ids=(), repeated=lambda count: print(count)
)
sink = DatabaseSink(url, table)
print("ready", flush=True)
sys.stdin.readline()
sink.open(context)
for start in range(first, first + 60, 20):
    context.event_ids = tuple(str(n) for n in range(start, start + 20))
    sink.process_many([{"n": n} for n in range(start, start + 20)])
sink.close()
"""


def opened(url: str, table: str, context: Replica, **options: Any) -> Any:
    sink = cloudpickle.loads(cloudpickle.dumps(DatabaseSink(url, table, **options)))  # as it is shipped
    sink.open(context)
    return closing(sink)


def test_every_event_is_a_row_with_its_id_and_time(url: str, table: str, stored: Any) -> None:
    context, before = Replica(), time.time()
    with opened(url, table, context) as sink:
        context.event_ids = ("7",)
        sink.process({"text": "über"})
        context.event_ids = ("8.0", "8.1")
        sink.process_many([{"n": 1}, {"n": 2}])
    assert stored() == [("r", "7", {"text": "über"}), ("r", "8.0", {"n": 1}), ("r", "8.1", {"n": 2})]
    assert context.again == 0
    engine = connect(database_url(url))
    with engine.connect() as connection:
        times = connection.scalars(sql.select(table_of(table).c.stored_at)).all()
    engine.dispose()
    assert all(before <= one <= time.time() for one in times)


def test_a_repeated_event_stays_one_row_and_is_counted(url: str, table: str, stored: Any) -> None:
    context = Replica()
    with opened(url, table, context) as sink:
        context.event_ids = ("1", "2")
        sink.process_many(["a", "b"])
    with opened(url, table, context) as sink:  # another replica, or the same after a restart
        context.event_ids = ("2", "3", "1")
        sink.process_many(["B", "c", "A"])
        context.event_ids = ("3",)
        sink.process("C")
    assert stored() == [("r", "1", "a"), ("r", "2", "b"), ("r", "3", "c")]
    assert context.again == 3


def test_runs_do_not_mix(url: str, table: str, stored: Any) -> None:
    for run in ("one", "other"):
        context = Replica(run=run, event_ids=("1",))
        with opened(url, table, context) as sink:
            sink.process(run)
        assert context.again == 0
    assert stored() == [("one", "1", "one"), ("other", "1", "other")]


def test_a_call_is_stored_whole_or_not_at_all(url: str, table: str, stored: Any) -> None:
    context = Replica(event_ids=("1", "2"))
    with opened(url, table, context) as sink:
        with pytest.raises(TypeError):
            sink.process_many([{"n": 1}, {"n": object()}])
        with pytest.raises(ValueError, match="zip"):
            sink.process_many([{"n": 1}])  # an event without an id
    assert stored() == []


def test_several_processes_write_at_once(url: str, table: str, stored: Any) -> None:
    """Three replicas that open the sink at the same moment; each writes 60 events, half of them its neighbour's too."""
    command = [sys.executable, "-c", WRITE, url, table]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    writers = [subprocess.Popen([*command, str(first)], text=True, **pipes) for first in (0, 20, 40)]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    told = [writer.communicate(timeout=LONG_S) for writer in writers]
    assert [err for _, err in told] == [""] * 3
    assert sorted(int(one) for _, one, _ in stored()) == list(range(100))
    assert sum(int(count) for out, _ in told for count in out.split()) == 3 * 60 - 100


def test_a_table_of_version_0_1_gets_the_columns_it_lacks(url: str, table: str, stored: Any) -> None:
    old = sql.Table(table, sql.MetaData(), *(one._copy() for one in table_of(table).columns if one.name not in ADDED))
    engine = connect(database_url(url))
    old.create(engine)
    with engine.begin() as connection:
        connection.execute(old.insert().values(run="old", id="1", stored_at=0.0, event='"kept"'))
    context = Replica(event_ids=("1",))
    for _ in range(2):
        with opened(url, table, context) as sink:
            sink.process("new")
    assert stored() == [("old", "1", "kept"), ("r", "1", "new")]
    with engine.connect() as connection:
        told = connection.execute(sql.select(table_of(table).c["checkpoint", "attempt"]).order_by("run")).all()
    assert [tuple(row) for row in told] == [(0, 0), (1, 1)]
    engine.dispose()


def test_a_table_of_a_newer_version_or_of_somebody_else_is_refused(url: str, table: str) -> None:
    with opened(url, table, Replica()):
        pass
    engine = connect(database_url(url))
    with engine.begin() as connection:
        connection.execute(versions.update().where(versions.c.name == table).values(version=3))
    with pytest.raises(InputError, match=f"^table '{table}': must be of version 2 or older; got 3$"):
        DatabaseSink(url, table).check()
    other = sql.Table(f"{table}_other", sql.MetaData(), sql.Column("id", sql.Integer, primary_key=True))
    other.create(engine)
    told = "is not one of Penstock's: must have the columns run, id, stored_at, event, checkpoint, attempt; got id"
    with pytest.raises(InputError, match=f"^table '{other.name}': {told}$"):
        DatabaseSink(url, other.name).check()
    other.drop(engine)
    engine.dispose()


def test_service_time_is_waited_for_each_event(url: str, table: str) -> None:
    context = Replica(event_ids=("1", "2", "3"))
    with opened(url, table, context, service_ms=20.0) as sink:
        before = time.monotonic()
        sink.process_many([1, 2, 3])
        assert time.monotonic() - before >= 0.06


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("events.db", "must be the URL of a database; got 'events.db'"),
        ("", "must be the URL of a database; got ''"),
        ("nosql://me:hush@host/db", "must be sqlite or postgresql; got 'nosql'"),
        (
            "postgresql://me:hush@host:port/db?password=hush",
            "must be the URL of a database; got 'postgresql://me:***@host:port/db?password=***'",
        ),
        ("me:hush@host/db", "must be the URL of a database; got 'me:***@host/db'"),
        ("postgresql+asyncpg://me:hush@host/db", "postgresql+asyncpg needs the package asyncpg; for psycopg: pip"),
        ("oracle+x://me:hush@host/db", "must be sqlite or postgresql; got 'oracle'"),
    ],
)
def test_a_url_that_is_none_is_an_error_before_the_run_and_shows_no_password(url: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        DatabaseSink(url)
    assert str(caught.value).startswith(f"database sink: {told}")
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgres://me:hush@127.0.0.1:{port}/db",
        "postgresql://me@127.0.0.1:{port}/db?password=hush",
        "postgresql+psycopg:///db?host=127.0.0.1&port={port}&user=me&password=hush",
        "postgresql://me:${{env:PG_PASSWORD}}@127.0.0.1:{port}/db?sslpassword=hush",
    ],
)
def test_no_form_of_a_url_shows_its_password(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A password in the query stood in every message about the table."""
    monkeypatch.setenv("PG_PASSWORD", "hush")
    sink = DatabaseSink(url.format(port=free_port()), patience_s=0.0)
    with pytest.raises(InputError) as caught:
        sink.check()
    with pytest.raises(EngineError) as given_up:
        sink.open(Replica())
    shown = [str(caught.value), str(given_up.value), repr(sink), str(sink._database), caplog.text]
    assert not [one for one in shown if "hush" in one]


def test_a_password_is_read_where_it_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither on a command line nor in what is shipped."""
    (tmp_path / "password").write_text("sea:s@\n")
    monkeypatch.setenv("PG_PASSWORD", "dam/1")
    by_file = database_url(f"postgresql://me:${{file:{tmp_path}/password}}@host/db")
    by_env = database_url("postgresql://me:${env:PG_PASSWORD}@host/db?sslpassword=${env:PG_PASSWORD}")
    assert "sea" not in by_file.render_as_string(hide_password=False)
    assert resolved(by_file, "table").password == "sea:s@"
    assert (resolved(by_env, "table").password, resolved(by_env, "table").query["sslpassword"]) == ("dam/1", "dam/1")
    monkeypatch.delenv("PG_PASSWORD")
    with pytest.raises(InputError, match=r"table 'events' at .*: the environment has no variable 'PG_PASSWORD'"):
        DatabaseSink("postgresql://me:${env:PG_PASSWORD}@127.0.0.1/db").check()


def test_other_databases_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "MySQLdb", SimpleNamespace())
    with pytest.raises(InputError, match="must be sqlite or postgresql; got 'mysql'"):
        DatabaseSink("mysql://host/db")


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_postgresql_by_any_of_its_names(scheme: str, database: Any) -> None:
    DatabaseSink(database.url.replace("postgresql+psycopg", scheme), "events_by_name").check()


@pytest.mark.parametrize("who", ["stranger", "reader"])
def test_a_database_that_does_not_let_us_is_said_before_the_run(who: str, database: Any) -> None:
    """A user that is not there, and one who may read but not make tables."""
    engine = connect(database_url(database.url))
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP ROLE IF EXISTS reader")
        connection.exec_driver_sql("CREATE ROLE reader LOGIN")
    engine.dispose()
    url = database.url.replace("penstock@", f"{who}:hush@")
    said = {"stranger": 'role "stranger" does not exist', "reader": "permission denied"}[who]
    with pytest.raises(
        InputError, match=rf"^table 'new_one' at postgresql\+psycopg://{who}:.*: cannot be used; .*{said}"
    ) as e:
        DatabaseSink(url, "new_one").check()
    assert "hush" not in str(e.value)


def test_a_database_that_is_not_there_is_said_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be used; unable to open database file"):
        DatabaseSink(f"sqlite:///{tmp_path}/none/events.db").check()
    with pytest.raises(InputError, match=r"cannot be used; .*onnection refused") as caught:
        DatabaseSink(f"postgres://me:hush@127.0.0.1:{free_port()}/db").check()
    assert "hush" not in str(caught.value)


def test_a_sink_gets_nothing_before_it_is_opened(tmp_path: Path) -> None:
    sink = DatabaseSink(f"sqlite:///{tmp_path / 'events.db'}")
    with pytest.raises(RuntimeError, match="a sink is opened before it gets events"):
        sink.process("x")
    sink.close()
