"""A table as a queue: events in the order in which they were published, each once."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sql
from sqlalchemy.dialects import sqlite

from penstock.common.secrets import masked_url
from penstock.errors import InputError
from penstock.sinks.tables import Database, database_url, make_table
from penstock.sinks.waiting import PATIENCE_S


class Message(NamedTuple):
    """One event of a queue, and its place in it."""

    position: int
    run: str
    id: str
    event: Any


class QueueTable:
    """A table of a SQLite file. Readers keep the last position that they have read, and leave the rows.

    An id is there once, as it came first: what is done again after a failure adds only what comes under other ids.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> queue = QueueTable(f"sqlite:///{folder.name}/queue.db", "counts")
    >>> queue.open("r1")
    >>> queue.publish({"7.0": b'{"word": "gate"}', "7.1": b'{"word": "sea"}'}), queue.publish({"7.1": b"{}"})
    (0, 1)
    >>> queue.close()
    >>> [(one.id, one.event["word"]) for one in published(f"sqlite:///{folder.name}/queue.db", "counts", after=1)]
    [('7.1', 'sea')]
    >>> folder.cleanup()
    """

    def __init__(self, url: str, queue: str, *, patience_s: float = PATIENCE_S) -> None:
        _check_file(url)
        self._database = Database(url, f"queue '{queue}'", patience_s)
        self._rows = _table(queue)
        self._run: str | None = None

    def check(self) -> None:
        """Open the file once."""
        self._database.check(lambda connection: make_table(connection, self._rows))

    def open(self, run: str) -> None:
        """Connect, and make the table if it is not there."""
        self._run = run
        self._database.transaction(lambda connection: make_table(connection, self._rows))
        insert = sqlite.insert(self._rows).on_conflict_do_nothing(index_elements=["run", "id"])
        self._insert = insert.execution_options(preserve_rowcount=True)

    def publish(self, events: Mapping[str, bytes]) -> int:
        """Add those that are not there, in one transaction; how many were."""
        if self._run is None:
            raise RuntimeError("a queue is opened before it gets events")
        if not events:
            return 0
        now = time.time()
        rows = [
            {"run": self._run, "id": event_id, "published_at": now, "event": event.decode()}
            for event_id, event in events.items()
        ]
        added = self._database.transaction(lambda connection: connection.execute(self._insert, rows).rowcount)
        return len(rows) - added

    def close(self) -> None:
        """Disconnect."""
        self._database.close()


def published(url: str, queue: str = "events", *, after: int = 0) -> list[Message]:
    """What the queue of a SQLite file has beyond a position, in order; none while there is no such queue."""
    _check_file(url)
    engine, table = sql.create_engine(database_url(url)), _table(queue)
    try:
        if not sql.inspect(engine).has_table(queue):
            return []
        with engine.connect() as connection:
            rows = connection.execute(sql.select(table).where(table.c.position > after).order_by("position")).all()
    finally:
        engine.dispose()
    return [Message(row.position, row.run, row.id, msgspec.json.decode(row.event)) for row in rows]


def _check_file(url: str) -> None:
    try:
        file = sql.make_url(url).database
    except sql.exc.ArgumentError:
        file = None
    if not file or file == ":memory:":
        raise InputError(f"queue sink: sqlite needs a file, as in sqlite:///queue.db; got {masked_url(url)!r}")


def _table(name: str) -> sql.Table:
    return sql.Table(
        name,
        sql.MetaData(),
        sql.Column("position", sql.Integer, primary_key=True, autoincrement=True),
        sql.Column("run", sql.String, nullable=False),
        sql.Column("id", sql.String, nullable=False),
        sql.Column("published_at", sql.Double, nullable=False),
        sql.Column("event", sql.Text, nullable=False),
        sql.UniqueConstraint("run", "id"),
        sqlite_autoincrement=True,
    )
