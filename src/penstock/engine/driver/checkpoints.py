"""Checkpoints: when slots send barriers, when all that belongs to one is safe, and the record that commits it.

One at a time, and the next not before sinks have shown the last. Owners of key groups do not change while barriers are
on their way. A checkpoint that takes too long is given up, sooner where such a change waits for it; the next one covers
what it would have. If a replica becomes active whom it is not of, it begins anew.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from penstock.engine.driver.handovers import Handovers
from penstock.engine.driver.members import Members
from penstock.engine.driver.phases import Phases, Shift
from penstock.engine.driver.records import Record, Records, slot_name
from penstock.engine.driver.tally import Tally
from penstock.engine.protocol.messages import Done
from penstock.engine.protocol.progress import first_batch
from penstock.errors import EngineError
from penstock.metrics.counters import CheckpointStatus
from penstock.state.segments import Segment
from penstock.topology import ReplicaId

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.02
TRY_AGAIN_S = 1.0  # after a fault
HOLDER = "checkpoint"
YIELD_S = 2.0  # a change of owners of key groups waits no longer than this for a checkpoint, every other time


@dataclass
class Round:
    """One checkpoint on its way."""

    number: int
    shift: Shift
    generation: int
    begun_s: float
    last: bool  # the last one of its shift: it may take as long as it takes
    members: frozenset[ReplicaId]  # whom it is of
    done: dict[ReplicaId, Done] = field(default_factory=dict)
    committed_s: float | None = None

    @property
    def missing(self) -> set[ReplicaId]:
        """Who has not said that its part is safe."""
        return {one for one in self.members if one not in self.done or self.done[one].number != self.number}

    def hear(self, done: Done) -> None:
        """Take what one of its members has done; others say again what they have said before."""
        if done.generation == self.generation and (done.operator, done.replica) in self.members:
            self.done[done.operator, done.replica] = done

    @property
    def hidden(self) -> set[ReplicaId]:
        """Whose part has not been shown though it is committed."""
        return {one for one, done in self.done.items() if done.shown < self.number}


class WorkPort(Protocol):
    """What checkpoints need to know of the shifts."""

    def to_checkpoint(self) -> Shift | None:
        """The shift whose slots can send barriers now; None while there is none."""


class Checkpoints:
    """A thread that begins them, commits them, and gives them up."""

    def __init__(
        self,
        records: Records,
        phases: Phases,
        tally: Tally,
        handovers: Handovers,
        members: Members,
    ) -> None:
        self.records = records
        self._phases = phases
        self._tally = tally
        self._handovers = handovers
        self._members = members
        self._followed = (0, 0)  # of the attempt of that generation, all that send follow at least that routing
        self._work: WorkPort
        self._every_s = self._timeout_s = 0.0
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._heard: deque[Done] = deque()
        self._round: Round | None = None
        self._due_s = 0.0
        self._shown = 0  # how many were committed and shown
        self._held_by_this = False
        self._yielded = False  # the last one was given up for a change of owners
        self._numbers: dict[int, int] = {}  # the last of each shift
        self._status, self._since_s = CheckpointStatus(), 0.0  # when the last was committed, or they began
        self._stopped = threading.Event()
        if records.last is not None:
            phases.committed(records.last.number, records.last.parts)

    def start(self, work: WorkPort, every_s: float, timeout_s: float) -> None:
        """Begin one every so often from now on."""
        self._work, self._every_s, self._timeout_s = work, every_s, timeout_s
        self._since_s = time.monotonic()
        self._due_s = self._since_s + every_s
        self._status = replace(self._status, every_s=every_s)
        threading.Thread(target=self._watch, name="penstock-checkpoints", daemon=True).start()

    def stop(self) -> None:
        """Begin none any more, and commit none."""
        self._stopped.set()
        with self._changed:
            self._changed.notify_all()

    @property
    def status(self) -> CheckpointStatus:
        """How they go, at this moment."""
        status = self._status
        return status if status.every_s is None else replace(status, age_s=time.monotonic() - self._since_s)

    # ── what others want ────────────────────────────────────────────────────────────────────────────────────────────

    def soon(self) -> None:
        """Begin the next as soon as can be: what was done again after a fault need not be done a third time."""
        with self._lock:
            self._due_s = 0.0

    def now(self, timeout_s: float) -> bool:
        """Have all that has been processed so far in a checkpoint, and shown; False if the time is over first."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while self._round is not None and self._left(deadline):  # one that is under way may be too early
                self._changed.wait(min(LOOK_EVERY_S, self._left(deadline)))
            before = self._shown
            while self._shown == before and self._left(deadline):
                if self._round is None:
                    self._due_s = 0.0  # also after one that was given up, or whose attempt died before it was shown
                self._changed.wait(min(LOOK_EVERY_S, self._left(deadline)))
            return self._shown > before

    def _left(self, deadline: float) -> float:
        return 0.0 if self._stopped.is_set() else max(0.0, deadline - time.monotonic())

    def last_of(self, shift: Shift, shown_within_s: float) -> Round:
        """Begin the last checkpoint of a shift: its slots stand still behind their barriers.

        One under way is given up; one that is committed must be shown first, within the time.
        """
        with self._changed:
            self._await_shown(shown_within_s)
            if (going := self._round) is not None:
                self._give_up(going, "another shift takes over")
            number = self.next_number(shift.number)
            members = self._members.begin_whole(shift.layout)
            self._round = Round(number, shift, shift.supervisor.generation, time.monotonic(), True, members)
            self._phases.pause(number)
            return self._round

    def _await_shown(self, within_s: float) -> None:
        deadline = time.monotonic() + within_s
        while (going := self._round) is not None and going.committed_s is not None:
            if not self._left(deadline):
                names = ", ".join(sorted({name for name, _ in going.hidden}))
                what = f"sinks did not show checkpoint {going.number} within {within_s:g} s: {names}"
                raise EngineError(f"pools stay as they are: {what}")
            self._changed.wait(min(LOOK_EVERY_S, self._left(deadline)))

    def cancel(self, round_: Round) -> None:
        """The shift goes on after all."""
        with self._lock:
            if self._round is round_:
                self._give_up(round_, "the next shift could not take over")

    def wait_over(self, round_: Round, timeout_s: float) -> bool:
        """Whether the checkpoint is committed and shown within the time."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while self._round is round_ and self._left(deadline):
                self._changed.wait(min(0.1, self._left(deadline)))
            return round_.committed_s is not None and self._round is not round_

    def next_number(self, shift: int) -> int:
        """The number of the next checkpoint of a shift; numbers grow and are never used again."""
        self._numbers[shift] = self.first_label(shift)
        return self._numbers[shift]

    def first_label(self, shift: int) -> int:
        """The checkpoint to which the first events of an attempt belong: beyond all that was ever begun."""
        last = self.records.last.number if self.records.last is not None else 0
        return max(self._numbers.get(shift, 0), last, first_batch(shift)) + 1

    def call(self, generation: int, shift: int) -> None:
        """The standby of a shift goes to work, from the last record on."""
        self._phases.call(generation, self.first_label(shift))

    def abandon(self) -> None:
        """An attempt has died: what is on its way will not come."""
        with self._lock:
            if (going := self._round) is None:
                return
            if going.committed_s is None:
                self._give_up(going, "the query died")
            else:
                self._round = None  # what was not shown is up to the sinks' recovery
                self._changed.notify_all()

    # ── what replicas say ───────────────────────────────────────────────────────────────────────────────────────────

    def hear(self, all_done: Iterable[Done]) -> None:
        """Take what replicas have done; looked at by the thread, as the one that calls this must not wait."""
        self._heard.extend(all_done)

    # ── the thread ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _watch(self) -> None:
        while not self._stopped.wait(LOOK_EVERY_S):
            try:
                with self._lock:
                    if not self._stopped.is_set():
                        self._look(time.monotonic())
            except Exception as error:  # a full disk, say: the next time may do better
                log.warning("checkpoint: %s", error)
                self._stopped.wait(TRY_AGAIN_S)

    def _look(self, now_s: float) -> None:
        going = self._round
        while self._heard:
            done = self._heard.popleft()
            if going is not None:
                going.hear(done)
        if going is None:
            self._begin(now_s)
        elif going.committed_s is not None:
            if not going.hidden or going.generation != going.shift.supervisor.generation:
                self._round = None
                self._shown += not going.hidden
                self._changed.notify_all()
        elif going.generation != going.shift.supervisor.generation:
            self._give_up(going, "the query died")
        elif self._members.joined:
            self._begin_anew(going)
        elif not going.missing:
            self._commit(going, now_s)
        elif self._yields(going, now_s):
            self._yielded = True
            self._give_up(going, "replicas of an operator with state are to change, and it would wait for long queues")
        elif not going.last and now_s - going.begun_s > self._timeout_s:
            waited_for = ", ".join(sorted(f"{name}/{number}" for name, number in going.missing)[:5])
            self._give_up(going, f"not done after {self._timeout_s:g} s; it waited for {waited_for}")

    def _yields(self, going: Round, now_s: float) -> bool:
        """Whether it makes room for a change of owners of key groups; the next one does not."""
        if going.last or self._yielded or now_s - going.begun_s < YIELD_S:
            return False
        return self._handovers.wished()

    def _begin(self, now_s: float) -> None:
        shift = self._work.to_checkpoint() if now_s >= self._due_s else None
        if shift is None:
            return
        self._held_by_this = True
        if not self._handovers.hold_now(HOLDER):
            return  # key groups are on the move: as soon as they have arrived
        number, generation = self.next_number(shift.number), shift.supervisor.generation
        since = self._followed[1] if self._followed[0] == generation else 0
        members = self._members.begin(shift.layout, since)
        self._round = Round(number, shift, generation, now_s, False, members)
        self._phases.barrier(shift, number, members)

    def _commit(self, going: Round, now_s: float) -> None:
        record = made_record(going, self.records.last)
        before = self.records.last
        written = self.records.write(record)
        going.committed_s, self._yielded = now_s, False
        self._followed = (going.generation, min(done.routing for done in going.done.values()))
        self._tally.commit(going.shift.number, {one: done.counters for one, done in going.done.items()})
        self._phases.committed(going.number, record.parts)
        self._since_s = now_s
        self._status = replace(
            self._status,
            number=going.number,
            took_s=now_s - going.begun_s,
            at_s=record.at_s,
            committed=self._status.committed + 1,
            size_bytes=written + state_bytes(record),
        )
        self._release(now_s)
        for name, files in self._handovers.files.items():
            kept = [*record.state.get(name, ()), *(before.state.get(name, ()) if before is not None else ())]
            files.keep(kept, below=going.number)

    def _give_up(self, going: Round, why: str) -> None:
        log.warning("checkpoint %d: given up: %s", going.number, why)
        self._status = replace(self._status, given_up=self._status.given_up + 1)
        self._drop(going)

    def _begin_anew(self, going: Round) -> None:
        """A replica whom it is not of may have got what belongs to it; each replica joins once, so this has an end."""
        log.debug("checkpoint %d: begins anew, with a replica that has become active", going.number)
        self._drop(going)
        self._due_s = 0.0

    def _drop(self, going: Round) -> None:
        self._round = None
        self._phases.give_up(going.number)
        self._release(time.monotonic())

    def _release(self, now_s: float) -> None:
        self._due_s = now_s + self._every_s
        if self._held_by_this:
            self._held_by_this = False
            self._handovers.release(HOLDER)
        self._changed.notify_all()


def state_bytes(record: Record) -> int:
    """What replicas have written of their state for this checkpoint; the other segments were there before."""
    segments = (one for found in record.state.values() for one in found)
    return sum(one.size for one in segments if one.number == record.number)


def made_record(going: Round, before: Record | None) -> Record:
    """The record of a checkpoint whose parts are all safe."""
    slots = {slot_name(one): done for one, done in going.done.items() if one in going.shift.source_slots}
    by_operator: dict[str, list[Done]] = {}
    for (name, _), done in going.done.items():
        by_operator.setdefault(name, []).append(done)
    state: dict[str, list[Segment]] = {}
    for name, dones in by_operator.items():
        oldest = min(done.oldest for done in dones)
        known = {*(before.state.get(name, ()) if before is not None else ()), *(s for d in dones for s in d.segments)}
        if known:
            state[name] = sorted(one for one in known if oldest <= one.number <= going.number)
    parts: dict[str, dict[int, Any]] = {}
    for name, dones in by_operator.items():
        if kept := {done.replica: done.part for done in dones if done.part is not None}:
            parts[name] = kept
    return Record(
        number=going.number,
        generation=going.generation,
        at_s=time.time(),
        cursors={name: done.cursor for name, done in slots.items()},
        sent={name: done.sent for name, done in slots.items()},
        state=state,
        parts=parts,
    )
