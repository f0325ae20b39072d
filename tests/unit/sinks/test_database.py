"""The database sink: every event once, on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
import sqlalchemy as sql

from penstock.errors import InputError
from penstock.sinks import DatabaseSink
from penstock.sinks.database import connect, make_table, table_of

WRITE = """
import sys
from types import SimpleNamespace
from penstock.sinks import DatabaseSink
url, table, first = sys.argv[1], sys.argv[2], int(sys.argv[3])
context = SimpleNamespace(run="r", operator="end", replica=0, event_ids=(), repeated=lambda count: print(count))
sink = DatabaseSink(url, table)
print("ready", flush=True)
sys.stdin.readline()
sink.open(context)
for start in range(first, first + 60, 20):
    context.event_ids = tuple(str(n) for n in range(start, start + 20))
    sink.process_many([{"n": n} for n in range(start, start + 20)])
sink.close()
"""


@dataclass
class Replica:
    """The context of a replica, which counts what it is told was repeated."""

    run: str = "r"
    operator: str = "end"
    replica: int = 0
    event_ids: tuple[str, ...] = ()
    again: int = 0

    def repeated(self, count: int) -> None:
        self.again += count


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'events.db'}"
    return str(request.getfixturevalue("database").url)


@pytest.fixture
def table(url: str) -> Iterator[str]:
    """The name of a table of this test's own."""
    name = f"events_{uuid.uuid4().hex[:8]}"
    yield name
    engine = connect(url)
    table_of(name).drop(engine, checkfirst=True)
    engine.dispose()


@pytest.fixture
def stored(url: str, table: str) -> Callable[[], list[tuple[str, str, Any]]]:
    """The rows in the table: run, id, event."""

    def read() -> list[tuple[str, str, Any]]:
        engine = connect(url)
        with engine.connect() as connection:
            rows = connection.execute(sql.select(table_of(table)).order_by("run", "id")).all()
        engine.dispose()
        return [(row.run, row.id, json.loads(row.event)) for row in rows]

    return read


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
    engine = connect(url)
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
    told = [writer.communicate(timeout=60) for writer in writers]
    assert [err for _, err in told] == [""] * 3
    assert sorted(int(one) for _, one, _ in stored()) == list(range(100))
    assert sum(int(count) for out, _ in told for count in out.split()) == 3 * 60 - 100


def test_a_table_that_another_replica_made_first_is_no_error(url: str, table: str) -> None:
    engine = connect(url)
    make_table(engine, table_of(table))
    blind = table_of(table)
    blind.create = lambda *_, **__: table_of(table).create(engine, checkfirst=False)  # type: ignore[method-assign]
    make_table(engine, blind)  # it looked before the other one had made it
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
        ("events.db", "'events.db' is not a database URL: "),
        ("", "'' is not a database URL: "),
        ("nosql://host/db", "'nosql://host/db' is not a database URL: "),
        ("mysql://host/db", "must be sqlite or postgresql; got 'mysql'"),
    ],
)
def test_a_url_that_is_none_is_an_error_before_the_run(url: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        DatabaseSink(url)
    assert str(caught.value).startswith(f"database sink: {told}")


def test_a_sink_gets_nothing_before_it_is_opened(tmp_path: Path) -> None:
    sink = DatabaseSink(f"sqlite:///{tmp_path / 'events.db'}")
    with pytest.raises(RuntimeError, match="a sink is opened before it gets events"):
        sink.process("x")
    sink.close()
