"""The tables of sinks in SQLite and PostgreSQL: connecting, waiting, versions, and what makes rows one history."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, TypeVar

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from penstock.common.secrets import HIDDEN, is_telling, masked_url, resolve, without
from penstock.common.wal import private_database, write_ahead
from penstock.errors import AwayError, EngineError, InputError
from penstock.sinks.waiting import Waiting

Answer = TypeVar("Answer")

BUSY_TIMEOUT_S = 60.0
LIVELY = {"connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
AWAY = ("08", "25006", "40001", "40P01", "53300", "57P")  # SQLSTATEs of lost connections, failover and lost races
_LOCK = 0x70656E73746F636B  # one maker of tables at a time
_BACKENDS = ("sqlite", "postgresql")

_metadata = sql.MetaData()
versions = sql.Table(
    "penstock_tables",
    _metadata,
    sql.Column("name", sql.String, primary_key=True),
    sql.Column("version", sql.Integer, nullable=False),
)
fences = sql.Table(  # writers of an older attempt may not write any more
    "penstock_fences",
    _metadata,
    sql.Column("run", sql.String, primary_key=True),
    sql.Column("name", sql.String, primary_key=True),
    sql.Column("attempt", sql.BigInteger, nullable=False),
)
markers = sql.Table(  # up to which checkpoint a part has been published
    "penstock_markers",
    _metadata,
    sql.Column("run", sql.String, primary_key=True),
    sql.Column("operator", sql.String, primary_key=True),
    sql.Column("part", sql.Integer, primary_key=True),
    sql.Column("checkpoint", sql.BigInteger, nullable=False),
)


class Database:
    """A connection that is made when it is needed, and made anew where it was lost; safe to ship before that."""

    def __init__(self, url: str, thing: str, patience_s: float) -> None:
        self.url = database_url(url)
        self._thing = f"{thing} at {shown(self.url)}"
        self._waiting = Waiting(self, patience_s)
        self._engine: sql.Engine | None = None

    def __str__(self) -> str:
        return self._thing

    @property
    def insert(self) -> Callable[[sql.Table], Any]:
        """An `INSERT` that knows `ON CONFLICT`."""
        return sqlite.insert if self.url.get_backend_name() == "sqlite" else postgresql.insert

    def transaction(self, work: Callable[[sql.Connection], Answer]) -> Answer:
        """Do this in one transaction; where the database is away, wait and do it again, so it must bear that."""
        while True:
            try:
                answer = self.once(work)
            except DBAPIError as error:
                if not is_away(error):
                    raise
                reason = self._reason(error)
                self.close()
                self._waiting.pause(reason)
            else:
                self._waiting.over()
                return answer

    def once(self, work: Callable[[sql.Connection], Answer]) -> Answer:
        """Do this in one transaction, without patience."""
        if self._engine is None:
            self._engine = connect(resolved(self.url, self._thing))
        with self._engine.begin() as connection:
            return work(connection)

    def check(self, work: Callable[[sql.Connection], object]) -> None:
        """Do this once; an InputError where the database does not let us, and an AwayError where it is not there."""
        try:
            self.once(work)
        except DBAPIError as error:
            kind = AwayError if is_away(error) else InputError
            raise kind(f"{self}: cannot be used; {self._reason(error)}") from None
        finally:
            self.close()

    def _reason(self, error: DBAPIError) -> str:
        """What the database itself says, without our password."""
        return without(reason_of(error), [] if self._engine is None else secrets_of(self._engine.url))

    def close(self) -> None:
        """Disconnect; the next use connects anew."""
        if self._engine is not None:
            self._engine.dispose()
        self._engine = None


def connect(url: sql.URL) -> sql.Engine:
    """An engine for writing: SQLite's transactions take their turn when they begin, and keep readers going."""
    if url.get_backend_name() == "postgresql":
        lively = {name: value for name, value in LIVELY.items() if name not in url.query}
        return sql.create_engine(url, pool_size=1, connect_args=lively)
    private_database(url.database)
    engine = sql.create_engine(url)
    sql.event.listen(engine, "connect", _set_up_sqlite)
    sql.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions begin as we say, and hold changes of tables, too
    write_ahead(connection, BUSY_TIMEOUT_S)


def database_url(url: str) -> sql.URL:
    """The URL, parsed, with psycopg for PostgreSQL; an InputError, without a password, where it cannot be used."""
    scheme, colon, rest = url.partition("://")
    if scheme in ("postgres", "postgresql"):
        scheme = "postgresql+psycopg"
    try:
        parsed = sql.make_url(scheme + colon + rest)
        backend = parsed.get_backend_name()
        if backend in _BACKENDS:
            parsed.get_dialect().import_dbapi()
    except (ArgumentError, NoSuchModuleError, ValueError):
        raise InputError(f"database sink: must be the URL of a database; got {masked_url(url)!r}") from None
    except ModuleNotFoundError as error:
        raise InputError(
            f"database sink: {parsed.drivername} needs the package {error.name}; for psycopg: "
            "pip install 'penstock[postgresql]'"
        ) from None
    if backend not in _BACKENDS:
        raise InputError(f"database sink: must be {' or '.join(_BACKENDS)}; got {backend!r}")
    return parsed


def shown(url: sql.URL) -> str:
    """The URL as it may be shown.

    >>> shown(sql.make_url("postgresql://ann:sea@host/db?sslpassword=dam&sslmode=require"))
    'postgresql://ann:***@host/db?sslmode=require&sslpassword=***'
    """
    query = {name: HIDDEN if is_telling(name) else value for name, value in url.query.items()}
    rendered = url.set(query=dict(sorted(query.items()))).render_as_string(hide_password=True)
    return rendered.replace("%2A%2A%2A", HIDDEN)


