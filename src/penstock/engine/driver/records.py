"""The record of a checkpoint: all that a restart needs, in one file that is there as a whole or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import msgspec

from penstock.common.sealed_json import OtherVersion, from_json, to_json
from penstock.common.storage import Place, storage_at
from penstock.errors import InputError
from penstock.state.segments import Segment
from penstock.topology import ReplicaId

VERSION = 2
KEPT = 2


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint: where the sources are, what the state consists of, what sinks want to have kept."""

    version: int = VERSION
    number: int
    generation: int  # of the attempt that made it
    at_s: float
    cursors: dict[str, Any]  # by slot of a source, `source/slot`
    sent: dict[str, int]  # events since the run began, by slot
    state: dict[str, list[Segment]] = {}  # by operator
    parts: dict[str, dict[int, Any]] = {}  # by sink and replica

    def start(self, slot: ReplicaId) -> tuple[Any, int]:
        """Where a slot goes on, and how many events it has sent before."""
        return self.cursors.get(slot_name(slot)), self.sent.get(slot_name(slot), 0)


def slot_name(slot: ReplicaId) -> str:
    """As records and logs have it."""
    return f"{slot[0]}/{slot[1]}"


class Records:
    """The records of a run, in a folder; the last one counts. `check` raises if this driver may write none any more."""

    def __init__(self, place: Place, check: Callable[[], None] = lambda: None) -> None:
        self._storage = storage_at(place)
        self._check = check
        self.last: Record | None = self._read()

    def write(self, record: Record) -> int:
        """The checkpoint is committed when this returns, with the record's bytes, and not at all if it raises."""
        self._check()
        data = to_json(record)
        try:
            self._storage.write(_name(record.number), data)
        except OSError:
            self._remove(record.number)
            raise
        self.last = record
        for number in self._numbers()[:-KEPT]:
            self._remove(number)
        return len(data)

    def _read(self) -> Record | None:
        numbers = self._numbers()
        if not numbers:
            return None
        file = f"{self._storage}/{_name(numbers[-1])}"
        try:
            return from_json(self._storage.read(_name(numbers[-1])), Record, VERSION)
        except OtherVersion as other:
            said = f"is of format {other.version}; this version of Penstock reads format {VERSION}"
            raise InputError(f"{file}: {said}") from other
        except (msgspec.MsgspecError, ValueError) as error:
            raise InputError(f"{file}: is not the record of a checkpoint: {error}") from error

    def _remove(self, number: int) -> None:
        with contextlib.suppress(OSError):  # an older one does no harm, and of one that failed no more can be done
            self._storage.remove(_name(number))

    def _numbers(self) -> list[int]:
        stems = [name.removesuffix(".json") for name in self._storage.names() if name.endswith(".json")]
        return sorted(int(stem) for stem in stems if stem.isdecimal())


def _name(number: int) -> str:
    return f"{number}.json"
