"""The sender's side of the online shuffle, transition by transition; times in eighths of a second, exact in binary."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.grouping.base import Receivers, Sender
from penstock.grouping.fields import stable_hash
from penstock.grouping.online_shuffle import OnlineShuffle, OnlineShuffleOptions, Request, Sketch
from penstock.grouping.online_shuffle.hashing import coefficients
from penstock.grouping.online_shuffle.sketch import add

PATIENCE = 20


def sketch(**times_s: float) -> Sketch:
    """Of one event of each key."""
    cells = np.zeros((2, 3, 54))
    for key, time_s in times_s.items():
        add(cells, coefficients(3, 0), stable_hash(key), time_s)
    return Sketch.of(cells)


ALIKE = sketch(a=1.0, b=0.5, c=0.25)


def shuffle(*active: int, number: int = 0) -> OnlineShuffle:
    grouping = OnlineShuffle(Sender(number, of=9), options=OnlineShuffleOptions(patience=PATIENCE))
    grouping.update(Receivers(active))
    return grouping


def asking(*active: int, sketch: Sketch = ALIKE) -> OnlineShuffle:
    """In SEND_ALL, epoch 1, with the same sketch of all replicas."""
    grouping = shuffle(*active)
    for replica in active:
        grouping.take_sketch(replica, sketch)
    return grouping


def replied(grouping: OnlineShuffle, deltas_s: dict[int, float], epoch: int = 1) -> None:
    for replica, delta_s in deltas_s.items():
        grouping.take_reply(replica, epoch, delta_s)


def running(loads_s: dict[int, float], sketch: Sketch = ALIKE) -> OnlineShuffle:
    """In RUN, after epoch 1, with these Ĉ."""
    grouping = asking(*loads_s, sketch=sketch)
    for replica in grouping.assign("b" * len(loads_s)):
        grouping.take_reply(replica, 1, loads_s[replica] - 0.5)
    assert grouping.state == "RUN"
    assert grouping.loads_s == loads_s
    return grouping


def frozen(grouping: OnlineShuffle) -> bytes:
    return pickle.dumps(grouping._state)


# ROUND_ROBIN


def test_events_go_round_until_every_sketch_is_here() -> None:
    """A and B."""
    grouping = shuffle(0, 2, 5)
    assert grouping.assign("aaaaa") == [0, 2, 5, 0, 2]
    grouping.take_sketch(0, ALIKE)
    grouping.take_sketch(5, ALIKE)
    grouping.take_sketch(5, ALIKE)
    assert grouping.assign("aa") == [5, 0]
    assert grouping.state == "ROUND_ROBIN"
    assert grouping.requests() == []
    grouping.take_sketch(2, ALIKE)
    assert grouping.state == "SEND_ALL"


def test_senders_start_at_different_replicas() -> None:
    assert [shuffle(3, 4, 5, number=number).assign("aa") for number in range(4)] == [[3, 4], [4, 5], [5, 3], [3, 4]]


def test_before_the_first_update_replica_0_gets_everything() -> None:
    assert OnlineShuffle(Sender(2, 3)).assign("abc") == [0, 0, 0]


def test_events_counted_before_the_sketches_become_time_at_their_mean() -> None:
    """3, 2 and 2 events at (1 + 0.5 + 0.25) / 3 s."""
    grouping = shuffle(0, 1, 2)
    grouping.assign("abcabca")
    assert grouping.loads_s == {0: 3.0, 1: 2.0, 2: 2.0}
    for replica in range(3):
        grouping.take_sketch(replica, ALIKE)
    assert grouping.loads_s == pytest.approx({0: 1.75, 1: 3.5 / 3, 2: 3.5 / 3})


# SEND_ALL, WAIT_ALL


def test_the_next_k_events_go_round_with_a_request_each() -> None:
    """C: all were asked. A request carries Ĉ with the event that it goes with."""
    grouping = asking(0, 2, 5)
    assert grouping.assign("ab") == [0, 2]
    assert grouping.requests() == [Request(0, 0, 1, 1.0), Request(1, 2, 1, 0.5)]
    assert grouping.state == "SEND_ALL"
    assert grouping.assign("abb") == [5, 2, 5]  # Ĉ 1 0.5 0: a is asked of 5; b to the least; then all at 1, 5 in turn
    assert grouping.requests() == [Request(0, 5, 1, 1.0)]
    assert grouping.state == "WAIT_ALL"
    assert grouping.loads_s == {0: 1.0, 2: 1.0, 5: 1.5}


def test_requests_are_those_of_the_last_bundle_and_are_given_once() -> None:
    grouping = asking(0, 1, 2)
    grouping.assign("ab")
    grouping.assign("c")
    assert grouping.requests() == [Request(0, 2, 1, 0.25)]
    assert grouping.requests() == []


def test_replies_correct_the_estimates_when_all_are_here() -> None:
    """D and E. Events sent since the request stay in Ĉ: 0 has 1 + 0.5 s, told 1 s, truly 3 s → 3.5 s."""
    grouping = asking(0, 1)
    assert grouping.assign("abcb") == [0, 1, 1, 1]
    assert grouping.loads_s == {0: 1.0, 1: 1.25}
    assert grouping.assign("b") == [0]
    grouping.take_reply(0, 1, 2.0)
    assert grouping.state == "WAIT_ALL"
    assert grouping.loads_s == {0: 1.5, 1: 1.25}
    grouping.take_reply(1, 1, -0.125)
    assert grouping.state == "RUN"
    assert grouping.loads_s == {0: 3.5, 1: 1.125}


def test_a_reply_may_come_before_all_were_asked() -> None:
    grouping = asking(0, 1)
    grouping.assign("a")
    grouping.take_reply(0, 1, 0.5)
    assert grouping.state == "SEND_ALL"
    grouping.assign("a")
    grouping.take_reply(1, 1, 0.25)
    assert grouping.state == "RUN"
    assert grouping.loads_s == {0: 1.5, 1: 1.25}


@pytest.mark.parametrize(
    ("replica", "epoch", "delta_s"),
    [(0, 0, 9.0), (0, 2, 9.0), (1, 1, 9.0), (2, 1, 9.0), (7, 1, 9.0), (0, 1, math.nan), (0, 1, math.inf)],
    ids=["old epoch", "later epoch", "not asked", "answered", "not active", "no number", "no bound"],
)
def test_replies_that_are_ignored(replica: int, epoch: int, delta_s: float) -> None:
    grouping = asking(0, 2, 1)
    grouping.assign("aa")
    grouping.take_reply(2, 1, 0.5)
    before = frozen(grouping)
    grouping.take_reply(replica, epoch, delta_s)
    assert frozen(grouping) == before


def test_replies_to_an_epoch_that_is_over_are_ignored() -> None:
    grouping = running({0: 1.0, 1: 2.0})
    before = frozen(grouping)
    replied(grouping, {0: 9.0, 1: 9.0})
    assert frozen(grouping) == before
    grouping.take_sketch(0, ALIKE)
    grouping.assign("bb")
    before = frozen(grouping)
    replied(grouping, {0: 9.0, 1: 9.0})
    assert frozen(grouping) == before


def test_missing_replies_are_given_up_and_get_the_mean_correction() -> None:
    """Of three replicas, 0 and 1 say +1 and +2 s; 2 says nothing, and gets +1.5 s."""
    grouping = asking(0, 1, 2)
    assert grouping.assign("bbb") == [0, 1, 2]
    replied(grouping, {0: 1.0, 1: 2.0})
    grouping.assign(["new"] * (PATIENCE - 4))
    assert grouping.state == "WAIT_ALL"
    loads_s = grouping.loads_s
    chosen = grouping.assign("b")
    assert grouping.state == "RUN"
    loads_s[chosen[0]] += 0.5
    assert grouping.loads_s == {0: loads_s[0] + 1.0, 1: loads_s[1] + 2.0, 2: loads_s[2] + 1.5}


def test_without_any_reply_the_estimates_stay() -> None:
    grouping = asking(0, 1)
    grouping.assign("b" * PATIENCE)
    assert grouping.state == "RUN"
    assert grouping.loads_s == {0: PATIENCE / 4, 1: PATIENCE / 4}


# RUN


def test_each_event_goes_to_the_least_loaded() -> None:
    """Ĉ 1 0.5 0: 2, 2 (tie at 0.5 with 1: after 2 comes 0, then 1), 1, then tie of 1 and 2 at 0.75 and 0.5: 2, …"""
    grouping = running({0: 1.0, 1: 0.5, 2: 0.0})
    assert grouping.assign("bcca") == [2, 1, 2, 1]
    assert grouping.loads_s == {0: 1.0, 1: 1.75, 2: 0.75}


def test_ties_go_round() -> None:
    grouping = running({3: 0.0, 5: 0.0, 9: 0.0})
    assert grouping.assign("bbbbbbb") == [3, 5, 9, 3, 5, 9, 3]
    nothing = running({3: 0.0, 5: 0.0, 9: 0.0}, sketch(b=0.5, d=0.0))
    assert nothing.assign("ddddd") == [3, 5, 9, 3, 5]


def test_the_time_is_that_of_the_replicas_own_sketch() -> None:
    grouping = running({0: 0.0, 1: 0.0})
    grouping.take_sketch(1, sketch(a=4.0))
    assert grouping.assign("aa") == [0, 1]
    assert grouping.loads_s == {0: 1.0, 1: 4.0}


def test_a_key_that_the_replica_has_not_seen_takes_the_mean() -> None:
    """Mean over both sketches: (1 + 0.5 + 0.25 + 4) / 4 s."""
    grouping = running({0: 0.0, 1: 0.0})
    grouping.take_sketch(1, sketch(a=4.0))
    assert grouping.assign(["x", "b"]) == [0, 1]
    assert grouping.loads_s == {0: 1.4375, 1: 1.4375}


def test_a_new_sketch_leads_to_send_all() -> None:
    """F."""
    grouping = running({0: 8.0, 1: 2.0, 2: 4.0})
    grouping.take_sketch(1, ALIKE)
    assert grouping.state == "SEND_ALL"
    assert grouping.assign("bbb") == [0, 1, 2]
    assert grouping.requests() == [Request(0, 0, 2, 8.5), Request(1, 1, 2, 2.5), Request(2, 2, 2, 4.5)]
    replied(grouping, {0: 0.0, 1: 0.25, 2: -0.25}, epoch=2)
    assert grouping.loads_s == {0: 8.5, 1: 2.75, 2: 4.25}


def test_sketches_that_come_together_share_one_epoch() -> None:
    grouping = running({0: 0.0, 1: 0.0})
    grouping.take_sketch(0, ALIKE)
    grouping.take_sketch(1, ALIKE)
    grouping.assign("bb")
    replied(grouping, {0: 0.0, 1: 0.0}, epoch=2)
    assert grouping.state == "RUN"


@pytest.mark.parametrize("sent", ["b", "bb", "bbb"], ids=["SEND_ALL", "WAIT_ALL", "WAIT_ALL later"])
def test_a_sketch_during_an_epoch_is_used_at_once_and_gets_its_own_epoch_next(sent: str) -> None:
    """If it ended the epoch under way, sketches that come faster than replies would keep Ĉ uncorrected for ever."""
    grouping = asking(0, 1)
    grouping.assign(sent)
    grouping.take_sketch(1, sketch(b=2.0))
    grouping.assign("bb"[len(sent) :])
    replied(grouping, {0: 1.0, 1: 1.0})
    assert grouping.state == "SEND_ALL"
    grouping.assign("bb")
    assert [request.epoch for request in grouping.requests()] == [2, 2]
    replied(grouping, {0: 0.0, 1: 0.0}, epoch=2)
    assert grouping.state == "RUN"


# Replicas come and go


def test_events_go_to_active_replicas_only() -> None:
    grouping = running({0: 0.0, 1: 8.0, 2: 8.0})
    grouping.update(Receivers((1, 2)))
    assert grouping.assign("bbbb") == [1, 2, 1, 2]
    assert set(grouping.loads_s) == {1, 2}


def test_a_replica_that_joins_starts_at_the_least_load() -> None:
    grouping = running({0: 8.0, 1: 6.0})
    grouping.update(Receivers((0, 1, 3)))
    assert grouping.state == "RUN"
    assert grouping.loads_s == {0: 8.0, 1: 6.0, 3: 6.0}


def test_a_replica_without_a_sketch_takes_the_mean() -> None:
    grouping = running({0: 8.0, 1: 6.0}, sketch(a=1.0, b=0.5))
    grouping.update(Receivers((0, 3)))
    assert grouping.loads_s == {0: 8.0, 3: 8.0}
    assert grouping.assign("ab") == [0, 3]
    assert grouping.loads_s == {0: 9.0, 3: 8.75}


def test_what_a_replica_was_given_when_it_joined_is_not_in_its_requests() -> None:
    """It has executed 0.75 s and not 6.5 s; the reply to its true 1 s must not pull it down to 1 s."""
    grouping = running({0: 8.0, 1: 6.0}, sketch(a=1.0, b=0.5))
    grouping.update(Receivers((0, 1, 3)))
    grouping.take_sketch(0, sketch(a=1.0, b=0.5))
    assert grouping.assign("bbb") == [0, 1, 3]
    assert grouping.requests()[2] == Request(2, 3, 2, 0.75)
    replied(grouping, {0: 0.0, 1: 0.0, 3: 0.25}, epoch=2)
    assert grouping.loads_s == {0: 8.5, 1: 6.5, 3: 7.0}


def test_a_replica_that_comes_back_is_asked_about_all_it_ever_got() -> None:
    """Replica 1 got 6 s before it left and 0.5 s after; the replica counts both."""
    grouping = running({0: 8.0, 1: 6.0})
    grouping.update(Receivers((0,)))
    grouping.assign("a")
    grouping.update(Receivers((0, 1)))
    assert grouping.loads_s == {0: 9.0, 1: 9.0}
    grouping.take_sketch(1, sketch(b=0.5))
    grouping.assign("bb")
    assert grouping.requests() == [Request(0, 0, 2, 9.5), Request(1, 1, 2, 6.5)]


def test_a_replica_that_joins_while_events_go_round() -> None:
    """Counted in events, it starts at 4; at B that is time, and the first replies do not make it the least loaded."""
    grouping = shuffle(0, 1)
    grouping.assign("bbbbbbbb")
    grouping.update(Receivers((0, 1, 2)))
    assert grouping.loads_s == {0: 4.0, 1: 4.0, 2: 4.0}
    for replica in range(3):
        grouping.take_sketch(replica, sketch(b=0.5))
    assert grouping.assign("bbb") == [0, 1, 2]
    assert [request.estimate_s for request in grouping.requests()] == [2.5, 2.5, 0.5]
    replied(grouping, {0: 0.25, 1: 0.0, 2: 0.125})
    assert grouping.loads_s == {0: 2.75, 1: 2.5, 2: 2.625}


def test_when_all_are_replaced_the_new_ones_start_alike() -> None:
    grouping = running({0: 8.0, 1: 6.0})
    grouping.update(Receivers((2, 3)))
    assert grouping.loads_s == {2: 6.0, 3: 6.0}
    assert sorted(grouping.assign("abab")) == [2, 2, 3, 3]


def test_a_replica_that_leaves_is_not_asked() -> None:
    grouping = asking(0, 1, 2)
    grouping.assign("b")
    grouping.update(Receivers((0, 2)))
    assert grouping.assign("b") == [2]
    assert grouping.state == "WAIT_ALL"


def test_when_the_last_to_be_asked_leaves_all_were_asked() -> None:
    grouping = asking(0, 1)
    grouping.assign("b")
    grouping.take_reply(0, 1, 0.5)
    grouping.update(Receivers((0,)))
    assert grouping.state == "RUN"
    assert grouping.loads_s == {0: 1.0}


def test_a_replica_that_leaves_is_not_waited_for() -> None:
    grouping = asking(0, 1)
    grouping.assign("bb")
    grouping.take_reply(1, 1, 0.5)
    grouping.update(Receivers((1,)))
    assert grouping.state == "RUN"
    assert grouping.loads_s == {1: 1.0}


def test_a_replica_that_joins_is_asked_in_send_all_but_not_waited_for_later() -> None:
    early = asking(0, 1)
    early.assign("b")
    early.update(Receivers((0, 1, 2)))
    assert early.assign("bb") == [1, 2]
    late = asking(0, 1)
    late.assign("bb")
    late.update(Receivers((0, 1, 2)))
    replied(late, {0: 1.0, 1: 2.0})
    assert late.state == "RUN"
    assert late.loads_s == {0: 1.5, 1: 2.5, 2: 2.0}


def test_a_replica_that_joins_in_an_epoch_is_corrected_like_the_others() -> None:
    """It starts at their 4.5 s, which turn out to be 1.5 s; its own time is asked for from there."""
    grouping = running({0: 0.0, 1: 0.0})
    grouping.assign("a" * 8)
    grouping.take_sketch(0, ALIKE)
    grouping.assign("bb")
    grouping.update(Receivers((0, 1, 2)))
    assert grouping.loads_s == {0: 4.5, 1: 4.5, 2: 4.5}
    replied(grouping, {0: -3.0, 1: -3.0}, epoch=2)
    assert grouping.loads_s == {0: 1.5, 1: 1.5, 2: 1.5}
    grouping.take_sketch(2, ALIKE)
    grouping.assign("bbb")
    assert grouping.requests()[2] == Request(2, 2, 3, 0.5)


def test_a_missing_reply_does_not_undo_what_was_confirmed() -> None:
    """Replica 2 was at 4 s and got 0.5 s; the mean of −3 s would leave it at 1.5 s."""
    grouping = running({0: 0.0, 1: 0.0, 2: 4.0}, sketch(a=1.0, b=0.5, d=0.0))
    assert 2 not in grouping.assign("a" * 6)
    grouping.take_sketch(0, sketch(a=1.0, b=0.5, d=0.0))
    grouping.assign("bbb")
    replied(grouping, {0: -3.0, 1: -3.0}, epoch=2)
    grouping.assign("d" * PATIENCE)
    assert grouping.state == "RUN"
    assert grouping.loads_s == {0: 0.5, 1: 0.5, 2: 4.0}


def test_a_replica_that_leaves_may_complete_the_sketches() -> None:
    grouping = shuffle(0, 1)
    grouping.take_sketch(1, ALIKE)
    grouping.update(Receivers((1,)))
    assert grouping.state == "SEND_ALL"


def test_the_sketch_and_the_reply_of_a_replica_that_left_are_ignored() -> None:
    grouping = asking(0, 1)
    grouping.assign("bb")
    grouping.update(Receivers((0,)))
    before = frozen(grouping)
    grouping.take_sketch(1, ALIKE)
    grouping.take_reply(1, 1, 0.5)
    grouping.take_sketch(99, ALIKE)
    assert frozen(grouping) == before


def test_a_replica_that_started_anew_is_not_taken_for_an_idle_one() -> None:
    """Replica 1 was confirmed at 6 s and now says 0.5 s: it counts anew. It gets the others' correction, 1 s."""
    grouping = running({0: 8.0, 1: 6.0})
    grouping.take_sketch(0, ALIKE)
    grouping.assign("bb")
    replied(grouping, {0: 1.0, 1: 0.5 - 6.5}, epoch=2)
    assert grouping.loads_s == {0: 9.5, 1: 7.5}
    grouping.take_sketch(0, ALIKE)
    grouping.assign("bb")
    assert grouping.requests() == [Request(0, 0, 3, 10.0), Request(1, 1, 3, 1.0)]
    replied(grouping, {0: 0.0, 1: 0.25}, epoch=3)
    assert grouping.loads_s == {0: 10.0, 1: 8.25}


