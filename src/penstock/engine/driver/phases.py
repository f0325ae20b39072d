"""The phase of every shift at work, as replicas are told it, and up to where checkpoints have come.

What the user has stopped no pause lets go on.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Any, NamedTuple

import msgspec

from penstock.engine.driver.channel import Publisher
from penstock.engine.driver.supervisor import Supervisor
from penstock.engine.plan.layout import Layout
from penstock.engine.protocol.progress import Call, Phase, Progress, ShiftState
from penstock.topology import ReplicaId


class Position(NamedTuple):
    """Where a slot of a source is: its cursor, and how many events it has sent since the run began."""

    cursor: Any = None
    sent: int = 0


@dataclass
class Shift:
    """One layout of the pools at work: a query of its own.

    `begin` has where its source slots began in the present attempt, `left` whether another has taken over.
    """

    number: int
    layout: Layout
    supervisor: Supervisor
    begin: dict[ReplicaId, Position] = field(default_factory=dict)
    left: bool = False
    ended: Event = field(default_factory=Event)

    @property
    def source_slots(self) -> frozenset[ReplicaId]:
        """All slots of all sources."""
        return self.layout.source_slots

    @property
    def replicas(self) -> set[ReplicaId]:
        """All that report: replicas of operators, and slots of sources."""
        return {one.id for stage in self.layout.stages for one in stage if one.id is not None}


class Phases:
    """Every change is a new version of the run's progress and is published at once."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher
        self._lock = threading.Lock()
        self.stopped = False  # the user has stopped the sources
        self.current = Progress(1, {})

    # ── the run ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self, epoch_s: float) -> None:
        """The sources begin then."""
        with self._lock:
            self._change(epoch_s=epoch_s)

    def close(self) -> None:
        """Have operators closed, and agents end."""
        with self._lock:
            self._change(closing=True)

    def stop(self) -> None:
        """No source sends any more, whichever shift takes over."""
        with self._lock:
            if not self.stopped:
                self.stopped = True
                self._halt(0)

    # ── a shift, from its first event to its last ───────────────────────────────────────────────────────────────────

    def open(self, shift: Shift) -> None:
        """The first shift of this driver: its sources send from the epoch on."""
        with self._lock:
            self._move({shift.number: self._sending()})

    def begin_attempt(self, shift: Shift) -> None:
        """The last barrier was for the attempt before."""
        with self._lock:
            self._move({shift.number: ShiftState(self.current.of(shift.number).phase)})

    def call(self, generation: int, checkpoint: int) -> None:
        """A standby goes to work."""
        with self._lock:
            self._change(called=Call(generation, checkpoint))

    def pause(self, barrier: int) -> None:
        """No source sends until `resume` or `take_over`; behind what was sent goes a barrier."""
        with self._lock:
            self._halt(barrier)

    def resume(self, shift: Shift) -> None:
        """Let the sources of a shift go on after all, unless they are to stop anyway."""
        with self._lock:
            self._move({shift.number: self._sending()})

    def take_over(self, last: Shift, following: Shift) -> None:
        """Let the sources of the next shift go on, unless they are to stop anyway; the last one finishes."""
        with self._lock:
            last.left = True
            finishing = ShiftState(Phase.FINISHING, self.current.of(last.number).barrier)
            self._move({last.number: finishing, following.number: self._sending()})

    def end(self, shift: Shift) -> None:
        """It is the turn of the next."""
        with self._lock:
            self._change(shifts={number: one for number, one in self.current.shifts.items() if number != shift.number})

    # ── checkpoints ─────────────────────────────────────────────────────────────────────────────────────────────────

    def barrier(self, shift: Shift, number: int, members: Collection[ReplicaId]) -> None:
        """Have the slots of a shift send a barrier, which goes from member to member of the checkpoint."""
        with self._lock:
            phase, packed = self.current.of(shift.number).phase, shift.layout.packed(members)
            self._move({shift.number: ShiftState(phase, number, packed)})

    def committed(self, number: int, parts: Mapping[str, Mapping[int, Any]]) -> None:
        """A checkpoint is on disk; `parts` is what sinks have prepared for it."""
        with self._lock:
            self._change(committed=number, parts=parts)

    def give_up(self, number: int) -> None:
        """A checkpoint will not be committed: nobody waits for its barriers any more."""
        with self._lock:
            self._change(given_up=max(number, self.current.given_up))

    # ── changes ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _sending(self) -> ShiftState:
        return ShiftState(Phase.HALTED if self.stopped else Phase.SENDING)

    def _halt(self, barrier: int) -> None:
        ours = (Phase.SENDING, Phase.HALTED)
        sending = {number: one for number, one in self.current.shifts.items() if one.phase in ours}
        halted = {n: msgspec.structs.replace(one, phase=Phase.HALTED) for n, one in sending.items()}
        if barrier:  # to all
            halted = {n: ShiftState(Phase.HALTED, barrier) for n in sending}
        self._move(halted)

    def _move(self, states: Mapping[int, ShiftState]) -> None:
        self._change(shifts=self.current.shifts | dict(states))

    def _change(self, **changes: Any) -> None:
        self.current = msgspec.structs.replace(self.current, version=self.current.version + 1, **changes)
        self._publisher.publish(self.current)
