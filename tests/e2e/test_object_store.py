"""State, checkpoints and what waits for them in an object store: another machine carries on what one has left."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from types import ModuleType

from penstock.common.storage import storage_at
from tests.waiting import LONG_S, until

from ..services.s3 import ObjectStore
from .test_state import DRIVER, words_driver

__all__ = ["words_driver"]  # the fixture

EVENTS, RATE = 6_000, 400


def test_a_driver_on_another_machine_carries_on_from_an_object_store(
    tmp_path: Path, object_store: ObjectStore, words_driver: ModuleType
) -> None:
    """The first is killed, and its folder is gone with it; the table has every event once, and every count."""
    uri, table = object_store.uri("runs", "words"), tmp_path / "words.db"

    def start(folder: str) -> subprocess.Popen[bytes]:
        arguments = [str(tmp_path / folder), str(table), str(EVENTS), str(RATE), "realtime", uri]
        return subprocess.Popen(
            [sys.executable, str(DRIVER), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    first = start("one")
    try:
        await_committed(table, 1_500, first)
    finally:
        first.kill()
        first.communicate()
    assert not (tmp_path / "one" / "checkpoints").exists()
    assert not (tmp_path / "one" / "state").exists()
    second = start("another")
    try:
        said = second.communicate(timeout=LONG_S)[0].decode()
    finally:
        second.kill()
    assert second.returncode == 0, said
    rows = stored(table)
    assert len(rows) == EVENTS
    assert Counter(row["word"] for row in rows) == Counter(words_driver.zipf_words(EVENTS))
    for word in {row["word"] for row in rows}:
        counts = sorted(row["count"] for row in rows if row["word"] == word)
        assert counts == list(range(1, len(counts) + 1))
    assert "run.json" in storage_at(uri).names()
    assert "lock" not in storage_at(uri).names()


def stored(table: Path) -> list[dict[str, int | str]]:
    with closing(sqlite3.connect(f"file:{table}?mode=ro", uri=True)) as connection:
        return [json.loads(event) for (event,) in connection.execute("SELECT event FROM events")]


def await_committed(table: Path, wanted: int, driver: subprocess.Popen[bytes]) -> None:
    def enough() -> bool:
        assert driver.poll() is None, driver.communicate()[0].decode()
        with suppress(sqlite3.OperationalError):  # not even made yet
            return len(stored(table)) >= wanted
        return False

    until(enough, lambda: f"fewer than {wanted} events are committed")
