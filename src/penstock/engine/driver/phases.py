"""The phase of every shift at work, as replicas are told it, and where the sources of each stand still.

What the user has stopped no pause lets go on. A slot whose query dies begins at the start of its batch. It then sends
again what it had sent, also while sources stand still: up to where it halted; or, if the user has stopped it before it
could say so or before it had caught up, as far as it was heard to have come.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import msgspec

from penstock.engine.driver.channel import Publisher
from penstock.engine.driver.positions import Positions
from penstock.engine.driver.supervisor import Supervisor
from penstock.engine.driver.tally import Tally
from penstock.engine.plan.layout import Layout
from penstock.engine.protocol.messages import Halted, Position, StartQuery
from penstock.engine.protocol.progress import Phase, Progress, ShiftState
from penstock.topology import ReplicaId


@dataclass
class Shift:
    """One layout of the pools at work: a query of its own, with a checkpoint of its own.

    `halted` has where its source slots stopped, `left` whether another has taken over. `begun` has the generation in
    which each slot last began, `owed` how far it had come, as far as that was heard, before its query died.
    """

    number: int
    layout: Layout
    supervisor: Supervisor
    halted: dict[ReplicaId, int] = field(default_factory=dict)
    begun: dict[ReplicaId, int] = field(default_factory=dict)
    owed: dict[ReplicaId, int] = field(default_factory=dict)
    left: bool = False
    ended: Event = field(default_factory=Event)

    @property
    def source_slots(self) -> set[ReplicaId]:
        """All slots of all sources."""
        return {slot.id for slot in self.layout.stages[0] if slot.id is not None}

    @property
    def replicas(self) -> set[ReplicaId]:
        """All that report: replicas of operators, and slots of sources."""
        return {one.id for stage in self.layout.stages for one in stage if one.id is not None}


class Phases:
    """Every change is a new version of the run's progress and is published at once."""

    def __init__(self, tally: Tally, positions: Positions, publisher: Publisher) -> None:
        self._tally = tally
        self._positions = positions
        self._publisher = publisher
        self._lock = threading.Lock()
        self._since = 0  # what slots say that were told to stop before this version counts no more
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
                self._halt()  # also in a pause: a slot that has not caught up is told to

    # ── a shift, from its first event to its last ───────────────────────────────────────────────────────────────────

    def open(self, shift: Shift) -> None:
        """The first shift of this driver: its sources send from the epoch on."""
        with self._lock:
            self._move({shift.number: self._sending()})

    def pause(self) -> None:
        """No source sends until `resume` or `take_over`."""
        with self._lock:
            if not self.stopped:
                self._halt()

    def leave(self, shift: Shift) -> None:
        """Another takes over from where its slots have halted; what they say from here on changes nothing."""
        with self._lock:
            shift.left = True

    def resume(self, shift: Shift) -> None:
        """Let the sources of a shift go on after all, unless they are to stop anyway."""
        with self._lock:
            shift.left = False
            if not self.stopped:
                self._since = self._next
                shift.halted.clear()
                self._move({shift.number: self._sending()})

    def take_over(self, last: Shift, following: Shift) -> None:
        """Let the sources of the next shift go on, unless they are to stop anyway; the last one finishes."""
        with self._lock:
            following.owed = dict(last.owed)
            finishing = ShiftState(Phase.FINISHING, self._next)
            self._move({last.number: finishing, following.number: self._sending()})

    def write(self, shift: Shift, generation: int) -> None:
        """A shift has nothing left to process: its replicas write their state."""
        with self._lock:
            since = self.current.of(shift.number).since
            self._move({shift.number: ShiftState(Phase.WRITING, since, generation)})

    def end(self, shift: Shift) -> None:
        """It is the turn of the next."""
        with self._lock:
            self._change(shifts={number: one for number, one in self.current.shifts.items() if number != shift.number})

    # ── what slots of sources ask and say ───────────────────────────────────────────────────────────────────────────

    def start(self, shift: Shift, asked: StartQuery) -> Position:
        """A slot asks where its batch starts."""
        slot = (asked.source, asked.slot)
        with self._lock:
            position = self._positions.start(asked.batch, slot)
            if shift.begun.get(slot, asked.generation) != asked.generation:
                batch, sent = self._tally.furthest(shift.number, slot)
                shift.owed[slot] = max(shift.owed.get(slot, 0), self._positions.start(batch, slot) + sent)
            shift.begun[slot] = asked.generation
            return Position(asked.batch, position, self._until(shift, slot))

    def halted(self, shift: Shift, said: Halted) -> Position:
        """A slot says which event is the first that it has not sent, and is told if it is to go on to a later one."""
        slot = (said.source, said.slot)
        with self._lock:
            if said.since >= self._since and not shift.left:
                before = (shift.halted.get(slot, 0), shift.owed.get(slot, 0)) if self.stopped else ()
                shift.halted[slot] = max((said.position, *before))
            return Position(said.batch, said.position, self._until(shift, slot))

    def _until(self, shift: Shift, slot: ReplicaId) -> int | None:
        return shift.halted.get(slot) if shift.left or self.stopped else None

    # ── changes ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _next(self) -> int:
        return self.current.version + 1

    def _sending(self) -> ShiftState:
        return ShiftState(Phase.HALTED, self._next) if self.stopped else ShiftState(Phase.SENDING)

    def _halt(self) -> None:
        self._since = self._next
        ours = (Phase.SENDING, Phase.HALTED)
        sending = [number for number, one in self.current.shifts.items() if one.phase in ours]
        self._move(dict.fromkeys(sending, ShiftState(Phase.HALTED, self._since)))

    def _move(self, states: Mapping[int, ShiftState]) -> None:
        self._change(shifts=self.current.shifts | dict(states))

    def _change(self, **changes: Any) -> None:
        self.current = msgspec.structs.replace(self.current, version=self._next, **changes)
        self._publisher.publish(self.current)
