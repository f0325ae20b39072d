"""The replica's side of the online shuffle: times of events by sender, sketches, replies."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.online.mailbox import Mailbox
from penstock.engine.online.receiver import OnlineReceiver, online_receiver
from penstock.engine.plan.program import Limits
from penstock.engine.protocol.bundle import HASH, Events, Header, Keys, pack
from penstock.engine.protocol.messages import OnlineReport, ReplyTo, Report
from penstock.grouping import stable_hash
from penstock.grouping.online_shuffle import OnlineShuffleOptions, Request
from penstock.metrics.counters import ReplicaCounters
from penstock.topology import Topology

Driver = Any
Tools = SimpleNamespace
Work = Any

SENDERS = (("left", 0), ("left", 1), ("right", 0))


def keys(*hashes: int, replica: int = 0, requests: list[Request] | None = None) -> Keys:
    return Keys(replica, np.array(hashes, HASH).tobytes(), requests or [])


def ask(event: int, estimate_s: float = 0.0, epoch: int = 1) -> Request:
    return Request(event, 0, epoch, estimate_s)


def collected(mail: Mailbox) -> OnlineReport | None:
    return mail.collect(Report(0, 0, "op", 0, ReplicaCounters()))


def replies(mail: Mailbox) -> list[ReplyTo]:
    report = collected(mail)
    return report.replies if report else []


def learner(window: int = 1000) -> tuple[OnlineReceiver, Mailbox]:
    mail = Mailbox()
    return OnlineReceiver(SENDERS, OnlineShuffleOptions(window=window), mail), mail


def tuples(told: list[ReplyTo]) -> list[tuple[str, int, int, float]]:
    return [(one.sender, one.replica, one.epoch, one.delta_s) for one in told]


# ── by sender ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_reply_says_how_far_the_estimate_of_its_sender_is_off() -> None:
    """0.5 s of the sender's own events up to the one that was asked with, not of the others'."""
    online, mail = learner()
    online.expect("left", keys(1, 2, replica=1), 2)
    online.expect("right", keys(1), 1)
    online.expect("left", keys(1, 2, replica=1, requests=[ask(0, 0.375, epoch=4)]), 2)
    online.executed([0.125, 0.125, 8.0, 0.25, 16.0])
    assert tuples(replies(mail)) == [("left", 1, 4, 0.125)]


def test_a_reply_waits_until_its_event_has_been_executed() -> None:
    online, mail = learner()
    online.expect("left", keys(1, 2, 3, requests=[ask(1)]), 3)
    online.executed([0.5])
    assert replies(mail) == []
    online.executed([0.25, 8.0])
    assert tuples(replies(mail)) == [("left", 0, 1, 0.75)]


def test_an_event_that_was_dropped_takes_no_time_and_is_still_answered_for() -> None:
    online, mail = learner()
    online.expect("left", keys(1, 2, 3, requests=[ask(1)]), 3)
    online.executed([0.5, math.nan, 0.25])
    assert tuples(replies(mail)) == [("left", 0, 1, 0.5)]


def test_of_a_bundle_that_found_the_queue_full_the_rest_is_answered_for_at_its_end() -> None:
    online, mail = learner()
    online.expect("left", keys(1, 2, 3, requests=[ask(2)]), 2)
    online.expect("right", keys(1, requests=[ask(0)]), 1)
    online.executed([0.5, 0.25, 1.0])
    assert tuples(replies(mail)) == [("left", 0, 1, 0.75), ("right", 0, 1, 1.0)]


def test_a_stable_sketch_is_told() -> None:
    online, mail = learner(window=2)
    online.expect("left", keys(7, 8, 7, 8), 4)
    online.executed([0.5, 0.25, 0.5, 0.25])
    report = collected(mail)
    assert report is not None
    assert report.sketch is not None
    assert report.sketch.array()[:, 0].sum(axis=1).tolist() == [4.0, 1.5]
    assert report.number == 1


@given(
    bundles=st.lists(
        st.tuples(st.sampled_from(SENDERS), st.lists(st.integers(0, 5), min_size=1, max_size=5)), max_size=8
    ),
    pieces=st.lists(st.integers(1, 7), max_size=40),
    data=st.data(),
)
def test_how_the_times_come_in_makes_no_difference(
    bundles: list[tuple[tuple[str, int], list[int]]], pieces: list[int], data: st.DataObject
) -> None:
    """Event by event, bundle by bundle or several bundles at once: the same sketches, the same replies."""
    events = sum(len(hashes) for _, hashes in bundles)
    times_s = data.draw(st.lists(st.sampled_from([0.125, 0.5, 1.0, math.nan]), min_size=events, max_size=events))
    asked = [data.draw(st.sets(st.integers(0, len(hashes) - 1), max_size=2)) for _, hashes in bundles]

    def told(cuts: list[int]) -> tuple[list[tuple[str, int, int, float]], list[float] | None]:
        online, mail = learner(window=3)
        for ((name, replica), hashes), places in zip(bundles, asked, strict=True):
            requests = [ask(place, epoch=1 + place) for place in places]
            online.expect(name, keys(*hashes, replica=replica, requests=requests), len(hashes))
        done = 0
        for cut in [*cuts, events]:
            online.executed(times_s[done : done + cut])
            done += cut
        report = collected(mail)
        if report is None:
            return [], None
        return tuples(report.replies), report.sketch.array().tolist() if report.sketch else None

    one_by_one = told([1] * events)
    assert sorted(told(pieces)[0]) == sorted(one_by_one[0])
    assert told(pieces)[1] == one_by_one[1]


# ── who may send ────────────────────────────────────────────────────────────────────────────────────────────────────


def union(**end: Any) -> Topology:
    topology = Topology("union", pool=2)
    events = topology.source("events")
    left = topology.operator("left", len, inputs=events, pool=3)
    right = topology.operator("right", len, inputs=events)
    topology.operator("end", len, inputs=[left, events, right], **end)
    return topology


def test_every_replica_that_may_send_has_a_column(tools: Tools) -> None:
    """Whole pools, active or not, and the slots of sources."""
    program = tools.program_of(union(grouping="online_shuffle"), slots=2)
    online = online_receiver(program, "end", Mailbox())
    assert online is not None
    expected = {("events", 0), ("events", 1), *(("left", n) for n in range(3)), ("right", 0), ("right", 1)}
    assert set(online._columns) == expected
    assert sorted(online._columns.values()) == list(range(7))


def test_only_replicas_of_such_operators_learn(tools: Tools) -> None:
    assert online_receiver(tools.program_of(union()), "end", Mailbox()) is None
    assert online_receiver(tools.program_of(union(grouping="online_shuffle")), "left", Mailbox()) is None


# ── at work ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def app(run: Any, **operator: Any) -> Topology:
    topology = Topology("app", pool=4)
    options = {"grouping": "online_shuffle:window=4", "cost_by": "ms"} | operator
    topology.operator("op", run, inputs=[topology.source("events"), topology.source("others")], **options)
    return topology


class Slow:
    """Takes the time that an event says; a busy machine adds to that, so it is measured here, too."""

    took_s: ClassVar[list[float]] = []

    def process(self, event: dict[str, int]) -> None:
        begun_s = time.perf_counter()
        time.sleep(event["ms"] / 1000)
        Slow.took_s.append(time.perf_counter() - begun_s)


def bundle(*ms: int, sender: int = 0, requests: list[Request] | None = None, born: float | None = None) -> bytes:
    """Events of these times from a source, as a sender by online shuffle packs them."""
    events = [{"ms": one} for one in ms]
    hashes = [stable_hash(one) for one in ms]
    since = time.time() if born is None else born
    columns = Events([str(n) for n in range(len(ms))], [since] * len(ms), events, keys(*hashes, requests=requests))
    return pack(Header(sender, 0, 1, 0, len(ms)), columns)


def heard(driver: Driver) -> list[OnlineReport]:
    return [one for reports in driver.heard for one in reports.online]


def all_replies(driver: Driver, tools: Tools, count: int = 1) -> list[tuple[str, int, int, float]]:
    found = tools.until(lambda: (f := [r for one in heard(driver) for r in one.replies]) and len(f) >= count and f)
    return tuples(found)


def test_the_time_of_every_event_is_measured(driver: Driver, tools: Tools, work: Work) -> None:
    """2, 20, 200 and 5 ms: replies say so, up to the event they were asked with, and no time counts twice."""
    asked = [ask(place, epoch=place + 1) for place in range(4)]
    Slow.took_s.clear()
    begun_s = time.perf_counter()
    work(app(Slow()), bundle(2, 20, 200, 5, requests=asked))
    all_s = time.perf_counter() - begun_s
    deltas_s = [delta_s for _, _, _, delta_s in all_replies(driver, tools, 4)]
    steps_s = np.diff([0.0, *deltas_s])
    assert (steps_s >= Slow.took_s).all()
    assert steps_s.sum() <= all_s


def test_a_replica_sends_its_sketch_with_the_keys_of_its_events(driver: Driver, tools: Tools, work: Work) -> None:
    work(app(Slow(), grouping="online_shuffle:window=2,mu=9"), bundle(5, 1, 5, 1))
    report = tools.until(lambda: [one for one in heard(driver) if one.sketch])[0]
    assert (report.operator, report.replica, report.batch, report.number) == ("op", 0, 1, 1)
    counts, times_s = report.sketch.array()
    assert counts.sum() == 3 * 4
    long, short = times_s.max(), times_s[times_s > 0].min()
    assert 0.01 <= long < times_s.sum()
    assert short >= 0.002


class Many:
    """Takes all that waits at once; the time is that of the whole call."""

    def process(self, event: Any) -> None:
        self.process_many([event])

    def process_many(self, events: list[Any]) -> None:
        time.sleep(0.004 * len(events))


def test_the_time_of_a_call_is_shared_out_over_its_events(driver: Driver, tools: Tools, work: Work) -> None:
    """Bundles of two senders in one call: each is told the time of its own."""
    first = [bundle(1, sender=0, requests=[ask(0)])]
    more = [bundle(1, 1, 1, sender=n % 2, requests=[ask(2, epoch=2)] if n > 1 else []) for n in range(4)]
    work(app(Many()), *first, *more)
    last = {sender: delta_s for sender, _, epoch, delta_s in all_replies(driver, tools, 3) if epoch == 2}
    assert last["events"] >= 7 * 0.004
    assert last["others"] >= 6 * 0.004


def test_an_event_that_is_too_old_costs_nothing(driver: Driver, tools: Tools, work: Work) -> None:
    old = bundle(50, requests=[ask(0)], born=time.time() - 60)
    for run in (Slow(), Many()):
        driver.heard.clear()
        work(app(run), old, limits=Limits(t_out_s=1.0))
        assert all_replies(driver, tools) == [("events", 0, 1, 0.0)]


def fail(event: dict[str, int]) -> None:
    time.sleep(event["ms"] / 1000)
    raise ValueError("no")


def test_an_event_that_raises_has_taken_its_time(driver: Driver, tools: Tools, work: Work) -> None:
    work(app(fail, on_error="drop"), bundle(10, requests=[ask(0)]))
    ((_, _, _, delta_s),) = all_replies(driver, tools)
    assert delta_s >= 0.01


def test_a_replica_of_another_grouping_says_nothing_of_it(driver: Driver, tools: Tools, work: Work) -> None:
    work(app(Slow(), grouping="shuffle"), tools.bundle([{"ms": 1}] * 8))
    assert heard(driver) == []
