"""A sink for tests: every replica appends what it gets to a file of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

import msgspec

from penstock.common.files import private_folder
from penstock.topology import Context


class CollectSink:
    """Writes `[id, event]` as JSON lines into a folder; `collected(folder)` reads them back."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._file: IO[bytes] | None = None
        self._context: Context | None = None

    def open(self, context: Context) -> None:
        """Open this replica's file."""
        self._context = context
        private_folder(self._folder)
        name = f"{context.operator}-{context.replica}-{os.getpid()}.jsonl"
        self._file = (self._folder / name).open("ab", buffering=0)

    def process(self, event: Any) -> None:
        """Keep one event."""
        self.process_many([event])

    def process_many(self, events: list[Any]) -> None:
        """Keep these events, in one write."""
        if self._file is None or self._context is None:
            raise RuntimeError("a sink is opened before it gets events")
        rows = zip(self._context.event_ids, events, strict=True)
        self._file.write(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def collected(folder: str | Path) -> list[tuple[str, Any]]:
    """All (id, event) in the folder, in no particular order."""
    lines = (line for path in sorted(Path(folder).glob("*.jsonl")) for line in path.read_bytes().splitlines())
    return [tuple(msgspec.json.decode(line)) for line in lines]
