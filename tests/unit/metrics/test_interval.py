from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest

from penstock.errors import InputError
from penstock.metrics.counters import OperatorCounters, ReplicaCounters, RunCounters, held_by
from penstock.metrics.interval import IntervalRules, difference
from penstock.metrics.latency import LatencyHistogram
from penstock.metrics.snapshot import Declared

DECLARED = {"a": Declared(("in",)), "b": Declared(("a",), shares={"a": 0.5})}
RULES = IntervalRules(td_s=2.0, declared=DECLARED)


def operator(received=0, processed=0, *, sender, busy_s=None, backlog=0, **more):
    """Two replicas; the first does one more where the number is odd."""
    busy_s = processed * 0.01 if busy_s is None else busy_s
    replicas = {
        0: ReplicaCounters({sender: received}, processed - processed // 2, busy_s=busy_s, cpu_s=busy_s / 2),
        1: ReplicaCounters(processed=processed // 2),
    }
    return OperatorCounters(replicas, (0, 1), 4, backlog, **more)


def run(time_s, entered, a, b, **more):
    return RunCounters(time_s, {"in": entered}, {"a": a, "b": b}, **more)


EARLIER = run(10.0, 100, operator(100, 90, sender="in", backlog=10), operator(45, 45, sender="a"))
LATER = run(12.0, 300, operator(300, 250, sender="in", backlog=50), operator(125, 120, sender="a", backlog=5))


def test_an_interval_is_the_difference():
    snapshot = difference(EARLIER, LATER, RULES)
    a, b = snapshot.operators.values()
    assert (snapshot.time_s, snapshot.interval_s, snapshot.td_s) == (12.0, 2.0, 2.0)
    assert snapshot.source_input == {"in": 200}
    assert (a.received_by, a.processed, a.backlog) == ({"in": 200}, 160, 50)
    assert (b.received_by, b.processed, b.backlog) == ({"a": 80}, 75, 5)
    assert a.execution_time_s == pytest.approx(0.01)
    assert a.busy_share == pytest.approx({0: 0.8, 1: 0.0})
    assert a.cpu_share == pytest.approx(0.4)
    assert a.processed_by == {0: 80, 1: 80}
    assert (a.replicas, a.pool) == (2, 4)
    assert b.declared_shares == {"a": 0.5}
    assert snapshot.incomplete == {}


def test_state_is_that_of_all_replicas_at_the_end():
    one, two = (
        RunCounters(time_s, {}, {"count": OperatorCounters(replicas, (0,), 2, 0)})
        for time_s, replicas in (
            (0.0, {0: ReplicaCounters(state_bytes=900)}),
            (1.0, {0: ReplicaCounters(state_bytes=300), 1: ReplicaCounters(state_bytes=400)}),
        )
    )
    assert difference(one, two, IntervalRules(1.0)).operators["count"].state_bytes == 700


def test_every_predecessor_has_a_key_even_when_it_sent_nothing():
    silent = run(12.0, 100, operator(sender="in"), OperatorCounters({0: ReplicaCounters()}, (0,), 4, 0))
    empty = run(10.0, 100, operator(sender="in"), OperatorCounters({0: ReplicaCounters()}, (0,), 4, 0))
    snapshot = difference(empty, silent, RULES)
    assert snapshot.operators["b"].received_by == {"a": 0}
    assert snapshot.operators["b"].execution_time_s is None


def test_source_events_out_are_the_sinks_events_over_their_share():
    """Over the run b got half of what a processed (125 of 250): its 75 are 150 source events."""
    assert difference(EARLIER, LATER, RULES).source_output == pytest.approx(150)


def test_latency_of_the_events_that_left_in_the_interval():
    old, new = LatencyHistogram(), LatencyHistogram()
    for histogram, times_ms in ((old, (1000,)), (new, (1000, 10, 30))):
        for time_ms in times_ms:
            histogram.add(time_ms)
    ends = [
        run(at, 0, operator(sender="in"), OperatorCounters({0: ReplicaCounters(latency=one)}, (0,), 4, 0))
        for at, one in ((0.0, old), (2.0, new))
    ]
    latency = difference(*ends, RULES).latency
    assert (latency.count, latency.mean_ms) == (2, pytest.approx(20.0))
    assert latency.p99_ms == pytest.approx(30, rel=0.03)


def test_a_batch_done_again_is_clamped_and_marked():
    again = run(12.0, 300, operator(300, 80, sender="in"), operator(125, 120, sender="a"))
    snapshot = difference(EARLIER, again, RULES)
    assert snapshot.operators["a"].processed == 0
    assert snapshot.operators["a"].execution_time_s is None
    assert snapshot.incomplete == {"a": "processed went back from 45 to 40: work was done again"}
    assert snapshot.operators["b"].processed == 75


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (operator(math.nan, 250, sender="in"), "received from in is nan after 100"),
        (operator(-5, 250, sender="in"), "received from in is -5 after 100"),
        (operator(300, 250, sender="in", busy_s=math.nan), "busy time is nan after 0.9"),
        (operator(300, 250, sender="in", busy_s=math.inf), "busy time is inf after 0.9"),
        (operator(300, 250, sender="in", backlog=-1), "backlog is -1"),
        (operator(300, 250, sender="in", backlog=math.nan), "backlog is nan"),
    ],
)
def test_numbers_that_cannot_be_are_zero_and_marked(broken, reason):
    snapshot = difference(EARLIER, run(12.0, 300, broken, LATER.operators["b"]), RULES)
    assert snapshot.incomplete == {"a": reason}
    load = snapshot.operators["a"]
    assert load.received >= 0
    assert load.backlog >= 0
    assert load.execution_time_s is None
    assert all(0 <= share < 10 for share in load.busy_share.values())
    assert math.isfinite(snapshot.source_output)


