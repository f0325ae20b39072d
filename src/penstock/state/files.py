"""State on disk: segments written at the end of batches, from which it is loaded, and files of groups that move.

    <operator>/<batch>.<generation>.<replica>                     a segment
    <operator>/moves/<generation>-<version>-<replica>.state       what a replica hands over in that version of the table

A file is the groups' bytes, an index (group: whole, offset, length) in msgpack, and the length of the index.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from penstock.errors import EngineError
from penstock.state.segments import Past, SegmentName, parse_name, unneeded

_LENGTH = struct.Struct("<I")
_index = msgspec.msgpack.Decoder(dict[int, tuple[bool, int, int]])

Parts = Iterable[tuple[int, bool, bytes]]  # group, whole, bytes
Add = Callable[[int, bool, bytes], None]


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

    def write(self, name: SegmentName, parts: Parts) -> None:
        """Write a segment, safe from a crash when this returns."""
        with _writing(self._folder / str(name), lasting=True) as add:
            for group, whole, data in parts:
                add(group, whole, data)

    def load(self, groups: Iterable[int], names: list[SegmentName]) -> dict[int, Loaded]:
        """The groups as of these segments, which are given with the newest first."""
        found = {group: Loaded() for group in groups}
        wanted, batches = set(found), 0
        last: int | None = None
        for name in names:
            if not wanted:
                break
            batches, last = batches + (last is not None and name.batch != last), name.batch
            for group, whole, data in _read(self._folder / str(name), frozenset(wanted)):
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

    def hand_over(self, generation: int, version: int, replica: int) -> AbstractContextManager[Add]:
        """Write what a replica hands over, group by group; it can be taken when the context is left."""
        return _writing(self._moved(generation, version, replica), lasting=False)

    def take(self, generation: int, version: int, loser: int, groups: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        """Read these groups of what a replica has handed over, each when it is asked for."""
        path, wanted = self._moved(generation, version, loser), frozenset(groups)
        taken = set()
        for group, _, data in _read(path, wanted):
            taken.add(group)
            yield group, data
        if missing := sorted(wanted - taken):
            raise EngineError(f"{path}: lacks the key groups {missing}")

    def forget_moves(self, before: int | None = None) -> None:
        """Remove what was handed over before that version, or all: it has been taken, or never will be."""
        for file in self._moves.glob("*-*-*.state"):
            if before is None or int(file.stem.split("-")[1]) < before:
                file.unlink(missing_ok=True)

    def _moved(self, generation: int, version: int, replica: int) -> Path:
        return self._moves / f"{generation}-{version}-{replica}.state"


@contextmanager
def _writing(path: Path, lasting: bool) -> Iterator[Add]:
    """Adds groups to a file that is there, whole, when the context is left, and not at all if that fails."""
    index: dict[int, tuple[bool, int, int]] = {}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with temporary.open("wb") as file:

            def add(group: int, whole: bool, data: bytes) -> None:
                index[group] = (whole, file.tell(), len(data))
                file.write(data)

            yield add
            tail = msgspec.msgpack.encode(index)
            file.writelines([tail, _LENGTH.pack(len(tail))])
            if lasting:
                file.flush()
                os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    temporary.replace(path)


def _read(path: Path, wanted: frozenset[int]) -> Iterator[tuple[int, bool, bytes]]:
    """The wanted groups that the file has, each when it is asked for."""
    with path.open("rb") as file:
        file.seek(-_LENGTH.size, os.SEEK_END)
        (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
        file.seek(-_LENGTH.size - length, os.SEEK_END)
        index = _index.decode(file.read(length))
        for group in sorted(wanted & index.keys(), key=lambda one: index[one][1]):
            whole, offset, size = index[group]
            file.seek(offset)
            yield group, whole, file.read(size)
