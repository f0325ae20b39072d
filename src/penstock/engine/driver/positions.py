"""Where each batch starts in each source: what makes a batch that is done again the same batch.

Written to disk before Spark can commit the batch, so that not even a new driver sends an event twice or not at all. A
new driver on the folder of a run whose driver has died finds here where its sources go on (`carry_on`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from penstock.engine.protocol.progress import first_batch, shift_of
from penstock.errors import EngineError
from penstock.state.files import StateFiles
from penstock.topology import ReplicaId

KEPT_BATCHES = 4


class Positions:
    """start(batch, slot): the first event of a source's slot that belongs to the batch."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._starts: dict[int, dict[str, int]] = {}  # batch -> "source/slot" -> position
        if file.exists():
            self._starts = msgspec.json.decode(file.read_bytes(), type=dict[int, dict[str, int]])

    def start(self, batch: int, slot: ReplicaId) -> int:
        """Where the batch begins: where the one before it ended, and the very first at 0.

        A shift whose first batches were over before it had begun to send begins in a later one.
        """
        with self._lock:
            return self._start(batch, slot)

    def end(self, batch: int, slot: ReplicaId, position: int) -> int:
        """The batch ends here and the next one begins; on disk when this returns.

        Where it started is kept with it: it may have been the first in which its shift sent, and be done again.
        """
        with self._lock:
            starts = {b: dict(slots) for b, slots in self._starts.items()}
            starts.setdefault(batch, {})[_name(slot)] = self._start(batch, slot)
            starts.setdefault(batch + 1, {})[_name(slot)] = position
            for old in [b for b in starts if first_batch(shift_of(batch)) <= b <= batch - KEPT_BATCHES]:
                starts[old].pop(_name(slot), None)  # other slots may hear late of their turn
            self._keep({b: slots for b, slots in starts.items() if slots})
            return position

    def shifts(self) -> set[int]:
        """The shifts that have sent, or were about to, and have not ended."""
        with self._lock:
            return {shift_of(batch) for batch in self._starts}

    def begin(self, shift: int, positions: Mapping[ReplicaId, int]) -> None:
        """The sources of a shift begin here; on disk when this returns."""
        with self._lock:
            begin = {_name(slot): position for slot, position in positions.items()}
            self._keep(self._starts | {first_batch(shift): begin})

    def forget(self, shift: int) -> None:
        """All events of a shift are processed, and none of its batches will be done again."""
        with self._lock:
            self._keep({batch: starts for batch, starts in self._starts.items() if shift_of(batch) != shift})

    def _start(self, batch: int, slot: ReplicaId) -> int:
        mine = [b for b in self._starts if shift_of(b) == shift_of(batch) and _name(slot) in self._starts[b]]
        if batch in mine:
            return self._starts[batch][_name(slot)]
        if batch == 0 and not any(shift_of(b) for b in self._starts):
            return 0
        if mine == [first_batch(shift_of(batch))]:
            return self._starts[mine[0]][_name(slot)]
        raise EngineError(f"source {slot[0]!r}: where batch {batch} starts is not known")

    def _keep(self, starts: dict[int, dict[str, int]]) -> None:
        """On disk first: what could not be written is not so."""
        temporary = self._file.with_suffix(".new")
        with temporary.open("wb") as file:
            file.write(msgspec.json.encode(starts))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._file)
        self._starts = starts


def _name(slot: ReplicaId) -> str:
    return f"{slot[0]}/{slot[1]}"


@dataclass(frozen=True, slots=True)
class Resumed:
    """The shift with which to go on, and where its sources begin."""

    shift: int
    begin: Mapping[ReplicaId, int]


def carry_on(
    positions: Positions, checkpoint: Path, slots: Iterable[ReplicaId], states: Iterable[StateFiles]
) -> Resumed:
    """Go on behind the last batch that was committed: with a new shift, and the state as it was then.

    Spark's own checkpoint says what was committed. If one shift had just taken over from another that was not done, all
    that the earlier one had not committed is sent again, by the new shift.
    """
    known = sorted(int(folder.name) for folder in checkpoint.glob("[0-9]*"))
    if not known:
        first = Resumed(0, dict.fromkeys(slots, 0))
        positions.begin(first.shift, first.begin)  # it counts even if another takes over in its first batch
        return first
    oldest = min(positions.shifts() or known)
    batch = first_batch(oldest) + next_batch(checkpoint / str(oldest))
    begin = {slot: positions.start(batch, slot) for slot in slots}
    resumed = Resumed(known[-1] + 1, begin)
    for files in states:
        files.forget_from(batch)
    positions.begin(resumed.shift, begin)
    for shift in positions.shifts() - {resumed.shift}:
        positions.forget(shift)
    return resumed


def next_batch(checkpoint: Path) -> int:
    """The batch that Spark does next from this checkpoint: the one after the last that was committed."""
    commits = checkpoint / "commits"
    done = [int(file.name) for file in commits.iterdir() if file.name.isdecimal()] if commits.is_dir() else []
    return max(done, default=-1) + 1
