"""Pull: events go to replicas that have room, and are kept while none has."""

from __future__ import annotations

import pickle
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.errors import InputError
from penstock.grouping import Receivers, Sender
from penstock.grouping.pull import Credits, Pull, Room, credit_of


def pull(*active: int, number: int = 0, credit: int | None = None) -> Pull:
    made = Pull(Sender(number, 8))
    made.update(Receivers(active=active))
    for replica in active if credit is not None else ():
        made.hear(replica, Room(0, credit or 0))
    return made


def test_without_news_a_replica_gets_one_event() -> None:
    one = pull(0, 2, 5)
    assert one.room == 3
    assert one.assign(7) == [0, 2, 5]
    assert one.assign(7) == []


def test_senders_start_at_different_replicas() -> None:
    assert [pull(0, 1, 2, number=number).assign(1) for number in range(4)] == [[0], [1], [2], [0]]


def test_the_replica_with_most_free_credit_comes_first_and_equals_take_turns() -> None:
    one = pull(0, 1, 2)
    one.hear(0, Room(0, 1))
    one.hear(1, Room(0, 3))
    one.hear(2, Room(0, 3))
    assert one.assign(9) == [1, 2, 1, 2, 0, 1, 2]


def test_turns_go_on_from_call_to_call() -> None:
    one = pull(0, 1, 2, credit=4)
    assert [one.assign(1) for _ in range(4)] == [[0], [1], [2], [0]]


def test_room_comes_back_when_the_replica_says_so() -> None:
    one = pull(0, 1, credit=2)
    assert len(one.assign(5)) == 4
    one.hear(1, Room(2, 2))
    assert one.assign(5) == [1, 1]
    assert (one.booked(0), one.booked(1)) == (2, 2)


def test_old_and_repeated_news_make_no_room() -> None:
    one = pull(0, credit=3)
    assert one.assign(3) == [0, 0, 0]
    for news in (Room(2, 3), Room(1, 9), Room(2, 3)):
        one.hear(0, news)
    assert one.room == 2


def test_a_smaller_credit_waits_until_what_is_booked_fits() -> None:
    one = pull(0, credit=4)
    one.assign(4)
    one.hear(0, Room(1, 2))
    assert one.room == 0
    one.hear(0, Room(3, 2))
    assert one.room == 1


def test_a_new_replica_takes_at_once_and_one_that_left_keeps_what_it_has() -> None:
    one = pull(0, 1)
    one.assign(2)
    one.update(Receivers(active=(1, 2)))
    assert one.assign(5) == [2]
    assert one.booked(0) == 1
    one.update(Receivers(active=(0, 1, 2)))
    assert one.assign(5) == []  # it has not finished yet
    one.hear(0, Room(1, 1))
    assert one.assign(5) == [0]


def test_news_of_a_replica_that_is_not_active_is_kept_for_later() -> None:
    one = pull(0)
    one.hear(4, Room(0, 3))
    one.update(Receivers(active=(4,)))
    assert one.assign(9) == [4, 4, 4]


def test_the_next_attempt_begins_with_nothing_booked() -> None:
    one = pull(0, 1, credit=2)
    one.assign(4)
    one.hear(0, Room(2, 2))
    one.begin()
    assert one.room == 4
    one.hear(0, Room(0, 2))
    assert one.assign(9).count(0) == 2


def test_before_the_first_update_replica_0_is_there() -> None:
    assert Pull().assign(2) == [0]


@pytest.mark.parametrize(
    ("time_s", "ahead_s", "senders", "credit"),
    [
        (0.05, 0.05, 1, 1),
        (0.01, 0.05, 1, 5),
        (0.0001, 0.05, 1, 500),
        (0.03, 0.05, 1, 2),
        (9.0, 0.05, 1, 1),
        (None, 0.05, 1, 1),
        (0.0, 0.05, 1, 1),
        (float("nan"), 0.05, 1, 1),
        (0.01, 0.1, 5, 2),
        (0.01, 0.1, 50, 1),
    ],
)
def test_credit_is_the_work_of_a_bounded_time(time_s: float, ahead_s: float, senders: int, credit: int) -> None:
    assert credit_of(time_s, ahead_s, senders) == credit


