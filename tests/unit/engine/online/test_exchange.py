"""The driver hands on what replicas have learnt: to whom, once, and only what is new."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.online.exchange import Exchange
from penstock.engine.online.mailbox import Mailbox
from penstock.engine.protocol.messages import OnlineNews, OnlineReport, ReplyTo, Report, Reports, frame
from penstock.grouping.online_shuffle import Sketch
from penstock.metrics.counters import ReplicaCounters


def sketch(cell: float = 1.0) -> Sketch:
    return Sketch.of(np.full((2, 3, 54), cell))


def cell_of(sketch: Sketch) -> float:
    return float(sketch.array()[0, 0, 0])


def reports(*online: OnlineReport) -> Reports:
    return Reports("host", 1, 0, [], list(online))


def made(cell: float, number: int = 1, *, replica: int = 0, generation: int = 0, batch: int = 0) -> Reports:
    """A replica of `bolt` has a new sketch."""
    return reports(OnlineReport(generation, batch, "bolt", replica, sketch=sketch(cell), number=number))


def replied(*replies: ReplyTo, replica: int = 0, generation: int = 0, batch: int = 0) -> Reports:
    return reports(OnlineReport(generation, batch, "bolt", replica, replies=list(replies)))


def asks(
    exchange: Exchange, known: int = 0, *, to: str = "bolt", state: str = "RUN", who: int = 0, **when: int
) -> OnlineNews | None:
    """What the sender `source/who` is told when it reports."""
    report = OnlineReport(when.get("generation", 0), when.get("batch", 0), "source", who, states={to: state})
    report.known = known
    found = exchange.enter(reports(report))
    assert len(found) <= 1
    return found[0] if found else None


def cells(news: OnlineNews | None) -> dict[tuple[str, int], float]:
    return {(one.operator, one.replica): cell_of(one.sketch) for one in news.sketches} if news else {}


# ── sketches ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_sketch_is_handed_to_who_sends_to_the_operator_and_only_once() -> None:
    exchange = Exchange()
    assert exchange.enter(made(5.0)) == []
    assert asks(exchange, to="other") is None
    news = asks(exchange)
    assert cells(news) == {("bolt", 0): 5.0}
    assert asks(exchange, news.number) is None
    assert cells(asks(exchange, 0, who=1)) == {("bolt", 0): 5.0}  # another sender


def test_news_that_were_lost_are_told_again() -> None:
    exchange = Exchange()
    exchange.enter(made(5.0))
    assert cells(asks(exchange)) == cells(asks(exchange)) == {("bolt", 0): 5.0}


def test_only_what_is_new_is_told() -> None:
    exchange = Exchange()
    for replica in range(3):
        exchange.enter(made(1.0, replica=replica))
    news = asks(exchange)
    exchange.enter(made(2.0, number=2, replica=1))
    assert cells(asks(exchange, news.number)) == {("bolt", 1): 2.0}


def test_an_older_or_repeated_sketch_is_not_news() -> None:
    exchange = Exchange()
    exchange.enter(made(2.0, number=2))
    known = asks(exchange).number
    for old in (made(2.0, number=2), made(1.0, number=1)):
        exchange.enter(old)
        assert asks(exchange, known) is None


def test_a_replica_that_started_anew_replaces_its_sketch() -> None:
    """Its sketches count from 1 again in every batch, and in every generation."""
    exchange = Exchange()
    exchange.enter(made(9.0, number=9, batch=4))
    exchange.enter(made(1.0, number=1, batch=5))
    assert cells(asks(exchange)) == {("bolt", 0): 1.0}
    exchange.enter(made(2.0, number=1, batch=4, generation=1))  # the batch is done again
    assert cells(asks(exchange)) == {("bolt", 0): 2.0}
    exchange.enter(made(9.5, number=9, batch=5))  # a process of the first generation that lives on
    assert cells(asks(exchange)) == {("bolt", 0): 2.0}


def test_sketches_of_an_earlier_batch_are_what_a_new_one_begins_with() -> None:
    exchange = Exchange()
    exchange.enter(made(9.0, batch=4))
    assert cells(asks(exchange, batch=5)) == cells(asks(exchange, generation=1, batch=4)) == {("bolt", 0): 9.0}


# ── replies ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_reply_reaches_the_one_who_asked_in_this_batch_and_nobody_else() -> None:
    exchange = Exchange()
    exchange.enter(replied(ReplyTo("source", 1, 3, 0.25), batch=7, replica=2))
    for who, when in ((0, {"batch": 7}), (1, {"batch": 6}), (1, {"batch": 7, "generation": 1})):
        assert asks(exchange, who=who, **when) is None
    news = asks(exchange, who=1, batch=7)
    assert [(one.operator, one.replica, one.epoch, one.delta_s) for one in news.replies] == [("bolt", 2, 3, 0.25)]
    assert asks(exchange, news.number, who=1, batch=7) is None


def test_of_several_replies_of_one_replica_the_last_is_told() -> None:
    exchange = Exchange()
    exchange.enter(replied(ReplyTo("source", 0, 1, 0.1), ReplyTo("source", 0, 2, 0.2)))
    exchange.enter(replied(ReplyTo("source", 0, 2, 0.3), replica=1))
    assert sorted((one.replica, one.epoch, one.delta_s) for one in asks(exchange).replies) == [(0, 2, 0.2), (1, 2, 0.3)]


def test_a_late_reply_of_an_earlier_batch_does_not_take_the_place_of_a_new_one() -> None:
    exchange = Exchange()
    exchange.enter(replied(ReplyTo("source", 0, 1, 0.5), batch=3))
    exchange.enter(replied(ReplyTo("source", 0, 8, 9.9), batch=2))
    assert [one.delta_s for one in asks(exchange, batch=3).replies] == [0.5]


def test_one_who_replies_and_sends_does_both_in_one_report() -> None:
    """An operator in the middle: it is sketched by its senders' grouping and sketches itself."""
    exchange = Exchange()
    exchange.enter(reports(OnlineReport(0, 0, "end", 0, sketch=sketch(7.0), number=1)))
    middle = OnlineReport(0, 0, "bolt", 0, sketch=sketch(3.0), number=1, states={"end": "RUN"})
    middle.replies = [ReplyTo("source", 0, 1, 0.5)]
    (news,) = exchange.enter(reports(middle))
    assert (news.operator, cells(news)) == ("bolt", {("end", 0): 7.0})
    assert cells(asks(exchange)) == {("bolt", 0): 3.0}


