"""The receiver's side of late binding: whom a replica tells of room, when, and what."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.plan.program import MicroBatch
from penstock.engine.protocol.bundle import Header
from penstock.engine.protocol.messages import Address, OperatorRouting, Routing
from penstock.engine.pull import receiver as module
from penstock.engine.pull.post import RoomNote
from penstock.engine.pull.receiver import Rooms, rooms_of
from penstock.topology import Topology

Tools = SimpleNamespace
HERE = ("127.0.0.1", 4000)


def app(grouping: str = "pull") -> Topology:
    topology = Topology("app", pool=4)
    first = topology.operator("first", len, inputs=topology.source("events"), grouping="shuffle")
    topology.operator("late", len, inputs=first, grouping=grouping)
    return topology


class Told:
    """A replica of `late`, and the notes that it sends."""

    def __init__(self, tools: Tools, senders: tuple[int, ...] = (0,)) -> None:
        program = tools.program_of(app())
        self.notes: list[tuple[RoomNote, Address]] = []
        post: Any = SimpleNamespace(send=lambda note, to: self.notes.append((note, to)))
        rooms = rooms_of(program, "late", 2, lambda: post)
        assert rooms is not None
        self.rooms: Rooms = rooms
        self._routing = Routing(1, {"first": OperatorRouting(senders), "late": OperatorRouting((2,))})

    def arrive(self, events: int, *, sender: int = 0, kept: int | None = None, back: Address | None = HERE) -> None:
        self.rooms.arrive(Header(1, sender, 2, 2, events), back, events if kept is None else kept)

    def finish(self, events: int, busy_s: float = 0.0) -> list[tuple[int, int, int]]:
        """Finish events; who was told: (sender's replica, finished, credit)."""
        before = len(self.notes)
        self.rooms.finish(events, busy_s, self._routing)
        return [(note.of, note.finished, note.credit) for note, _ in self.notes[before:]]


def test_a_sender_is_told_at_the_first_bundle_that_it_is_heard(tools: Tools) -> None:
    told = Told(tools)
    told.arrive(1)
    told.arrive(1)
    assert told.notes == [(RoomNote(0, "late", 2, "first", 0, 0, 2), HERE)]


def test_it_may_give_as_much_as_takes_50_ms_and_one_more(tools: Tools) -> None:
    told = Told(tools)
    told.arrive(3)
    assert told.finish(3, busy_s=0.03) == [(0, 3, 6)]


def test_several_senders_share_the_credit(tools: Tools) -> None:
    told = Told(tools, senders=(0, 1))
    for sender in (0, 1):
        told.arrive(4, sender=sender)
    told.finish(4, busy_s=0.04)
    assert told.finish(4, busy_s=0.04) == [(1, 4, 3)]


def test_a_sender_with_half_of_its_credit_left_is_not_told(tools: Tools) -> None:
    """At low load nobody waits for room, and every note costs two processes something."""
    told = Told(tools)
    told.arrive(10)
    told.finish(10, busy_s=0.001)  # a credit of 501
    notes = []
    for _ in range(150):
        told.arrive(5)
        notes += told.finish(5, busy_s=0.0005)
    assert [finished for _, finished, _ in notes] == [265, 520]


def test_events_are_finished_in_the_order_in_which_they_came(tools: Tools) -> None:
    told = Told(tools, senders=(0, 1, 2))
    for sender in (0, 1, 2):
        told.arrive(2, sender=sender)
    assert told.finish(3, busy_s=3.0) == [(0, 2, 1), (1, 1, 1)]
    assert told.finish(3, busy_s=3.0) == [(1, 2, 1), (2, 2, 1)]


def test_what_is_not_kept_is_finished(tools: Tools) -> None:
    told, lost = Told(tools), {("first", 0): 7}
    told.rooms.watch(lost)
    told.arrive(5, kept=2)
    assert told.finish(2, busy_s=1.0) == [(0, 5 + 7, 2)]


def test_the_last_note_is_repeated_for_a_while(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REPEATS", 3)
    told = Told(tools)
    told.arrive(1)
    told.finish(1, busy_s=1.0)
    before = len(told.notes)
    for _ in range(10):
        told.rooms.repeat()
    assert {note.finished for note, _ in told.notes[before:]} == {1}
    assert len(told.notes) == before + 3


def test_a_sender_that_moved_is_told_where_it_is_now(tools: Tools) -> None:
    told = Told(tools)
    told.arrive(1)
    told.arrive(1, back=("127.0.0.1", 4001))
    assert [to[1] for _, to in told.notes] == [4000, 4001]


@pytest.mark.parametrize(("grouping", "changes"), [("shuffle", {}), ("pull", {"microbatch": MicroBatch(0, "events")})])
def test_who_is_not_bound_late_keeps_nothing(tools: Tools, grouping: str, changes: dict[str, Any]) -> None:
    program = tools.program_of(app(grouping), **changes)
    assert rooms_of(program, "late", 0, lambda: pytest.fail("nobody is told")) is None