def test_an_update_of_utilisations_changes_nothing() -> None:
    grouping = running({0: 8.0, 1: 6.0})
    before = frozen(grouping)
    grouping.update(Receivers((0, 1), {0: 0.9, 1: 0.1}, step=0.5, version=7))
    assert frozen(grouping) == before


def test_the_order_of_the_active_replicas_is_that_of_the_rounds() -> None:
    grouping = running({0: 0.0, 1: 0.0, 2: 0.0})
    grouping.update(Receivers((2, 0, 1)))
    assert grouping.assign("bbb") == [2, 0, 1]


# Keys and errors


@pytest.mark.parametrize(
    ("key", "events"),
    [(None, ["a", "b"]), ("word", [{"word": "a"}, {"word": "b"}]), (str.lower, ["A", "B"])],
    ids=["event", "field", "function"],
)
def test_the_key_of_an_event(key: Any, events: Sequence[Any]) -> None:
    grouping = OnlineShuffle(Sender(), key)
    grouping.take_sketch(0, ALIKE)
    grouping.assign(events[:1])
    grouping.assign(events)
    assert grouping.loads_s == {0: 2.5}


def test_hashes_instead_of_events() -> None:
    by_events, by_hashes = running({0: 0.0, 1: 0.0}), running({0: 0.0, 1: 0.0})
    for events in ("abcbca", "a", ""):
        hashes = [stable_hash(event) for event in events]
        assert by_hashes.assign_hashes(hashes).tolist() == by_events.assign(events)
    assert frozen(by_hashes) == frozen(by_events)


def test_an_event_without_the_field() -> None:
    with pytest.raises(InputError) as caught:
        OnlineShuffle(Sender(), "word").assign([{"text": "a"}])
    assert str(caught.value) == "grouping 'online_shuffle': the event has no field 'word': {'text': 'a'}"


def test_a_key_that_cannot_travel() -> None:
    with pytest.raises(InputError) as caught:
        OnlineShuffle(Sender()).assign([1j])
    assert str(caught.value) == "grouping 'online_shuffle': a key must be something that msgpack can carry; got 1j"


@pytest.mark.parametrize("active", [(), (0, -1)])
def test_nobody_to_send_to(active: tuple[int, ...]) -> None:
    with pytest.raises(InputError) as caught:
        shuffle(0).update(Receivers(active))
    assert str(caught.value) == f"grouping 'online_shuffle': some replica must be active; got {active}"


def test_a_sketch_of_another_shape() -> None:
    with pytest.raises(InputError) as caught:
        shuffle(0).take_sketch(0, Sketch.of(np.ones((2, 2, 4))))
    assert str(caught.value) == "grouping 'online_shuffle': a sketch must have shape (2, 3, 54); got (2, 2, 4)"