def resolved(url: sql.URL, thing: str) -> sql.URL:
    """The URL with the secrets that it refers to: `${env:NAME}` or `${file:/path}` as password, or in the query."""
    query = {name: resolve(thing, one) if isinstance(one, str) else one for name, one in url.query.items()}
    password = None if url.password is None else resolve(thing, str(url.password))
    return url.set(query=query, password=password) if password is not None else url.set(query=query)


def secrets_of(url: sql.URL) -> list[object]:
    """What of the URL is not for messages."""
    return [url.password, *(value for name, value in url.query.items() if is_telling(name))]


def is_away(error: DBAPIError) -> bool:
    """Whether the database is not there or not ready, as in a failover; an error of SQL is not such a one."""
    told = error.orig
    if isinstance(told, sqlite3.Error):
        return getattr(told, "sqlite_errorname", "").startswith("SQLITE_BUSY")
    state = getattr(told, "sqlstate", None)
    if state is None:  # no server said this
        return error.connection_invalidated or isinstance(error, sql.exc.OperationalError)
    return error.connection_invalidated or str(state).startswith(AWAY)


def reason_of(error: DBAPIError) -> str:
    """What the database itself says, in one line."""
    lines = str(error.orig).strip().splitlines()
    return lines[0] if lines else type(error.orig).__name__


def make_table(connection: sql.Connection, table: sql.Table, added: tuple[str, ...] = ()) -> None:
    """Make the table and those beside it, or bring one of version 1, which lacked the columns `added`, up to date."""
    if connection.dialect.name == "postgresql":
        connection.execute(sql.select(sql.func.pg_advisory_xact_lock(_LOCK)))
    _metadata.create_all(connection)
    ours = 2 if added else 1
    version = connection.scalar(sql.select(versions.c.version).where(versions.c.name == table.name))
    if version is None:
        version = _version_of(connection, table, added)
        table.create(connection, checkfirst=True)
        connection.execute(versions.insert().values(name=table.name, version=ours))
    if version > ours:
        raise InputError(f"table '{table.name}': must be of version {ours} or older; got {version}")
    if version < ours:
        for name in added:
            column = sql.schema.CreateColumn(table.c[name]).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {_quoted(connection, table)} ADD COLUMN {column}")
        connection.execute(versions.update().where(versions.c.name == table.name).values(version=ours))


def _version_of(connection: sql.Connection, table: sql.Table, added: tuple[str, ...]) -> int:
    """Of a table that was made before versions were kept, by its columns; the newest where there is none."""
    inspector = sql.inspect(connection)
    if not inspector.has_table(table.name):
        return 2 if added else 1
    found, ours = {column["name"] for column in inspector.get_columns(table.name)}, set(table.c.keys())
    if found == ours:
        return 2 if added else 1
    if found == ours - set(added):
        return 1
    told = f"must have the columns {', '.join(table.c.keys())}; got {', '.join(sorted(found))}"
    raise InputError(f"table '{table.name}': is not one of Penstock's: {told}")


def _quoted(connection: sql.Connection, table: sql.Table) -> str:
    return connection.dialect.identifier_preparer.format_table(table)


class Fence:
    """A row that says which attempt may write to a table; who writes holds it, so that nobody passes it meanwhile."""

    def __init__(self, database: Database, table: str, run: str) -> None:
        self._database = database
        self._table = table
        self._run = run
        self._mine = (fences.c.run == run) & (fences.c.name == table)
        self._held = sql.select(fences.c.attempt).where(self._mine).with_for_update(read=True)

    def make(self, connection: sql.Connection) -> None:
        """Put it up if there is none."""
        row = {"run": self._run, "name": self._table, "attempt": 0}
        connection.execute(self._database.insert(fences).values(row).on_conflict_do_nothing())

    def raise_to(self, connection: sql.Connection, attempt: int) -> None:
        """Let nobody of an earlier attempt pass from here on."""
        self.make(connection)
        connection.execute(fences.update().where(self._mine, fences.c.attempt < attempt).values(attempt=attempt))
        self.pass_by(connection, attempt)

    def pass_by(self, connection: sql.Connection, attempt: int) -> None:
        """Hold it for this transaction; an EngineError where a later attempt has raised it."""
        raised = connection.scalar(self._held)
        if raised is not None and raised > attempt:
            told = f"must be written by attempt {raised} of run '{self._run}' or a later one; got {attempt}"
            raise EngineError(f"table '{self._table}': {told}")


class Marker:
    """A row that says up to which checkpoint one part has been published."""

    def __init__(self, database: Database, run: str, operator: str, part: int) -> None:
        self._database = database
        self._row = {"run": run, "operator": operator, "part": part}
        self._mine = sql.and_(*(markers.c[name] == value for name, value in self._row.items()))

    def hold(self, connection: sql.Connection) -> int:
        """The checkpoint, which nobody else changes during this transaction."""
        first = self._database.insert(markers).values(**self._row, checkpoint=0)
        connection.execute(first.on_conflict_do_nothing())
        held = sql.select(markers.c.checkpoint).where(self._mine).with_for_update()
        return int(connection.scalar(held) or 0)

    def move(self, connection: sql.Connection, checkpoint: int) -> None:
        """Enter that all up to this checkpoint is published, in the transaction that publishes it."""
        connection.execute(markers.update().where(self._mine).values(checkpoint=checkpoint))