# ── states ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_states_are_counted_by_operator_in_the_newest_batch() -> None:
    exchange = Exchange()
    assert exchange.states() == {}
    for who, state in enumerate(("RUN", "RUN", "WAIT_ALL", "")):  # the last has not sent anything
        asks(exchange, who=who, state=state, batch=1)
    asks(exchange, who=4, state="ROUND_ROBIN", batch=0)  # gone
    assert exchange.states() == {"bolt": {"RUN": 2, "WAIT_ALL": 1}}
    asks(exchange, who=0, state="ROUND_ROBIN", generation=1)
    assert exchange.states() == {"bolt": {"ROUND_ROBIN": 1}}


# ── size ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_messages_are_small() -> None:
    """A sketch of 3 × 54 cells takes 2.6 KB; without anything to say, a report is as long as it was."""
    exchange = Exchange()
    up = frame(made(5.0))
    exchange.enter(made(5.0))
    down = frame(asks(exchange))
    assert 2592 <= len(up) < 2592 + 150
    assert 2592 <= len(down) < 2592 + 150
    assert len(frame(Reports("host", 1, 0, []))) == len(frame(reports()))
    still = OnlineReport(0, 0, "source", 0, states={"bolt": "RUN"}, known=12)
    assert len(msgspec.msgpack.encode(still)) < 100


# ── whatever is lost ────────────────────────────────────────────────────────────────────────────────────────────────


def role(name: str, replica: int, batch: int = 0) -> Report:
    return Report(0, batch, name, replica, ReplicaCounters())


@given(st.lists(st.tuples(st.sampled_from(["sketch", "up", "down", "lost up", "lost down", "cut"]), st.integers(0, 2))))
def test_the_newest_sketches_arrive_whatever_is_lost_late_or_repeated(steps: list[tuple[str, int]]) -> None:
    """Three replicas and a sender; in the end two exchanges in a row get through."""
    exchange, sender, bolts = Exchange(), Mailbox(), [Mailbox() for _ in range(3)]
    heard = sender.subscribe("bolt").sketches
    newest: dict[int, float] = {}
    got: dict[int, float] = {}
    on_the_way: list[Any] = []

    def pass_on(box: Mailbox, report: Report) -> None:
        online = box.collect(report)
        on_the_way.extend(exchange.enter(reports(online)) if online is not None else [])

    def take() -> None:
        for one in on_the_way:
            sender.deliver(one)
            got.update({replica: cell_of(sketch) for replica, sketch in heard.items()})
        on_the_way.clear()

    for step, number in [*steps, *((("cut", n)) for n in range(3)), *[("up", n) for n in range(3)], ("down", 0)]:
        if step == "sketch":
            newest[number] = newest.get(number, 0.0) + 1.0
            bolts[number].tell(sketch(newest[number]), [])
        elif step == "up":
            pass_on(bolts[number], role("bolt", number))
        elif step == "lost up":
            bolts[number].collect(role("bolt", number))
        elif step == "cut":
            bolts[number].forget_told()
        elif step == "lost down":
            pass_on(sender, role("source", 0))
            on_the_way.clear()
        else:
            pass_on(sender, role("source", 0))
            take()
    assert got == newest
