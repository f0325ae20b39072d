"""SQLite files that several processes have open."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from penstock.common.wal import private_database, write_ahead
from penstock.metrics.store import Store
from penstock.sinks.tables import connect


class Locked(sqlite3.Connection):
    """A file that others switch to write-ahead at the same time."""

    refusals: tuple[str, ...] = ()

    def execute(self, statement: str, *arguments: object) -> sqlite3.Cursor:  # type: ignore[override]
        if "WAL" in statement and self.refusals:
            says, *left = self.refusals
            self.refusals = tuple(left)
            raise sqlite3.OperationalError(says)
        return super().execute(statement, *arguments)  # type: ignore[arg-type]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Locked]:
    with closing(sqlite3.connect(tmp_path / "rows.db", factory=Locked)) as opened:
        yield opened


def test_who_finds_the_file_locked_tries_again(connection: Locked) -> None:
    connection.refusals = ("database is locked",) * 3
    write_ahead(connection, 60.0)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA busy_timeout").fetchone() == (60_000,)


def test_but_not_for_ever(connection: Locked) -> None:
    connection.refusals = ("database is locked",) * 100
    with pytest.raises(sqlite3.OperationalError, match="database is locked"):
        write_ahead(connection, 0.1)


def test_other_errors_are_told_at_once(connection: Locked) -> None:
    connection.refusals = ("disk I/O error",)
    with pytest.raises(sqlite3.OperationalError, match="disk I/O error"):
        write_ahead(connection, 60.0)


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def test_what_is_stored_can_be_read_by_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events may be secret; files of sinks and stores were as the umask said."""
    monkeypatch.chdir(tmp_path)
    store = Store("metrics.db")
    engine = connect(sa.make_url("sqlite:///results.db"))
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE one (a)")
        assert {mode(file) for file in tmp_path.glob("*.db*")} == {0o600}
    engine.dispose()
    store.close()
    assert {file.name for file in tmp_path.iterdir()} == {"metrics.db", "results.db"}


def test_a_file_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    shared = tmp_path / "shared.db"
    shared.touch(0o644)
    shared.chmod(0o644)
    private_database(str(shared))
    assert mode(shared) == 0o644
    private_database(str(tmp_path / "nowhere" / "it.db"))  # SQLite says why
