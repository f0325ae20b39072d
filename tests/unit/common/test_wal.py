"""SQLite files that several processes have open."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock.common.wal import write_ahead


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
