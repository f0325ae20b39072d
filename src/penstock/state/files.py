"""State on disk: segments written at checkpoints, from which it is loaded, and files of groups that move.

    <operator>/<checkpoint>.<generation>.<replica>                a segment
    <operator>/moves/<generation>-<version>-<replica>.state       what a replica hands over in that version of the table

A file is the groups' bytes, an index (group: whole, offset, length, checksum) in msgpack, and its length and checksum.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import IO

import msgspec

from penstock.common.storage import Place, Storage, storage_at
from penstock.errors import EngineError
from penstock.state.segments import Past, Segment, parse_name, unneeded

_TAIL = struct.Struct("<II")  # length and checksum of the index
_Index = dict[int, tuple[bool, int, int, int]]
_index = msgspec.msgpack.Decoder(_Index)

Parts = Iterable[tuple[int, bool, bytes]]  # group, whole, bytes
Add = Callable[[int, bool, bytes], None]


@dataclass(slots=True)
class Loaded:
    """A group as it was found: its last whole and the changes after it."""

    parts: list[bytes] = field(default_factory=list)
    past: Past = field(default_factory=Past)


class StateFiles:
    """The files of one operator."""

    def __init__(self, place: Place) -> None:
        self._storage = storage_at(place)
        self._moves = self._storage / "moves"

    def found(self) -> list[Segment]:
        """All segments that are there; how large they should be is not known."""
        return [one for name in self._storage.names() if (one := parse_name(name)) is not None]

    def write(self, segment: Segment, parts: Parts) -> Segment:
        """Write a segment, safe from a crash when this returns; the segment with its size and checksum."""
        with _writing(self._storage, segment.name, lasting=True) as add:
            for group, whole, data in parts:
                add(group, whole, data)
        size, crc = _size_and_crc(self._storage, segment.name)
        return msgspec.structs.replace(segment, size=size, crc=crc)

    def check(self, segments: Iterable[Segment]) -> None:
        """Raise an EngineError unless all are there, each as it was written."""
        for one in segments:
            path = f"{self._storage}/{one.name}"
            try:
                size, crc = _size_and_crc(self._storage, one.name)
            except FileNotFoundError:
                raise EngineError(f"state: the segment {path} of a committed checkpoint is missing") from None
            if (size, crc) != (one.size, one.crc):
                raise EngineError(f"state: the segment {path} is not as it was written: {size} bytes")

    def load(self, groups: Iterable[int], segments: list[Segment]) -> dict[int, Loaded]:
        """The groups as of these segments, which are given with the newest first."""
        found = {group: Loaded() for group in groups}
        wanted, numbers = set(found), 0
        last: int | None = None
        for segment in segments:
            if not wanted:
                break
            numbers, last = numbers + (last is not None and segment.number != last), segment.number
            for group, whole, data in _read(self._storage, segment.name, frozenset(wanted)):
                found[group].parts.insert(0, data)
                past = found[group].past
                if whole:
                    past.whole_bytes, past.segments, past.whole_in = len(data), numbers, segment.number
                    wanted.discard(group)
                else:
                    past.changes_bytes += len(data)
        if broken := sorted(group for group in wanted if found[group].parts):
            raise EngineError(f"state: {self._storage} has changes of the key groups {broken}, and not what changed")
        return found

    def clean(self) -> None:
        """Remove what no micro-batch needs."""
        for one in unneeded(self.found()):
            self._storage.remove(one.name)

    def keep(self, segments: Iterable[Segment], below: int) -> None:
        """Of the segments below that checkpoint, remove all but these."""
        kept = {one.name for one in segments}
        for one in self.found():
            if one.number < below and one.name not in kept:
                self._storage.remove(one.name)

    def forget_from(self, batch: int) -> None:
        """Remove the segments of this batch and later ones, and all that was handed over: they were not committed."""
        for one in self.found():
            if one.number >= batch:
                self._storage.remove(one.name)
        self.forget_moves()

    def hand_over(self, generation: int, version: int, replica: int) -> AbstractContextManager[Add]:
        """Write what a replica hands over, group by group; it can be taken when the context is left."""
        return _writing(self._moves, _moved(generation, version, replica), lasting=False)

    def take(self, generation: int, version: int, loser: int, groups: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        """Read these groups of what a replica has handed over, each when it is asked for."""
        name, wanted = _moved(generation, version, loser), frozenset(groups)
        taken = set()
        for group, _, data in _read(self._moves, name, wanted):
            taken.add(group)
            yield group, data
        if missing := sorted(wanted - taken):
            raise EngineError(f"{self._moves}/{name}: lacks the key groups {missing}")

    def forget_moves(self, before: int | None = None) -> None:
        """Remove what was handed over before that version, or all: it has been taken, or never will be."""
        for name in self._moves.names():
            if (version := _version(name)) is not None and (before is None or version < before):
                self._moves.remove(name)


def _moved(generation: int, version: int, replica: int) -> str:
    return f"{generation}-{version}-{replica}.state"


def _version(name: str) -> int | None:
    """Of a file with what was handed over; None if it is another."""
    numbers = name.removesuffix(".state").split("-")
    if not name.endswith(".state") or len(numbers) != 3 or not all(number.isdecimal() for number in numbers):
        return None
    return int(numbers[1])


@contextmanager
def _writing(storage: Storage, name: str, lasting: bool) -> Iterator[Add]:
    """Adds groups to a file that is there, whole, when the context is left, and not at all if that fails."""
    index: _Index = {}
    with storage.create(name, lasting=lasting) as file:

        def add(group: int, whole: bool, data: bytes) -> None:
            index[group] = (whole, file.tell(), len(data), zlib.crc32(data))
            file.write(data)

        yield add
        encoded = msgspec.msgpack.encode(index)
        file.write(encoded + _TAIL.pack(len(encoded), zlib.crc32(encoded)))


def _size_and_crc(storage: Storage, name: str) -> tuple[int, int]:
    """Of a file, which may be larger than what is good to have in memory."""
    size = crc = 0
    with storage.open(name) as file:
        while data := file.read(1 << 20):
            size, crc = size + len(data), zlib.crc32(data, crc)
    return size, crc


def _read(storage: Storage, name: str, wanted: frozenset[int]) -> Iterator[tuple[int, bool, bytes]]:
    """The wanted groups that the file has, each when it is asked for."""
    path = f"{storage}/{name}"
    try:
        opened = storage.open(name)
    except FileNotFoundError:
        raise EngineError(f"state: {path} is not to be seen here; all workers must share the run's folder") from None
    with opened as file:
        index = _read_index(path, file)
        for group in sorted(wanted & index.keys(), key=lambda one: index[one][1]):
            whole, offset, size, crc = index[group]
            file.seek(offset)
            data = file.read(size)
            if zlib.crc32(data) != crc:
                raise EngineError(f"state: {path} is not as it was written: key group {group}")
            yield group, whole, data


def _read_index(path: str, file: IO[bytes]) -> _Index:
    size = file.seek(0, os.SEEK_END)
    if size >= _TAIL.size:
        file.seek(size - _TAIL.size)
        length, crc = _TAIL.unpack(file.read(_TAIL.size))
        if length <= size - _TAIL.size:
            file.seek(size - _TAIL.size - length)
            if zlib.crc32(encoded := file.read(length)) == crc:
                return _index.decode(encoded)
    raise EngineError(f"state: {path} is not as it was written: its index")
