"""SQLite files that several processes have open."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time

AGAIN_S = 0.02


def private_database(file: str | None) -> None:
    """Make the file if it is not there, so that only its owner can read it; SQLite's files beside it follow.

    One that is there stays as it is, and why it cannot be made is for SQLite to say.
    """
    if file and not file.startswith((":", "file:")):
        with contextlib.suppress(OSError):
            os.close(os.open(file, os.O_CREAT | os.O_EXCL, 0o600))


def write_ahead(connection: sqlite3.Connection, patience_s: float) -> None:
    """Let readers go on while one writes, and writers wait for their turn.

    Of several that open a new file at once, SQLite tells all but one that it is locked, however long they would wait.
    """
    deadline_s = time.monotonic() + patience_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline_s:
                raise
            time.sleep(AGAIN_S)
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute(f"PRAGMA busy_timeout={round(1000 * patience_s)}")