def test_a_replica_that_keeps_on_saying_nonsense_stays_marked():
    stuck = operator(-5, -5, sender="in", busy_s=-1.0)
    ends = [run(at, 100, stuck, LATER.operators["b"]) for at in (10.0, 12.0)]
    assert "a" in difference(*ends, RULES).incomplete


@pytest.mark.parametrize("time_s", [10.0, 3.0, 10.5, 15.0, 3610.0, math.nan, math.inf])
def test_a_clock_that_jumped_marks_everything_and_leaves_a_usable_length(time_s):
    snapshot = difference(EARLIER, replace(LATER, time_s=time_s), RULES)
    assert set(snapshot.incomplete) == {"in", "a", "b"}
    assert all("the clock jumped, or intervals were missed" in reason for reason in snapshot.incomplete.values())
    assert snapshot.interval_s == 2.0


@pytest.mark.parametrize("time_s", [11.0, 12.4, 14.0])
def test_an_interval_that_is_somewhat_off_is_good(time_s):
    snapshot = difference(EARLIER, replace(LATER, time_s=time_s), RULES)
    assert not snapshot.incomplete
    assert snapshot.interval_s == time_s - 10.0


def test_an_operator_without_counters_keeps_its_place_and_is_marked():
    gone = RunCounters(12.0, {"in": 300}, {"b": LATER.operators["b"]})
    snapshot = difference(EARLIER, gone, RULES)
    assert list(snapshot.operators) == ["a", "b"]
    assert snapshot.incomplete == {"a": "no counters at 12 s"}
    assert snapshot.operators["a"].active == (0, 1)


def test_an_operator_that_is_new_does_not_count_its_whole_past():
    new = RunCounters(10.0, {"in": 100}, {"a": EARLIER.operators["a"]})
    assert difference(new, LATER, RULES).incomplete == {"b": "no counters at 10 s"}


def test_missing_replicas_and_sources_that_the_run_knows_of():
    snapshot = difference(EARLIER, replace(LATER, missing=frozenset({"b", "in"})), RULES)
    assert snapshot.incomplete == {"in": "a replica says nothing", "b": "a replica said nothing at 12 s"}


def test_a_replica_that_vanished():
    only = OperatorCounters({0: LATER.operators["a"].replicas[0]}, (0,), 4, 0)
    assert difference(EARLIER, run(12.0, 300, only, LATER.operators["b"]), RULES).incomplete == {
        "a": "replica 1 says nothing"
    }


def test_stale_numbers_are_marked():
    old = run(12.0, 300, operator(300, 250, sender="in", age_s=7.5), LATER.operators["b"])
    assert difference(EARLIER, old, RULES).incomplete == {"a": "at 12 s last heard of 7.5 s before; stale after 1 s"}


@pytest.mark.parametrize(("td_s", "given_s", "oldest_s"), [(1, None, 0.5), (30, None, 2.0), (1, 3.0, 3.0)])
def test_half_an_interval_without_news_is_too_long(td_s, given_s, oldest_s):
    """A channel cut for as long as the limit looked like an interval without input, and all was scaled in."""
    assert IntervalRules(td_s, stale_after_s=given_s).oldest_s == oldest_s


def test_the_interval_after_stale_numbers_is_too_full_to_trust():
    """The channel was cut for 10 s; the first interval after it had 12 s of events in 2 s, and every pool filled."""
    stale = run(10.0, 100, operator(100, 90, sender="in", age_s=9.0), EARLIER.operators["b"])
    assert set(difference(stale, LATER, RULES).incomplete) == {"a"}


