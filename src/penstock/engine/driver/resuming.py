"""A new driver on the folder of a run whose driver has died: where its sources go on, and from which state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.engine.driver.positions import Positions
from penstock.engine.protocol.numbers import Slot, first_batch
from penstock.engine.run_file import next_batch
from penstock.state.files import StateFiles


@dataclass(frozen=True, slots=True)
class Resumed:
    """The shift with which to go on, and where its sources begin."""

    shift: int
    begin: Mapping[Slot, int]


def carry_on(positions: Positions, checkpoint: Path, slots: Iterable[Slot], states: Iterable[StateFiles]) -> Resumed:
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
