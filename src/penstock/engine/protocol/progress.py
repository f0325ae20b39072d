"""How far a run is: the shifts at work, the phase that each is in, its checkpoints and how they are numbered."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

CHECKPOINTS_OF_A_SHIFT = 10**9


def first_batch(shift: int) -> int:
    """The number under which counters of a shift are kept; those of its checkpoints follow, so that all have an order.

    >>> first_batch(2), shift_of(2_000_000_005)
    (2000000000, 2)
    """
    return shift * CHECKPOINTS_OF_A_SHIFT


def shift_of(number: int) -> int:
    """Whose batch or checkpoint it is."""
    return number // CHECKPOINTS_OF_A_SHIFT


class Phase(StrEnum):
    """What a shift does."""

    STARTING = "starting"  # its replicas get ready, its sources wait
    SENDING = "sending"  # its sources send
    HALTED = "halted"  # its sources stand still: the run is to end, or the next shift to take over
    FINISHING = "finishing"  # the next has taken over: it works off what it has, up to its last barrier
    OVER = "over"


class ShiftState(msgspec.Struct, frozen=True, array_like=True):
    """The phase of a shift, and the checkpoint for which its slots are to send a barrier, if they have not.

    `members` has those whom the checkpoint is of, as in the barrier.
    """

    phase: Phase
    barrier: int = 0
    members: bytes = b""


STARTING, OVER = ShiftState(Phase.STARTING), ShiftState(Phase.OVER)


class Call(msgspec.Struct, frozen=True, array_like=True):
    """The standby of that generation goes to work: its first events belong to that checkpoint."""

    generation: int = 0
    checkpoint: int = 0


class Progress(msgspec.Struct, tag=True, frozen=True):
    """Driver to every replica: when the sources begin, how far each shift and its checkpoints are, whether it closes.

    >>> at_work = {1: ShiftState(Phase.FINISHING), 2: ShiftState(Phase.SENDING)}
    >>> [Progress(7, at_work).of(shift).phase.value for shift in range(4)]
    ['over', 'finishing', 'sending', 'starting']
    >>> [Progress(7, at_work).is_turn_of(shift) for shift in (1, 2)]
    [True, False]
    """

    version: int
    shifts: dict[int, ShiftState]  # those at work
    epoch_s: float | None = None  # when the sources begin; None: not yet
    closing: bool = False  # nothing is in flight: operators are closed
    committed: int = 0  # the last checkpoint that is on disk, with all that belongs to it
    parts: dict[str, dict[int, Any]] = {}  # of that checkpoint: what sinks have prepared, by operator and replica
    given_up: int = 0  # checkpoints up to this one that have not been committed never will be
    called: Call = Call()  # the last standby that was

    def of(self, shift: int) -> ShiftState:
        """How far a shift is."""
        return self.shifts.get(shift) or (OVER if shift < max(self.shifts, default=0) else STARTING)

    def is_turn_of(self, shift: int) -> bool:
        """Whether no earlier shift is at work: where order counts, events are not processed before."""
        return not any(other < shift for other in self.shifts)


def not_heard() -> Progress:
    """What a process takes to be so before it has heard of the driver: the first shift works alone."""
    return Progress(0, {0: ShiftState(Phase.SENDING)})