def test_a_source_that_steps_back_is_clamped_and_marked():
    snapshot = difference(EARLIER, replace(LATER, sources={"in": 40}), RULES)
    assert snapshot.source_input == {"in": 0}
    assert snapshot.incomplete == {"in": "entered went back from 100 to 40: work was done again"}


def test_a_source_that_was_not_heard_of_is_no_lull():
    """Its process stood still while all operators reported: nothing seemed to enter, and all was scaled in."""
    silent = replace(LATER, sources={"in": 100}, source_age_s={"in": 2.0})
    reason = "at 12 s last heard of 2 s before; stale after 1 s"
    assert difference(EARLIER, silent, RULES).incomplete == {"in": reason}
    caught_up = replace(LATER, time_s=14.0, sources={"in": 500})
    assert set(difference(silent, caught_up, RULES).incomplete) >= {"in"}


def test_a_source_without_a_counter():
    snapshot = difference(EARLIER, replace(LATER, sources={}), RULES)
    assert snapshot.incomplete == {"in": "no counter at both ends of the interval"}


@pytest.mark.parametrize("td_s", [0, -1, math.nan, math.inf])
def test_td_must_be_a_length(td_s):
    with pytest.raises(InputError, match="td must be above 0 s"):
        IntervalRules(td_s)


def test_tolerance_must_exceed_one():
    with pytest.raises(InputError, match="tolerance must be above 1; got 1"):
        IntervalRules(1.0, tolerance=1)


def waiting(held, received, *, processed=0, backlog=0, queued=0):
    """One operator that two senders send to, and what they hold for it."""
    replica = ReplicaCounters(received=received, processed=processed, queued=queued)
    return OperatorCounters({0: replica}, (0,), 4, backlog, held_by=held)


def test_what_waits_is_told_apart_and_sums_up_to_the_backlog():
    one = RunCounters(0.0, {"in": 0}, {"a": waiting({}, {"in": 0})})
    two = RunCounters(1.0, {"in": 90}, {"a": waiting({"in": 50}, {"in": 40}, processed=30, backlog=60, queued=10)})
    load = difference(one, replace(two, lag={"in": 7}), IntervalRules(1.0, DECLARED)).operators["a"]
    assert (load.held, load.booked, load.outside, load.backlog) == (50, 10, 7, 67)


def test_what_senders_hold_came_in_the_interval_in_which_it_was_sent():
    """Else an operator that is late would seem to receive no more than it can do."""
    states = [
        waiting({"in": 10}, {"in": 40, "b": 5}),
        waiting({"in": 60, "b": 3}, {"in": 70, "b": 5}),
        waiting({"b": 1}, {"in": 130, "b": 8}),
    ]
    seen = [RunCounters(float(n), {"in": 0}, {"a": one}) for n, one in enumerate(states)]
    first, second = (difference(*pair, IntervalRules(1.0)).operators["a"] for pair in pairwise(seen))
    assert first.received_by == {"in": 80, "b": 3}
    assert second.received_by == {"in": 0, "b": 1}


def test_held_is_counted_by_receiver_and_sender():
    slot, replicas = ReplicaCounters(held={"a": 3, "b": 0}), [ReplicaCounters(held={"b": 2})] * 2
    assert held_by({"in": [slot], "a": replicas}) == {"a": {"in": 3}, "b": {"a": 4}}
    slot.add(ReplicaCounters(held={"a": 1, "c": 5}))
    assert slot.held == {"a": 4, "b": 0, "c": 5}


@pytest.mark.parametrize(
    ("td_s", "length_s", "trusted"),
    [
        (5.0, 2.4, False),
        (5.0, 2.6, True),
        (5.0, 10.1, False),
        (0.2, 0.65, True),
        (0.2, 0.75, False),
        (0.2, 0.05, False),
    ],
)
def test_lengths_that_are_trusted(td_s, length_s, trusted):
    """A short interval is soon half a second late on a busy machine, and is no reason to distrust all numbers."""
    assert IntervalRules(td_s).trusts(length_s) == trusted


def test_an_interval_that_was_cut_short_on_purpose_is_trusted():
    one, two = (RunCounters(time_s, {"in": count}, {}) for time_s, count in ((0.0, 0), (0.3, 30)))
    assert difference(one, two, IntervalRules(5.0)).incomplete
    seen = difference(one, two, IntervalRules(5.0), cut=True)
    assert (seen.incomplete, seen.interval_s, seen.td_s) == ({}, 0.3, 5.0)
    assert difference(two, one, IntervalRules(5.0), cut=True).incomplete


@pytest.mark.parametrize(("td_s", "oldest_s"), [(0.2, 0.25), (1.0, 0.5), (3.0, 1.5), (9.0, 2.0)])
def test_numbers_are_stale_after_half_an_interval(td_s, oldest_s):
    assert IntervalRules(td_s).oldest_s == oldest_s
