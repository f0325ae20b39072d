"""A sink that stores events in a database, as one history, whatever died on the way."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import sqlalchemy as sql

from penstock.common.checks import choice
from penstock.common.storage import Storage
from penstock.sinks import staging
from penstock.sinks.base import LEVELS, Recovery
from penstock.sinks.staging import Message, Staged, Staging
from penstock.sinks.tables import Database, Fence, Marker, make_table
from penstock.sinks.waiting import PATIENCE_S
from penstock.topology import Context

ADDED = ("checkpoint", "attempt")  # columns that tables of version 0.1 lack


class DatabaseSink:
    """One row an event: `run` and `id` (the primary key), `stored_at`, `event` as JSON, `checkpoint` and `attempt`.

    SQLite or PostgreSQL by URL (`sqlite:///out.db`, `postgresql://user@host/db`). What the table holds, by `level`:

    - `latest`: rows at once, one transaction a call. After a failure what only the failed attempt wrote is removed
      before it is done again; its stragglers are kept out. A reader may see a row that is taken back later.
    - `committed`: rows once their checkpoint is committed, and exactly once; one transaction for each checkpoint and
      replica. Until then they wait in the run's folder.
    - `at_least_once`: rows at once; one that is there stays, whichever attempt wrote it.

    A row of the same attempt that is already there stays, and is counted as repeated. A database that is away is waited
    for, up to `patience_s`. `service_ms` is waited for each event.

    >>> DatabaseSink("sqlite:///out.db", level="newest")
    Traceback (most recent call last):
    penstock.errors.InputError: database sink: level must be one of at_least_once, latest, committed; got 'newest'
    """

    def __init__(
        self,
        url: str,
        table: str = "events",
        *,
        level: str = "latest",
        service_ms: float = 0.0,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.level = choice("database sink", "level", level, LEVELS)
        self._name = table
        self._database = Database(url, f"table '{table}'", patience_s)
        self._service_s = service_ms / 1000
        self._context: Context | None = None
        self._staging: Staging | None = None

    def check(self) -> None:
        """Connect once and make the tables; an InputError where that cannot be."""
        self._database.check(lambda connection: make_table(connection, table_of(self._name), ADDED))

    def recover(self, recovery: Recovery) -> None:
        """Complete what was committed, remove what was not, and keep earlier attempts out."""
        rows = _Rows(self._database, self._name, recovery.run)
        try:
            rows.take_back(recovery.attempt, recovery.checkpoint, removing=self.level == "latest")
            for part, staged in sorted(recovery.parts.items()):
                marker = Marker(self._database, recovery.run, recovery.operator, part)
                rows.publish(recovery.attempt, marker, recovery.folder, staging.of_part(staged))
            staging.clear(recovery.folder)
        finally:
            self._database.close()

    def open(self, context: Context) -> None:
        """Connect, and make the table if it is not there."""
        self._context = context
        self._rows = _Rows(self._database, self._name, context.run)
        if self.level != "at_least_once":
            self._rows.begin(context.attempt)
        if self.level == "committed":
            self._staging = Staging(context.folder, str(context.replica))
            self._marker = Marker(self._database, context.run, context.operator, context.replica)

    def process(self, event: Any) -> None:
        """Store one event."""
        self.process_many([event])

    def process_many(self, events: list[Any]) -> None:
        """Store these events in one transaction, or keep them until their checkpoint is committed."""
        context = self._context
        if context is None:
            raise RuntimeError("a sink is opened before it gets events")
        if self._service_s:
            time.sleep(self._service_s * len(events))
        pairs = zip(context.event_ids, events, strict=True)
        messages = [Message(event_id, msgspec.json.encode(event)) for event_id, event in pairs]
        if self._staging is not None:
            self._staging.add(context.attempt, context.checkpoint, messages)
        elif self.level == "latest":
            context.repeated(self._rows.replace(context.attempt, context.checkpoint, messages))
        else:
            context.repeated(self._rows.add(context.attempt, context.checkpoint, messages))

    def prepare(self, checkpoint: int) -> Any:
        """Have on disk what waits for this checkpoint; rows that were stored at once are safe already."""
        if self._staging is None:
            return None
        self._staging.seal()
        return staging.as_part(self._staging.up_to(checkpoint))

    def commit(self, checkpoint: int) -> None:
        """Store what has waited for this checkpoint, in one transaction."""
        if self._staging is None or self._context is None:
            return
        staged, about = self._staging.up_to(checkpoint), self._context
        about.repeated(self._rows.publish(about.attempt, self._marker, about.folder, staged))
        staging.remove(about.folder, staged)
        self._staging.forget(checkpoint)

    def close(self) -> None:
        """Disconnect."""
        if self._staging is not None:
            self._staging.close()
        self._database.close()


class _Rows:
    """The rows of one run in a table of events."""

    def __init__(self, database: Database, table: str, run: str) -> None:
        self._database = database
        self._run = run
        self._table = table_of(table)
        self._fence = Fence(database, table, run)
        insert = database.insert(self._table)
        counted = {"preserve_rowcount": True}  # else PostgreSQL's is not known
        new, key = insert.excluded, ["run", "id"]
        self._insert = insert.on_conflict_do_nothing(index_elements=key).execution_options(**counted)
        changes = {name: new[name] for name in ("stored_at", "event", *ADDED)}
        self._upsert = insert.on_conflict_do_update(
            index_elements=key, set_=changes, where=self._table.c.attempt < new.attempt
        ).execution_options(**counted)
        database.transaction(lambda connection: make_table(connection, self._table, ADDED))

    def begin(self, attempt: int) -> None:
        """See that there is a fence, and that this attempt may pass it."""

        def work(connection: sql.Connection) -> None:
            self._fence.make(connection)
            self._fence.pass_by(connection, attempt)

        self._database.transaction(work)

    def add(self, attempt: int, checkpoint: int, messages: list[Message]) -> int:
        """Insert what is not there; how many were."""
        rows = self._made(attempt, checkpoint, messages)
        return len(rows) - self._database.transaction(lambda connection: _stored(connection, self._insert, rows))

    def replace(self, attempt: int, checkpoint: int, messages: list[Message]) -> int:
        """Insert, or replace what an earlier attempt wrote; how many were there of the same attempt."""
        rows = self._made(attempt, checkpoint, messages)

        def work(connection: sql.Connection) -> int:
            self._fence.pass_by(connection, attempt)
            return _stored(connection, self._upsert, rows)

        return len(rows) - self._database.transaction(work)

    def take_back(self, attempt: int, checkpoint: int, *, removing: bool) -> None:
        """Fence off earlier attempts and, if so, remove what they wrote beyond the checkpoint."""
        here = self._table.c
        beyond = self._table.delete().where(here.run == self._run, here.checkpoint > checkpoint, here.attempt < attempt)

        def work(connection: sql.Connection) -> None:
            self._fence.raise_to(connection, attempt)
            if removing:
                connection.execute(beyond)

        self._database.transaction(work)

    def publish(self, attempt: int, marker: Marker, folder: Storage, staged: list[Staged]) -> int:
        """Insert what these files hold beyond the part's marker, and move the marker; how many rows were there."""
        if not staged:
            return 0

        def work(connection: sql.Connection) -> int:
            self._fence.pass_by(connection, attempt)
            done, again = marker.hold(connection), 0
            for one in (one for one in staged if one.checkpoint > done):
                for messages in staging.read(folder, one):
                    rows = self._made(one.attempt, one.checkpoint, messages)
                    again += len(rows) - _stored(connection, self._insert, rows)
            marker.move(connection, max(done, staged[-1].checkpoint))
            return again

        return self._database.transaction(work)

    def _made(self, attempt: int, checkpoint: int, messages: list[Message]) -> list[dict[str, object]]:
        same = {"run": self._run, "stored_at": time.time(), "checkpoint": checkpoint, "attempt": attempt}
        return [{**same, "id": message.id, "event": message.value.decode()} for message in messages]


def _stored(connection: sql.Connection, statement: Any, rows: list[dict[str, object]]) -> int:
    return int(connection.execute(statement, rows).rowcount) if rows else 0


def table_of(name: str) -> sql.Table:
    """The table of stored events."""
    return sql.Table(
        name,
        sql.MetaData(),
        sql.Column("run", sql.String, primary_key=True),
        sql.Column("id", sql.String, primary_key=True),
        sql.Column("stored_at", sql.Double, nullable=False),
        sql.Column("event", sql.Text, nullable=False),
        sql.Column("checkpoint", sql.BigInteger, nullable=False, server_default="0"),
        sql.Column("attempt", sql.BigInteger, nullable=False, server_default="0"),
    )
