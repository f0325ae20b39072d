"""The sender's side of the online shuffle, transition by transition; its keys and errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.grouping.base import Receivers, Sender
from penstock.grouping.fields import stable_hash
from penstock.grouping.online_shuffle import OnlineShuffle, Request, Sketch

from .senders import ALIKE, PATIENCE, asking, frozen, replied, running, shuffle, sketch

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
