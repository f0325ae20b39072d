"""The sender's side of the online shuffle when replicas come and go, in every state."""

from __future__ import annotations

from penstock.grouping.base import Receivers
from penstock.grouping.online_shuffle import Request

from .senders import ALIKE, PATIENCE, asking, frozen, replied, running, shuffle, sketch


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
