"""Barriers at a replica: who is ahead waits, nothing is lost or given twice, and nobody waits for what was given up."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.protocol.bundle import Barrier, Events, Header, Switch, Unpacker, pack, pack_sign
from penstock.engine.worker.alignment import Alignment
from penstock.engine.worker.inbox import WAKE, Arrival
from penstock.topology import ReplicaId

NAMES = ("events", "parse")
A: ReplicaId = ("events", 0)
B: ReplicaId = ("parse", 0)
C: ReplicaId = ("parse", 1)


def header(sender: ReplicaId, events: int) -> Header:
    return Header(NAMES.index(sender[0]), sender[1], 2, 0, events)


def event(sender: ReplicaId, what: Any) -> Arrival:
    return Arrival(pack(header(sender, 1), Events(["0"], [0.0], [what])), 1)


def barrier(sender: ReplicaId, number: int, members: bytes = b"") -> Arrival:
    return Arrival(pack_sign(header(sender, 0), Barrier(number, members)), 0)


def switch(sender: ReplicaId, version: int) -> Arrival:
    return Arrival(pack_sign(header(sender, 0), Switch(version)), 0)


LOOK = Arrival(WAKE, 0)


class Taken:
    """What an alignment gives out of what arrives: events as they are, barriers by number."""

    def __init__(self, *senders: ReplicaId, most_bytes: int = 1 << 20) -> None:
        self.alignment = Alignment(senders, NAMES, most_bytes)
        self.arrived: deque[Arrival] = deque()

    def take(self, *arrivals: Arrival) -> list[Any]:
        """All that can be had once these have arrived, without waiting for more."""
        self.arrived.extend(arrivals)
        given: list[Any] = []
        while self.arrived or self.alignment.pending():
            one = self.alignment.take(lambda: self.arrived.popleft() if self.arrived else LOOK)
            assert one is not None
            if isinstance(one, Barrier):
                given.append(one.number)
            elif one.count:
                given += Unpacker()(one.bundle).events
            elif one.bundle:
                given.append("switch")
        return given


# ── one checkpoint ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_who_is_ahead_waits_for_the_others() -> None:
    taken = Taken(A, B)
    assert taken.take(event(A, "a1"), barrier(A, 1), event(A, "a2"), event(B, "b1")) == ["a1", "b1"]
    assert taken.take(event(A, "a3"), event(B, "b2")) == ["b2"]
    assert taken.take(barrier(B, 1), event(B, "b3")) == [1, "a2", "a3", "b3"]


def test_the_only_sender_never_waits() -> None:
    assert Taken(A).take(event(A, "a1"), barrier(A, 1), event(A, "a2"), barrier(A, 2)) == ["a1", 1, "a2", 2]


def test_only_members_of_a_checkpoint_are_waited_for() -> None:
    """Barriers say who they are, one by one."""
    of: dict[bytes, set[ReplicaId]] = {b"ac": {A, C}, b"all": {A, B, C}}
    taken = Taken(A, B, C)
    taken.alignment = Alignment([A, B, C], NAMES, members=of.__getitem__)
    assert taken.take(barrier(A, 1, b"ac"), event(A, "a"), event(B, "b"), barrier(C, 1, b"ac")) == ["b", 1, "a"]
    assert taken.take(barrier(A, 2, b"all"), barrier(C, 2, b"all"), event(C, "c")) == []
    assert taken.take(barrier(B, 2, b"all")) == [2, "c"]


def test_replicas_of_one_sender_are_told_apart() -> None:
    taken = Taken(B, C)
    assert taken.take(barrier(C, 1), event(C, "c"), event(B, "b"), barrier(B, 1)) == ["b", 1, "c"]


def test_a_switch_keeps_its_place_among_the_events_of_its_sender() -> None:
    """Key groups that were handed over too early would miss what is held back."""
    taken = Taken(A, B)
    assert taken.take(barrier(A, 1), event(A, "a"), switch(A, 2), switch(B, 2)) == ["switch"]
    assert taken.take(barrier(B, 1)) == [1, "a", "switch"]


def test_two_checkpoints_of_one_who_is_far_ahead() -> None:
    taken = Taken(A, B)
    assert taken.take(barrier(A, 1), event(A, "a1"), barrier(A, 2), event(A, "a2")) == []
    assert taken.take(barrier(B, 1), event(B, "b1")) == [1, "a1", "b1"]
    assert taken.take(barrier(B, 2)) == [2, "a2"]


def test_a_wake_is_given_on_at_once_whoever_is_ahead() -> None:
    taken = Taken(A, B)
    taken.take(barrier(A, 1), event(A, "a"))
    assert taken.alignment.take(lambda: LOOK) is LOOK


def test_the_end_is_given_on() -> None:
    assert Alignment([A, B], NAMES).take(lambda: None) is None


@pytest.mark.parametrize("first", [[barrier(A, 1)], [barrier(A, 1), event(A, "a")]], ids=["barrier", "held"])
def test_one_that_is_kept_comes_back_as_nothing(first: list[Arrival]) -> None:
    """The replica sends what it has emitted before it waits for more; it stayed there till the last barrier came."""
    alignment, arrived = Alignment([A, B], NAMES), deque(first)
    for _ in first:
        given = alignment.take(arrived.popleft)
        assert isinstance(given, Arrival)
        assert not given.bundle


# ── given up ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_was_held_is_released_when_the_checkpoint_is_given_up() -> None:
    taken = Taken(A, B)
    assert taken.take(barrier(A, 1), event(A, "a1")) == []
    taken.alignment.give_up(1)
    assert taken.take() == ["a1"]
    assert taken.take(event(A, "a2"), barrier(B, 1), event(B, "b1")) == ["a2", "b1"]  # its barrier means nothing now
    assert taken.take(barrier(B, 2), event(B, "b2"), barrier(A, 2)) == [2, "b2"]


def test_what_was_given_up_before_its_first_barrier_came() -> None:
    taken = Taken(A, B)
    taken.alignment.give_up(1)
    assert taken.take(barrier(A, 1), event(A, "a1")) == ["a1"]


def test_a_sender_that_skips_a_checkpoint_has_given_it_up() -> None:
    taken = Taken(A, B)
    assert taken.take(barrier(A, 1), event(A, "a1"), barrier(A, 2), event(A, "a2")) == []
    assert taken.take(barrier(B, 2), event(B, "b")) == ["a1", 2, "a2", "b"]


def test_giving_up_an_earlier_one_changes_nothing() -> None:
    taken = Taken(A, B)
    assert taken.take(barrier(A, 2), event(A, "a")) == []
    taken.alignment.give_up(1)
    assert taken.take() == []
    assert taken.take(barrier(B, 1), barrier(B, 2)) == [2, "a"]


def test_more_than_can_be_held_gives_the_checkpoint_up() -> None:
    """A replica must not fill its memory because another sender is slow."""
    taken = Taken(A, B, most_bytes=3 * len(event(A, "a0").bundle))
    assert taken.take(barrier(A, 1), *(event(A, f"a{n}") for n in range(3))) == []
    assert taken.take(event(A, "a3")) == ["a0", "a1", "a2", "a3"]
    assert taken.take(event(A, "a4"), barrier(B, 1), barrier(A, 2), barrier(B, 2)) == ["a4", 2]


# ── any order ───────────────────────────────────────────────────────────────────────────────────────────────────────

SENDERS = (A, B, C)
LAST = 4


@st.composite
def sent(draw: st.DrawFn) -> list[deque[Arrival]]:
    """What each sender sends: events as (sender, number, next checkpoint), and barriers; not all, but the last."""
    channels = []
    for place, sender in enumerate(SENDERS):
        channel, number = deque[Arrival](), 0
        for checkpoint in range(1, LAST + 1):
            for _ in range(draw(st.integers(0, 3))):
                channel.append(event(sender, [place, number, checkpoint]))
                number += 1
            if checkpoint == LAST or draw(st.integers(0, 3)):
                channel.append(barrier(sender, checkpoint))
        channel.append(event(sender, [place, number, LAST + 1]))
        channels.append(channel)
    return channels


@given(sent(), st.lists(st.one_of(st.sampled_from(range(3)), st.integers(-LAST + 1, -1)), max_size=60), st.data())
def test_whatever_comes_in_whatever_order(
    channels: list[deque[Arrival]], order: list[int], data: st.DataObject
) -> None:
    """Nothing lost or given twice, by sender in order; a barrier cuts exactly; in the end nothing is held."""
    alignment, given, events = Taken(*SENDERS), list[Any](), sum(one.count for channel in channels for one in channel)
    for what in order:
        if what < 0:
            alignment.alignment.give_up(-what)
        elif channels[what]:
            given += alignment.take(channels[what].popleft())
    while left := [channel for channel in channels if channel]:
        given += alignment.take(data.draw(st.sampled_from(left)).popleft())
    given += alignment.take()

    numbers: dict[int, list[int]] = {place: [] for place in range(len(SENDERS))}
    reached = [0]
    for one in given:
        if isinstance(one, int):
            assert one > reached[-1]
            reached.append(one)
            continue
        place, number, _ = one
        numbers[place].append(number)
    for at, one in enumerate(given):
        if isinstance(one, int):
            assert all(event[2] > one for event in given[at:] if not isinstance(event, int))
            assert all(event[2] <= one for event in given[:at] if not isinstance(event, int))
    for counted in numbers.values():
        assert counted == list(range(len(counted)))
    assert sum(map(len, numbers.values())) == events
    assert reached[-1] == LAST  # which nobody gave up
