"""The metrics store: what was seen, expected and done in every interval of every run.

SQLite by default (a file, in WAL mode: readable while a run writes), PostgreSQL by URL.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> store = Store(f"{folder.name}/metrics.sqlite")
>>> store.start_run(RunRow(run="r1", topology="twitter", policy="psps", td_s=5, started_at="2026-01-01T00:00:00Z"))
>>> [row.policy for row in store.runs()]
['psps']
>>> store.close(); folder.cleanup()
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from penstock.common.names import one_of
from penstock.common.secrets import masked_url, resolve
from penstock.common.wal import private_database, write_ahead
from penstock.errors import InputError
from penstock.metrics import schema
from penstock.metrics.rows import (
    CheckpointRow,
    DeciderRow,
    DecisionRow,
    FaultRow,
    ForecastRow,
    IntervalRecord,
    IntervalRow,
    LateRow,
    LimitRow,
    ManagerRow,
    OperatorRow,
    PauseRow,
    PromiseRow,
    RunRow,
    ScoreRow,
    ShadowRow,
    SteeringRow,
    TimetableRow,
    WaitingRow,
    WorkerRow,
)

Row = TypeVar("Row")  # any of them

_CONNECT_TIMEOUT_S = 5
_BUSY_TIMEOUT_S = 5.0


class Store:
    """Writes and reads runs. `place` is a file, or a SQLAlchemy URL (`postgresql://user@host/penstock`).

    With `must_exist` a missing file is an error instead of a new, empty store: for readers. A store of an older version
    gets the tables that it lacks; for a reader it stays as it is, and has nothing of what they would hold.
    """

    def __init__(self, place: str, *, must_exist: bool = False) -> None:
        self.url = _url(place)
        try:
            if self.url.get_backend_name() == "sqlite":
                _check_file(self.url, must_exist)
            self._engine = _engine(self.url)
        except (OSError, ImportError) as error:
            raise InputError(f"store {self}: cannot be opened; {reason_of(error)}") from error
        try:
            self.version = self._prepare(must_exist)
        except sa.exc.SQLAlchemyError as error:
            raise InputError(f"store {self}: cannot be opened; {reason_of(error)}") from error
        finally:
            self.close()  # until it is used: one that never is leaves no connection open

    def __str__(self) -> str:
        is_file = self.url.get_backend_name() == "sqlite"
        return repr(self.url.database if is_file else masked_url(self.url.render_as_string(hide_password=True)))

    def _prepare(self, reading: bool) -> int:
        """Make the tables that are not there, and give their version."""
        found = self._found()
        if found is not None and not schema.OLDEST <= found <= schema.VERSION:
            known = f"{schema.OLDEST} to {schema.VERSION}"
            raise InputError(f"store {self}: tables must be of version {known}; got {found}")
        if found is None and reading:
            raise InputError(f"store {self}: has no tables of runs; is it another database?")
        if found is not None and (reading or found == schema.VERSION):
            return found
        schema.metadata.create_all(self._engine)
        with self._engine.begin() as connection:
            connection.execute(schema.schema_version.delete())
            connection.execute(schema.schema_version.insert().values(version=schema.VERSION))
        return schema.VERSION

    def _found(self) -> int | None:
        """The version of the tables that are there; None where there are none."""
        with self._engine.connect() as connection:
            if not sa.inspect(connection).has_table(schema.schema_version.name):
                return None
            return connection.scalar(sa.select(schema.schema_version.c.version))

    def start_run(self, run: RunRow, promise: PromiseRow | None = None) -> None:
        """Enter a new run, and what it promises; its name must be new."""
        try:
            with self._engine.begin() as connection:
                connection.execute(schema.runs.insert().values(dataclasses.asdict(run)))
                if promise is not None:
                    connection.execute(schema.promises.insert().values(run=run.run, **_values(promise)))
        except sa.exc.IntegrityError:
            raise InputError(f"store {self}: a run's name must be new; got {run.run!r}") from None

    def finish_run(self, run: str, finished_at: str) -> None:
        """Enter when a run ended."""
        change = schema.runs.update().where(schema.runs.c.run == run).values(finished_at=finished_at)
        with self._engine.begin() as connection:
            connection.execute(change)

    def write(self, run: str, record: IntervalRecord) -> None:
        """Enter one interval in one transaction."""
        parts: tuple[tuple[sa.Table, Iterable[Any]], ...] = (
            (schema.intervals, (record.interval,)),
            (schema.operators, record.operators),
            (schema.forecasts, record.forecasts),
            (schema.decisions, record.decisions),
            (schema.timetables, record.timetables),
            (schema.workers, record.levels.workers),
            (schema.managers, record.levels.managers),
            (schema.pauses, record.levels.pauses),
            (schema.faults, record.faults),
            (schema.waiting, record.waiting),
            (schema.lateness, record.lateness),
            (schema.limits, record.limits),
            (schema.shadows, record.shadows),
            (schema.deciders, record.deciders),
            (schema.scores, record.scores),
            (schema.checkpoints, record.checkpoints),
        )
        self._insert(run, parts)

    def write_faults(self, run: str, faults: Iterable[FaultRow]) -> None:
        """Enter faults that no interval has."""
        self._insert(run, ((schema.faults, faults),))

    def write_order(self, run: str, order: SteeringRow) -> None:
        """Enter an order that was given."""
        self._insert(run, ((schema.steering, (order,)),))

    def _insert(self, run: str, parts: Iterable[tuple[sa.Table, Iterable[Any]]]) -> None:
        with self._engine.begin() as connection:
            for table, rows in parts:
                if values := [{"run": run, **_values(row)} for row in rows]:
                    connection.execute(table.insert(), values)

    def runs(self) -> list[RunRow]:
        """All runs, oldest first."""
        table = schema.runs
        return self._read(RunRow, sa.select(table).order_by(table.c.started_at, table.c.run))

    def run(self, name: str | None = None) -> RunRow:
        """The run of that name, or the last."""
        runs = {row.run: row for row in self.runs()}
        if not runs:
            raise InputError(f"store {self}: must have a run; has none")
        return runs[list(runs)[-1] if name is None else one_of(f"store {self}, run", name, runs)]

    def intervals(self, run: str) -> list[IntervalRow]:
        """A run's intervals, in order."""
        return self._read(IntervalRow, _of_run(schema.intervals, run))

    def operators(self, run: str, operator: str | None = None) -> list[OperatorRow]:
        """A run's operators in each interval; all, or one."""
        return self._read(OperatorRow, _of_run(schema.operators, run, operator))

    def forecasts(self, run: str) -> list[ForecastRow]:
        """What a run expected."""
        return self._read(ForecastRow, _of_run(schema.forecasts, run))

    def decisions(self, run: str, operator: str | None = None) -> list[DecisionRow]:
        """What a run decided, with the reasons; for all operators, or one."""
        return self._read(DecisionRow, _of_run(schema.decisions, run, operator))

    def timetables(self, run: str, operator: str | None = None) -> list[TimetableRow]:
        """What a run planned ahead at the end of each interval; for all operators, or one."""
        return self._kept(TimetableRow, schema.timetables, run, operator)

    def workers(self, run: str) -> list[WorkerRow]:
        """A run's workers at the end of each interval."""
        return self._kept(WorkerRow, schema.workers, run)

    def managers(self, run: str) -> list[ManagerRow]:
        """What a run's managers said, in order."""
        return self._kept(ManagerRow, schema.managers, run)

    def pauses(self, run: str) -> list[PauseRow]:
        """When a run's sources stood still for a change of its workers."""
        return self._kept(PauseRow, schema.pauses, run)

    def faults(self, run: str) -> list[FaultRow]:
        """When a run's query died, and how long events stood still."""
        return self._kept(FaultRow, schema.faults, run)

    def waiting(self, run: str) -> list[WaitingRow]:
        """Where a run's backlog waited."""
        return self._kept(WaitingRow, schema.waiting, run)

    def promise(self, run: str) -> PromiseRow | None:
        """What a run promised, if the store knows."""
        return next(iter(self._kept(PromiseRow, schema.promises, run)), None)

    def lateness(self, run: str) -> list[LateRow]:
        """How many events were late in each interval of a run."""
        return self._kept(LateRow, schema.lateness, run)

    def scores(self, run: str) -> list[ScoreRow]:
        """How a run's decisions turned out, and those of policies in its shadow."""
        return self._kept(ScoreRow, schema.scores, run)

    def limits(self, run: str) -> list[LimitRow]:
        """What a run's policy was not let have, and why."""
        return self._kept(LimitRow, schema.limits, run)

    def shadows(self, run: str) -> list[ShadowRow]:
        """What policies in the shadow of a run's own would have decided."""
        return self._kept(ShadowRow, schema.shadows, run)

    def deciders(self, run: str) -> list[DeciderRow]:
        """Who decided in a run from when on, and why; nothing where nobody was in the shadow."""
        return self._kept(DeciderRow, schema.deciders, run)

    def checkpoints(self, run: str) -> list[CheckpointRow]:
        """How a run's checkpoints went, by interval; nothing where it made none."""
        return self._kept(CheckpointRow, schema.checkpoints, run)

    def steering(self, run: str) -> list[SteeringRow]:
        """The orders that a run was given, in order."""
        return self._kept(SteeringRow, schema.steering, run)

    def has(self, table: sa.Table) -> bool:
        """Whether a store of its version has the table."""
        return self.version >= schema.SINCE.get(table, schema.OLDEST)

    def select(self, query: sa.Select[Any], **values: object) -> Sequence[Any]:
        """The rows that a query finds in the tables of `schema`: for who wants a part of a run, or sums over it.

        A query that is asked often is made once, with `sa.bindparam` for what is given as `values`.
        """
        with self._engine.connect() as connection:
            return connection.execute(query, values).all()

    def tuples(self, query: sa.Select[Any], **values: object) -> list[tuple[Any, ...]]:
        """The same as the database has them: of ten thousand rows, those that know their names take twice as long."""
        with self._engine.connect() as connection:
            cursor: Any = connection.execute(query, values).cursor
            found: list[tuple[Any, ...]] = cursor.fetchall()
            return found

    def _kept(self, row: Callable[..., Row], table: sa.Table, run: str, operator: str | None = None) -> list[Row]:
        """A run's rows of a table, in order; none in a store from before there was such a table."""
        return self._read(row, _of_run(table, run, operator)) if self.has(table) else []

    def _read(self, row: Callable[..., Row], query: sa.Select[Any]) -> list[Row]:
        with self._engine.connect() as connection:
            found = connection.execute(query).mappings().all()
        names = [field.name for field in dataclasses.fields(row)]  # type: ignore[arg-type]
        return [row(**{name: one[name] for name in names}) for one in found]

    def close(self) -> None:
        """Let go of all connections; the next use makes new ones."""
        self._engine.dispose()

    @contextmanager
    def closed_unless_done(self) -> Iterator[None]:
        """Close it if what is in the block fails: nobody else does for a run that has not begun."""
        try:
            yield
        except BaseException:
            self.close()
            raise


