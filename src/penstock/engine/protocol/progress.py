"""How far a run is: the shifts at work, the phase that each is in, and how their batches are numbered."""

from __future__ import annotations

from enum import StrEnum

import msgspec

BATCHES_OF_A_SHIFT = 10**9


def first_batch(shift: int) -> int:
    """The number of a shift's first batch: batches of all shifts are in order.

    >>> first_batch(2), shift_of(2_000_000_005)
    (2000000000, 2)
    """
    return shift * BATCHES_OF_A_SHIFT


def shift_of(batch: int) -> int:
    """Whose batch it is."""
    return batch // BATCHES_OF_A_SHIFT


class Phase(StrEnum):
    """What a shift does."""

    STARTING = "starting"  # its replicas get ready, its sources wait
    SENDING = "sending"  # its sources send
    HALTED = "halted"  # its sources stand still: the run is to end, or the next shift to take over
    FINISHING = "finishing"  # the next has taken over: it works off what it has
    WRITING = "writing"  # nothing is left to process: its replicas write their state
    OVER = "over"


class ShiftState(msgspec.Struct, frozen=True, array_like=True):
    """The phase of a shift."""

    phase: Phase
    since: int = 0  # the version with which its sources had to stand still, or were taken over from
    generation: int = -1  # whose replicas write; what an earlier one has written does not count


STARTING, OVER = ShiftState(Phase.STARTING), ShiftState(Phase.OVER)


class Progress(msgspec.Struct, tag=True, frozen=True):
    """Driver to every replica: when the sources begin, how far each shift is, whether the run closes.

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

    def of(self, shift: int) -> ShiftState:
        """How far a shift is."""
        return self.shifts.get(shift) or (OVER if shift < max(self.shifts, default=0) else STARTING)

    def is_turn_of(self, shift: int) -> bool:
        """Whether no earlier shift is at work: where order counts, events are not processed before."""
        return not any(other < shift for other in self.shifts)


def not_heard() -> Progress:
    """What a process takes to be so before it has heard of the driver: the first shift works alone."""
    return Progress(0, {0: ShiftState(Phase.SENDING)})
