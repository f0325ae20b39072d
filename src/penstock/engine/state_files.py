"""State on disk: segments written at the end of batches, from which it is loaded, and files of groups that move.

    <operator>/<batch>.<generation>.<replica>                     a segment
    <operator>/moves/<generation>-<version>-<replica>.state       what a replica hands over in that version of the table

A file is the length of its index, the index (group: whole, offset, length) in msgpack, and the groups' bytes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from penstock.errors import EngineError
from penstock.state.segments import Past, SegmentName, parse_name, unneeded

_LENGTH = struct.Struct("<I")
_index = msgspec.msgpack.Decoder(dict[int, tuple[bool, int, int]])

Parts = Iterable[tuple[int, bool, bytes]]  # group, whole, bytes


@dataclass(slots=True)
class Loaded:
    """A group as it was found: its last whole and the changes after it."""

    parts: list[bytes] = field(default_factory=list)
    past: Past = field(default_factory=Past)


class StateFiles:
    """The files of one operator."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._moves = folder / "moves"

    def names(self) -> list[SegmentName]:
        """All segments."""
        if not self._folder.is_dir():
            return []
        return [name for file in self._folder.iterdir() if (name := parse_name(file.name)) is not None]

    def write(self, name: SegmentName, parts: Parts) -> int:
        """Write a segment, safe from a crash when this returns; its size."""
        return _write(self._folder / str(name), parts, lasting=True)

    def load(self, groups: Iterable[int], names: list[SegmentName]) -> dict[int, Loaded]:
        """The groups as of these segments, which are given with the newest first."""
        found = {group: Loaded() for group in groups}
        wanted, batches = set(found), 0
        last: int | None = None
        for name in names:
            if not wanted:
                break
            batches, last = batches + (last is not None and name.batch != last), name.batch
            for group, (whole, data) in _read(self._folder / str(name), wanted).items():
                found[group].parts.insert(0, data)
                if whole:
                    found[group].past.whole_bytes, found[group].past.segments = len(data), batches
                    wanted.discard(group)
                else:
                    found[group].past.changes_bytes += len(data)
        return found

    def clean(self) -> None:
        """Remove what no recovery needs."""
        for name in unneeded(self.names()):
            (self._folder / str(name)).unlink(missing_ok=True)

    def forget_from(self, batch: int) -> None:
        """Remove the segments of this batch and later ones, and all that was handed over: they were not committed."""
        for name in self.names():
            if name.batch >= batch:
                (self._folder / str(name)).unlink(missing_ok=True)
        self.forget_moves()

    def hand_over(self, generation: int, version: int, replica: int, parts: Parts) -> int:
        """Write what a replica hands over; its size."""
        return _write(self._moved(generation, version, replica), parts, lasting=False)

    def take(self, generation: int, version: int, loser: int, groups: Iterable[int]) -> dict[int, bytes]:
        """Read these groups of what a replica has handed over."""
        wanted = set(groups)
        read = _read(self._moved(generation, version, loser), wanted)
        if missing := sorted(wanted - set(read)):
            raise EngineError(f"{self._moved(generation, version, loser)}: lacks the key groups {missing}")
        return {group: data for group, (_, data) in read.items()}

    def forget_moves(self, before: int | None = None) -> None:
        """Remove what was handed over before that version, or all: it has been taken, or never will be."""
        for file in self._moves.glob("*-*-*.state"):
            if before is None or int(file.stem.split("-")[1]) < before:
                file.unlink(missing_ok=True)

    def _moved(self, generation: int, version: int, replica: int) -> Path:
        return self._moves / f"{generation}-{version}-{replica}.state"


def _write(path: Path, parts: Parts, lasting: bool) -> int:
    index: dict[int, tuple[bool, int, int]] = {}
    blobs: list[bytes] = []
    offset = 0
    for group, whole, data in parts:
        index[group] = (whole, offset, len(data))
        blobs.append(data)
        offset += len(data)
    head = msgspec.msgpack.encode(index)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    with temporary.open("wb") as file:
        file.writelines([_LENGTH.pack(len(head)), head, *blobs])
        if lasting:
            file.flush()
            os.fsync(file.fileno())
    temporary.replace(path)
    return _LENGTH.size + len(head) + offset


def _read(path: Path, wanted: set[int]) -> dict[int, tuple[bool, bytes]]:
    """The wanted groups that the file has."""
    with path.open("rb") as file:
        (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
        index = _index.decode(file.read(length))
        found = {}
        for group in sorted(wanted & index.keys(), key=lambda one: index[one][1]):
            whole, offset, size = index[group]
            file.seek(_LENGTH.size + length + offset)
            found[group] = (whole, file.read(size))
    return found