def test_credits_follow_a_time_that_changes() -> None:
    credits = Credits()
    for _ in range(100):
        credits.executed("a", 10, 0.1)
    assert credits.credit == 5
    for _ in range(400):
        credits.executed("a", 1, 0.1)  # ten times slower, for 40 s of work
    assert credits.credit == 1
    assert credits.room("a") == Room(1400, 1)


def test_events_that_took_no_time_are_finished_and_teach_nothing() -> None:
    credits = Credits()
    credits.executed("a", 10, 0.1)
    credits.executed("b", 7, 0.0)
    assert credits.execution_time_s == pytest.approx(0.01)
    assert credits.room("b").finished == 7


def test_ahead_must_be_a_time() -> None:
    with pytest.raises(InputError, match=r"grouping 'pull': ahead_s must be a number above 0; got 0"):
        Credits(ahead_s=0)


@given(credits=st.lists(st.integers(1, 9), min_size=1, max_size=8), counts=st.lists(st.integers(0, 20)))
def test_bundles_make_no_difference_and_nothing_exceeds_the_credit(credits: list[int], counts: list[int]) -> None:
    def made() -> Pull:
        one = pull(*range(len(credits)))
        for replica, credit in enumerate(credits):
            one.hear(replica, Room(0, credit))
        return one

    several, at_once = made(), made()
    chosen = [replica for count in counts for replica in several.assign(count)]
    left = Counter(at_once.assign(sum(counts)))
    assert sorted(credit - left[one] for one, credit in enumerate(credits)) == sorted(
        credit - Counter(chosen)[one] for one, credit in enumerate(credits)
    )
    assert len(chosen) == min(sum(counts), sum(credits))
    assert all(count <= credits[replica] for replica, count in Counter(chosen).items())


class PullMachine(RuleBasedStateMachine):
    """A sender and its replicas, beside a plain count of what each has."""

    def __init__(self) -> None:
        super().__init__()
        self.pull = Pull()
        self.active: tuple[int, ...] = (0,)
        self.credits = [Credits() for _ in range(4)]
        self.credit = [1] * 4
        self.inbox = [0] * 4
        self.told = [0] * 4

    @rule(count=st.integers(0, 30))
    def send(self, count: int) -> None:
        room = self.pull.room
        chosen = self.pull.assign(count)
        assert len(chosen) == min(count, room)
        assert set(chosen) <= set(self.active)
        for replica in chosen:
            self.inbox[replica] += 1

    @rule(replica=st.integers(0, 3), share=st.floats(0, 1), time_s=st.sampled_from([0.001, 0.01, 0.2]))
    def work(self, replica: int, share: float, time_s: float) -> None:
        done = int(share * self.inbox[replica])
        self.inbox[replica] -= done
        self.credits[replica].executed("me", done, done * time_s)

    @rule(replica=st.integers(0, 3))
    def tell(self, replica: int) -> None:
        room = self.credits[replica].room("me")
        self.credit[replica] = max(self.credit[replica], room.credit)
        self.pull.hear(replica, room)
        self.pull = pickle.loads(pickle.dumps(self.pull))

    @rule(active=st.sets(st.integers(0, 3), min_size=1))
    def change(self, active: set[int]) -> None:
        self.active = tuple(sorted(active))
        self.pull.update(Receivers(active=self.active))

    @invariant()
    def no_inbox_holds_more_than_the_largest_credit_it_gave(self) -> None:
        for replica in range(4):
            assert self.inbox[replica] <= self.credit[replica]
            assert self.inbox[replica] <= self.pull.booked(replica)


TestPullMachine = PullMachine.TestCase