def _values(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__slots__}


def _of_run(table: sa.Table, run: str, operator: str | None = None) -> sa.Select[Any]:
    query = sa.select(table).where(table.c.run == run)
    if operator is not None:
        query = query.where(table.c.operator == operator)
    return query.order_by(*(column for column in table.primary_key.columns if column.name != "run"))


def _url(place: str) -> sa.URL:
    if "://" not in place:
        return sa.URL.create("sqlite", database=place)
    try:
        url = sa.make_url(place)
    except (sa.exc.ArgumentError, ValueError):
        raise InputError(f"store: must be a file or a database URL; got {masked_url(place)!r}") from None
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise InputError(f"store: must be SQLite or PostgreSQL; got {url.get_backend_name()!r}")
    if url.password is not None:
        url = url.set(password=resolve(f"store at {url.host}", str(url.password)))
    return url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url


def _check_file(url: sa.URL, must_exist: bool) -> None:
    if not url.database or url.database == ":memory:":
        raise InputError("store: SQLite needs a file, so that others can read while a run writes; got memory")
    path = Path(url.database)
    if must_exist and not path.is_file():
        raise InputError(f"store '{path}': no such file")
    path.parent.mkdir(parents=True, exist_ok=True)


def _engine(url: sa.URL) -> sa.Engine:
    if url.get_backend_name() == "postgresql":
        return sa.create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": _CONNECT_TIMEOUT_S})
    private_database(url.database)
    engine = sa.create_engine(url)
    sa.event.listen(engine, "connect", _set_up_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _record: object) -> None:
    write_ahead(connection, _BUSY_TIMEOUT_S)
    connection.execute("PRAGMA foreign_keys=ON")


def reason_of(error: Exception) -> str:
    """What the database itself says, in one line."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
