"""What a keyed count has left in a table: every key's numbers, which in one history are 1, 2, …, n."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path


def sequences(database: Path, table: str = "counts") -> dict[int, list[int]]:
    """By key, in order."""
    with closing(sqlite3.connect(database)) as opened:
        events = [json.loads(event) for (event,) in opened.execute(f"SELECT event FROM {table}")]
    seen: dict[int, list[int]] = {}
    for one in sorted(events, key=lambda one: int(one["seen"])):
        seen.setdefault(one["key"], []).append(one["seen"])
    return seen


def is_whole(sequence: list[int]) -> bool:
    """Without gap or repetition."""
    return sequence == list(range(1, len(sequence) + 1))
