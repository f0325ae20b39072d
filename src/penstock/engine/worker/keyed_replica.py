"""A replica of an operator that keeps state: what it owns, writes at checkpoints, holds back, hands over and takes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from penstock.engine.plan.program import Program
from penstock.engine.protocol.bundle import HASH, Events, Switch, read_header, read_sign
from penstock.engine.protocol.messages import Report, RestoreQuery, StateReport
from penstock.engine.worker.inbox import Arrival
from penstock.engine.worker.lifecycle import Opened
from penstock.engine.worker.microbatch import AnyAgent
from penstock.engine.worker.role import Role
from penstock.errors import EngineError
from penstock.grouping.fields import key_of, stable_hash
from penstock.state.codec import Codec, key_as_kept
from penstock.state.files import StateFiles
from penstock.state.handover import ReceivingSide, Table
from penstock.state.keyed_state import KeyedState, Saved
from penstock.state.segments import Compaction, Segment
from penstock.topology.state_type import new_state

MOVE_S = 0.004  # state is given and taken for about this long at a time; then it is the turn of events again


class Call(NamedTuple):
    """An event with its key, as the replica works it off; shown as the event."""

    event: Any
    group: int
    key: Any
    born: float

    def __repr__(self) -> str:
        return repr(self.event)


Held = list[tuple[str, float, Call]]  # events with their ids and times, in order


class Writing(NamedTuple):
    """A checkpoint that is being written: its segment, if it has one, and the oldest that is needed."""

    number: int
    segment: Future[Segment | None]
    oldest: int


class Written(NamedTuple):
    """The last checkpoint that is written, the segments not known to be committed, and the oldest that is needed."""

    number: int
    segments: list[Segment]
    oldest: int


@dataclass
class Cached:
    """The state of a replica as it was at the end of a micro-batch."""

    state: KeyedState
    compaction: Compaction
    batch: int
    generation: int


_cached: dict[tuple[str, str, int], Cached] = {}  # from micro-batch to micro-batch; gone while one is at work


class KeyedReplica:
    """The state of one replica in one attempt, or in one micro-batch, and its side of hand-overs."""

    def __init__(self, program: Program, operator: Opened, report: Report, agent: AnyAgent) -> None:
        assert operator.spec.state is not None
        self._program, self._agent, self._report = program, agent, report
        self._spec, self._run = operator.spec, operator.one
        self._keyed = operator.spec.state
        self._files = StateFiles(program.storage / "state" / report.operator)
        self._held: dict[int, Held] = {}  # by group
        self._moves: Iterator[Held] | None = None  # group by group: what is due to be written, given and taken
        self._heard_s: dict[int, float] = {}  # by version of the table
        self._begun = self._over = False
        self._unwritten: set[int] = set()  # groups whose part of the last checkpoint is still to be made
        self._parts: list[tuple[int, bool, bytes]] = []
        self._checkpoint = 0  # of which parts are made
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="penstock-state")
        self._writing: deque[Writing] = deque()  # in order
        self._segments: list[Segment] = []  # written, in checkpoints that are not known to be committed
        self.saves = False  # whether what an event did to the state may have to be undone
        self._saved: tuple[Call, Saved] | None = None

    # ── begin and end ───────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self, table: Table, role: Role) -> None:
        """Load what the replica owns, and take part in hand-overs from now on."""
        mine = self._report
        self._side = ReceivingSide(mine.replica, table, self._program.senders_to(mine.operator))
        self._load(table)
        self._begun = True
        self.count()
        role.state = self._told

    def _load(self, table: Table) -> None:
        mine, owned = self._report, table.of(self._report.replica)
        segments = sorted(self._agent.ask_restore(RestoreQuery(mine.generation, mine.operator)).segments, reverse=True)
        kept = _cached.pop((self._program.run, mine.operator, mine.replica), None)
        if (
            kept is None
            or not segments
            or (kept.batch, kept.generation) != (segments[0].number, segments[0].generation)
        ):
            codec = Codec(str(self._spec), new_state(self._spec.run, self._keyed.kind), self._keyed.kind)
            kept = Cached(KeyedState(codec, self._keyed.expire_after_s), Compaction(), 0, 0)
        self._previous = segments[0].number if segments else -1
        self._state, self._compaction = kept.state, kept.compaction
        for group in self._state.owned - owned:
            self._forget(group)
        for group, found in self._files.load(owned - self._state.owned, segments).items():
            self._state.own(group, found.parts)
            if found.parts:
                self._compaction.past[group] = found.past

    def write(self) -> None:
        """Write the segment of a micro-batch; what is here may be gone after that, and the batch be committed."""
        mine = self._report
        parts = [self._compaction.part(self._state, group, mine.batch) for group in sorted(self._state.owned)]
        segment = Segment(mine.batch, mine.generation, mine.replica)
        self._files.write(segment, [part for part in parts if part is not None])
        key = (self._program.run, mine.operator, mine.replica)
        for other in [one for one, kept in _cached.items() if one[0] != key[0] or kept.batch < self._previous]:
            del _cached[other]
        _cached[key] = Cached(self._state, self._compaction, mine.batch, mine.generation)
        self._over = True
        mine.counters.state_bytes = mine.counters.state_keys = 0  # from now on they count with the next batch

    # ── checkpoints ─────────────────────────────────────────────────────────────────────────────────────────────────

    def checkpoint(self, number: int, wake: Callable[[], None]) -> None:
        """Keep the state as it is now: a group is encoded before an event changes it, the others little by little."""
        if self._held or not self._side.settled:
            return  # a change of owners goes on after all: this checkpoint will be given up
        self._finish_parts()
        self._checkpoint, self._wake = number, wake
        self._unwritten, self._parts = set(self._state.owned), []
        self._moves = chain(self._make_parts(), self._moves or ())

    def _make_parts(self) -> Iterator[Held]:
        for group in sorted(self._unwritten):
            self._make_part(group)
            yield []
        self._finish_parts()

    def _make_part(self, group: int) -> None:
        if group in self._unwritten:
            self._unwritten.discard(group)
            if (part := self._compaction.part(self._state, group, self._checkpoint)) is not None:
                self._parts.append(part)

    def _finish_parts(self) -> None:
        """Make what is missing of the checkpoint, and have it written."""
        if not self._checkpoint:
            return
        for group in sorted(self._unwritten):
            self._make_part(group)
        number, self._checkpoint = self._checkpoint, 0
        parts, self._parts = self._parts, []
        segment = Segment(number, self._report.generation, self._report.replica)
        future = self._writer.submit(lambda: self._files.write(segment, parts) if parts else None)
        self._writing.append(Writing(number, future, self._compaction.oldest(number)))
        future.add_done_callback(lambda _: self._wake())

    def written(self) -> Written | None:
        """What has been written since the last time, of all checkpoints; raises what kept it from being so."""
        written = None
        while self._writing and self._writing[0].segment.done():
            number, segment, oldest = self._writing.popleft()
            if (one := segment.result()) is not None:
                self._segments.append(one)
            written = Written(number, list(self._segments), oldest)
        return written

    def close(self) -> None:
        """Write nothing more."""
        self._writer.shutdown(wait=False, cancel_futures=True)

    def committed(self, number: int) -> None:
        """The driver knows of all segments up to this checkpoint."""
        self._segments = [one for one in self._segments if one.number > number]

    # ── events ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def admit(self, events: Events[Any]) -> Events[Any]:
        """The events that can be worked off now, as calls; the others wait for the state of their group."""
        assert events.keys is not None
        groups = (np.frombuffer(events.keys.hashes, HASH) % self._keyed.groups).tolist()
        calls = [
            Call(event, group, self.key_of(event), born)
            for event, group, born in zip(events.events, groups, events.born, strict=False)
        ]
        if calls:
            self._check_hash(calls[0])
        owned = self._state.owned
        if owned.issuperset(call.group for call in calls):
            events.events = calls
            return events
        admitted = Events[Any]([], [], [])
        for event_id, born, call in zip(events.ids, events.born, calls, strict=True):
            if call.group in owned:
                _append(admitted, event_id, born, call)
            else:
                self._held.setdefault(call.group, []).append((event_id, born, call))
        return admitted

    def process(self, call: Call) -> Any:
        """Run the operator on an event and the state of its key."""
        if call.group in self._unwritten:
            self._make_part(call.group)
        if self.saves:
            self._saved = None
            self._saved = call, self._state.save(call.group, call.key)
        output = self._run(call.event, self._state.value(call.group, call.key, call.born))  # type: ignore[call-arg]
        self._state.look(call.group, call.key)
        return output

    def undo(self) -> None:
        """Have the state as it was before the last event."""
        if self._saved is not None:
            call, saved = self._saved
            self._state.restore(call.group, call.key, saved)

    def key_of(self, event: Any) -> Any:
        """The key of an event, as its state is kept by."""
        assert self._spec.key is not None
        key = key_of(self._spec.key, event, "key_groups")
        return key_as_kept(key) if type(key) is list else key

    def _check_hash(self, call: Call) -> None:
        """The key must be what the sender saw: if its type changed on the way, so would its group."""
        if stable_hash(call.key) % self._keyed.groups != call.group:
            raise EngineError(
                f"{self._spec}: the key {call.key!r} ({type(call.key).__name__}) was another when the event was sent: "
                f"it must not change its type on the way; got {call.event!r}"
            )

    # ── hand-overs ──────────────────────────────────────────────────────────────────────────────────────────────────

    def heed(self, arrival: Arrival) -> None:
        """A switch, or news of the table: there may be state to give and to take now."""
        if arrival.bundle:
            header, sign = read_header(arrival.bundle), read_sign(arrival.bundle)
            assert isinstance(sign, Switch)
            self._side.mark(sign.version, (self._program.senders[header.sender], header.replica))
        self._hear(self._routed())

    @property
    def moving(self) -> bool:
        """Whether there is state to give or to take now."""
        return self._moves is not None

    def move(self, released: Events[Any]) -> None:
        """Give and take for a moment; adds the events that had waited for what was taken."""
        until = time.perf_counter() + MOVE_S
        for waited in self._moves or ():
            for event_id, born, call in waited:
                _append(released, event_id, born, call)
            if time.perf_counter() >= until:
                return
        self._moves = self._due()

    def _routed(self) -> Table:
        table = self._agent.routing.operators[self._report.operator].table
        assert table is not None
        return table

    def _hear(self, table: Table) -> None:
        self._heard_s.setdefault(table.version, time.monotonic())
        self._side.hear(table)
        if self._moves is None:
            self._moves = self._due()

    def _due(self) -> Iterator[Held] | None:
        lost = self._side.to_hand_over()
        moves = [self._give(lost)] if lost else []
        moves += [self._take(loser, groups) for loser, groups in self._side.to_take().items()]
        return chain.from_iterable(moves) if moves else None

    def _give(self, groups: frozenset[int]) -> Iterator[Held]:
        mine = self._report
        with self._files.hand_over(mine.generation, self._side.version, mine.replica) as add:
            for group in sorted(groups):
                self._make_part(group)
                add(group, True, self._state.whole(group))
                self._forget(group)
                yield []
        self._side.hand_over()
        self._agent.wake()

    def _take(self, loser: int, groups: frozenset[int]) -> Iterator[Held]:
        mine, version = self._report, self._side.version
        for group, data in self._files.take(mine.generation, version, loser, groups):
            self._state.own(group, [data])
            mine.counters.moving.add(1000 * (time.monotonic() - self._heard_s[version]))
            mine.counters.groups_moved += 1
            yield self._held.pop(group, [])
        self._side.take(groups)
        self._agent.wake()

    def _forget(self, group: int) -> None:
        self._state.forget(group)
        self._compaction.past.pop(group, None)

    def _told(self) -> StateReport:
        mine = self._report
        return StateReport(mine.operator, mine.replica, mine.generation, self._side.handed, self._side.taken)

    def count(self) -> None:
        """Bring the counters up to date; safe to call from the agent's thread."""
        counters = self._report.counters
        if self._begun and not self._over:
            counters.state_bytes, counters.state_keys = self._state.about_bytes, len(self._state)


def _append(events: Events[Any], event_id: str, born: float, call: Call) -> None:
    events.ids.append(event_id)
    events.born.append(born)
    events.events.append(call)


def forget_all() -> None:
    """Keep nothing from batch to batch in this process."""
    _cached.clear()
