"""The sender's side of late binding: what leaves, what stays, and barriers behind it."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.protocol.bundle import Barrier
from penstock.engine.protocol.messages import OperatorRouting, Routing
from penstock.engine.pull import sender as module
from penstock.engine.pull.post import Post, RoomNote
from penstock.engine.worker.outbox import Outbox
from penstock.metrics.counters import ReplicaCounters
from penstock.topology import To, Topology

Tools = SimpleNamespace


def same(event: Any) -> Any:
    return event


class Sending:
    """The outbox of `first`, whose events go to `late` by room, and to `soon` at once."""

    def __init__(self, tools: Tools, *, active: tuple[int, ...] = (0, 1), streams: tuple[str, ...] = ("late",)) -> None:
        topology = Topology("app", pool=4)
        first = topology.operator(
            "first",
            same,
            inputs=topology.source("events"),
            outputs=("late", "more", "soon"),
            on_error="dead_letter",
        )
        topology.operator("late", same, inputs=[first[stream] for stream in streams], grouping="pull")
        topology.operator("soon", same, inputs=first["soon"])
        topology.dead_letters(len, name="rejects")
        self.program = tools.program_of(topology)
        self.counters = ReplicaCounters()
        self.outbox = Outbox(self.program, 1, "first", 0, self.counters)
        self.outbox.declare(first.outputs)
        self._left, self._active = tools.left, active
        self._number = 0

    def emit(self, count: int, stream: str = "late") -> None:
        for _ in range(count):
            self.outbox.add_one(str(self._number), 0.0, To(stream, {"n": self._number}))
            self._number += 1

    def hear(self, replica: int, finished: int, credit: int) -> bool:
        return self.outbox.hear(RoomNote(0, "late", replica, "first", 0, finished, credit))

    def flush(self, barrier: int | None = None, active: tuple[int, ...] | None = None) -> Any:
        self._active = active or self._active
        operators = dict(self.program.routing) | {"late": OperatorRouting(self._active)}
        sign = None if barrier is None else Barrier(barrier)
        return self._left(self.outbox.rows(Routing(1, operators), barrier=sign))


def test_each_replica_is_given_one_event_until_it_says_how_many_it_may_have(tools: Tools) -> None:
    sending = Sending(tools)
    sending.emit(5)
    assert sending.flush().ids == ["0", "1"]
    assert sending.outbox.held() == {"late": 3}
    assert (sending.outbox.waiting, sending.outbox.holding) == (0, True)  # nobody needs to look before there is room
    assert sending.flush().ids == []
    assert sending.hear(1, finished=1, credit=2)
    assert sending.outbox.waiting == 2
    left = sending.flush()
    assert {row.header.partition for row in left.bundles} == {1}
    assert left.ids == ["2", "3"]
    assert sending.counters.sent == {"late": 5}  # what is held counts as sent, so that nobody takes all for done


def test_a_new_replica_takes_what_is_held(tools: Tools) -> None:
    sending = Sending(tools)
    sending.emit(5)
    sending.flush()
    assert sending.flush(active=(0, 1, 3)).ids == ["2"]


def test_bundles_say_where_their_sender_hears_of_room(tools: Tools) -> None:
    sending, post = Sending(tools), Post("127.0.0.1", b"s" * 32)
    sending.outbox.post = lambda: post
    sending.emit(1)
    sending.emit(1, "soon")
    assert {row.back for row in sending.flush().bundles} == {post.address, None}
    post.close()


def test_a_barrier_leaves_behind_what_is_held_and_others_do_not_wait_for_it(tools: Tools) -> None:
    sending = Sending(tools)
    sending.emit(4)
    sending.emit(1, "soon")
    left = sending.flush(barrier=7)
    receivers = Counter(partition for partition, _, _ in left.signs)
    assert len(receivers) == len(left.signs) == 4 + 1  # to all of `soon`, and the only one for dead letters
    sending.emit(2)  # behind it
    sending.hear(0, finished=1, credit=4)
    left = sending.flush()
    assert (left.ids, left.barriers) == (["2", "3", "5", "6"], [7] * 4)
    assert sending.outbox.held() == {}


def test_barriers_leave_in_order_each_behind_its_own(tools: Tools) -> None:
    sending = Sending(tools, active=(0,))
    for number in (7, 8):
        sending.emit(2)
        sending.flush(barrier=number)
    order = []
    for finished in range(1, 5):
        sending.hear(0, finished, credit=1)
        left = sending.flush()
        order += [*left.ids, *dict.fromkeys(left.barriers)]
    assert order == ["1", 7, "2", "3", 8]


def test_streams_to_one_operator_share_its_room(tools: Tools) -> None:
    sending = Sending(tools, streams=("late", "more"))
    sending.emit(2)
    sending.emit(2, "more")
    left = sending.flush(barrier=3)
    assert len(left.ids) == 2
    for replica in (0, 1):
        sending.hear(replica, finished=1, credit=9)
    left = sending.flush()
    assert (len(left.ids), set(left.barriers)) == (2, {3})


def test_who_holds_twice_the_credit_is_full(tools: Tools) -> None:
    sending = Sending(tools)
    assert sending.outbox.room() == module.LEAST_HELD
    sending.emit(module.LEAST_HELD + 2)
    sending.flush()
    assert sending.outbox.full
    assert sending.outbox.room() == 0
    for replica in (0, 1):
        sending.hear(replica, finished=0, credit=100)
    sending.flush()
    assert not sending.outbox.full
    assert sending.outbox.room() == 400


def test_an_event_that_cannot_be_sent_is_found_before_its_siblings_leave_though_it_is_held(tools: Tools) -> None:
    sending = Sending(tools)
    sending.emit(2)
    sending.flush()  # there is no room any more
    cause = ("9", 0.0, "bad")
    sending.outbox.add_many("9", 0.0, [To("soon", "fine"), To("late", object())], cause)
    sending.counters.processed = 1
    left = sending.flush()
    assert [event["id"] for row in left.bundles for event in row.events if isinstance(event, dict)] == ["9"]
    assert "fine" not in left.events
    assert sending.outbox.held() == {}
    assert sending.counters.sent["late"] == 2


def test_room_is_given_back_by_what_was_to_leave_and_cannot(tools: Tools) -> None:
    sending = Sending(tools, active=(0,))
    sending.outbox.add_one("9", 0.0, To("late", object()))
    sending.counters.processed = 1
    sending.emit(1)
    assert sending.flush().ids[-1:] != []
    assert sending.outbox.held() == {}  # the only place went to the one that can be sent


def test_a_replica_that_is_never_heard_is_sent_to_all_the_same(
    tools: Tools, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A firewall lets no datagram pass: that must not stop the run."""
    sending = Sending(tools, active=(0,))
    sending.emit(3)
    sending.flush()
    assert sending.flush().ids == []
    monkeypatch.setattr(module, "SILENT_S", -1.0)
    sending.flush()
    assert "nothing is heard of replica 0" in caplog.text
    assert sending.outbox.held() == {} or sending.flush().ids == ["1", "2"]


def test_whoever_was_heard_may_be_slow(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SILENT_S", -1.0)
    sending = Sending(tools, active=(0,))
    sending.emit(3)
    sending.hear(0, finished=0, credit=1)
    sending.flush()
    assert sending.flush().ids == []


def test_in_a_batch_events_are_dealt_out(tools: Tools) -> None:
    from penstock.engine.plan.program import MicroBatch

    topology = Topology("app", pool=4)
    topology.operator("late", same, inputs=topology.source("events"), grouping="pull")
    program = tools.program_of(topology, microbatch=MicroBatch(0, "events"), active={"late": (0, 1)})
    outbox = Outbox(program, 0, "events", 0, ReplicaCounters())
    for number in range(4):
        outbox.add_one(str(number), 0.0, number)
    left = tools.left(outbox.rows(Routing(1, dict(program.routing))))
    assert Counter(row.header.partition for row in left.bundles) == {0: 1, 1: 1}
