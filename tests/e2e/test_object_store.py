"""State, checkpoints and what waits for them in an object store: another machine carries on what one has left."""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from types import ModuleType

from penstock.common.storage import storage_at

from ..services.s3 import ObjectStore
from .test_state import Driver, words_driver

__all__ = ["words_driver"]  # the fixture

RATE = 400


def test_a_driver_on_another_machine_carries_on_from_an_object_store(
    tmp_path: Path, object_store: ObjectStore, words_driver: ModuleType
) -> None:
    """The first is killed, and its folder is gone with it; the table has every event once, and every count.

    It would go on for minutes; the second ends with the last event that the first can have sent.
    """
    uri, table = object_store.uri("runs", "words"), tmp_path / "words.db"

    def start(folder: str, events: int) -> Driver:
        return Driver(tmp_path / f"{folder}.log", tmp_path / folder, table, events, RATE, "realtime", uri)

    first = start("one", 300 * RATE)
    try:
        first.wait_for(lambda: len(stored(table)) >= RATE)
    finally:
        first.kill()
    events = math.ceil((time.time() - first.epoch_s) * RATE)
    assert not (tmp_path / "one" / "checkpoints").exists()
    assert not (tmp_path / "one" / "state").exists()
    second = start("another", events)
    try:
        second.finish()
    finally:
        second.kill()
    rows = stored(table)
    assert len(rows) == events
    assert Counter(row["word"] for row in rows) == Counter(words_driver.zipf_words(events))
    for word in {row["word"] for row in rows}:
        counts = sorted(row["count"] for row in rows if row["word"] == word)
        assert counts == list(range(1, len(counts) + 1))
    assert "run.json" in storage_at(uri).names()
    assert "lock" not in storage_at(uri).names()


def stored(table: Path) -> list[dict[str, int | str]]:
    """What is committed; nothing before the table is there."""
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(f"file:{table}?mode=ro", uri=True)) as connection:
        return [json.loads(event) for (event,) in connection.execute("SELECT event FROM events")]
    return []
