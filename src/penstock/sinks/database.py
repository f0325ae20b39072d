"""A sink that stores events in a database, each once, however often it is repeated."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from penstock.common.wal import write_ahead
from penstock.errors import InputError
from penstock.topology import Context

BUSY_TIMEOUT_S = 60.0


class DatabaseSink:
    """One row an event: `run` and `id` (together the primary key), `stored_at` and `event` as JSON.

    SQLite or PostgreSQL by URL (`sqlite:///out.db`, `postgresql+psycopg://…`). A row that is already there stays, and
    is counted as repeated. All events of a call are stored in one transaction. `service_ms` is waited for each event.
    """

    def __init__(self, url: str, table: str = "events", *, service_ms: float = 0.0) -> None:
        try:
            parsed = sql.make_url(url)
            parsed.get_dialect()
        except (ArgumentError, NoSuchModuleError) as error:
            raise InputError(f"database sink: {url!r} is not a database URL: {error}") from None
        if parsed.get_backend_name() not in ("sqlite", "postgresql"):
            raise InputError(f"database sink: must be sqlite or postgresql; got {parsed.get_backend_name()!r}")
        self._url = url
        self._table = table
        self._service_s = service_ms / 1000
        self._engine: sql.Engine | None = None
        self._context: Context | None = None

    def open(self, context: Context) -> None:
        """Connect, and make the table if it is not there."""
        self._context = context
        self._engine = connect(self._url)
        self._rows = table_of(self._table)
        make_table(self._engine, self._rows)
        dialect: Any = sqlite if self._engine.dialect.name == "sqlite" else postgresql
        insert = dialect.insert(self._rows).on_conflict_do_nothing(index_elements=["run", "id"])
        self._insert = insert.execution_options(preserve_rowcount=True)  # else PostgreSQL's is not known

    def process(self, event: Any) -> None:
        """Store one event."""
        self.process_many([event])

    def process_many(self, events: list[Any]) -> None:
        """Store these events in one transaction."""
        if self._engine is None or self._context is None:
            raise RuntimeError("a sink is opened before it gets events")
        if self._service_s:
            time.sleep(self._service_s * len(events))
        now = time.time()
        rows = [
            {"run": self._context.run, "id": event_id, "stored_at": now, "event": msgspec.json.encode(event).decode()}
            for event_id, event in zip(self._context.event_ids, events, strict=True)
        ]
        with self._engine.begin() as connection:
            stored = connection.execute(self._insert, rows).rowcount
        self._context.repeated(len(rows) - stored)

    def close(self) -> None:
        """Disconnect."""
        if self._engine is not None:
            self._engine.dispose()


def connect(url: str) -> sql.Engine:
    """An engine that several processes can write through; SQLite waits for its turn and keeps readers going."""
    if not url.startswith("sqlite"):
        return sql.create_engine(url, pool_size=1)
    engine = sql.create_engine(url)
    sql.event.listen(engine, "connect", lambda connection, _: write_ahead(connection, BUSY_TIMEOUT_S))
    return engine


def table_of(name: str) -> sql.Table:
    """The table of stored events."""
    return sql.Table(
        name,
        sql.MetaData(),
        sql.Column("run", sql.String, primary_key=True),
        sql.Column("id", sql.String, primary_key=True),
        sql.Column("stored_at", sql.Double, nullable=False),
        sql.Column("event", sql.Text, nullable=False),
    )


def make_table(engine: sql.Engine, table: sql.Table) -> None:
    """Create the table; another replica may have been faster."""
    try:
        table.create(engine, checkfirst=True)
    except sql.exc.DBAPIError:
        if not sql.inspect(engine).has_table(table.name):
            raise
