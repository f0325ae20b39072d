"""Shuffle: round robin over the active replicas."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from penstock.grouping import Receivers, Sender, Shuffle


def shuffle(*active: int, number: int = 0, of: int = 1) -> Shuffle:
    grouping = Shuffle(Sender(number, of))
    grouping.update(Receivers(active=active))
    return grouping


def test_events_go_round() -> None:
    assert shuffle(0, 2, 5).assign(range(7)) == [0, 2, 5, 0, 2, 5, 0]


def test_a_round_goes_on_from_bundle_to_bundle() -> None:
    grouping = shuffle(0, 1, 2)
    assert grouping.assign("ab") == [0, 1]
    assert grouping.assign("") == []
    assert grouping.assign("cd") == [2, 0]


def test_senders_start_at_different_replicas() -> None:
    firsts = [shuffle(0, 1, 2, number=number, of=4).assign("a") for number in range(4)]
    assert firsts == [[0], [1], [2], [0]]


def test_events_go_to_the_new_replicas_only_after_an_update() -> None:
    grouping = shuffle(0, 1, 2, 3)
    grouping.assign(range(3))
    grouping.update(Receivers(active=(4, 5)))
    assert sorted(grouping.assign("ab")) == [4, 5]


def test_before_the_first_update_replica_0_gets_everything() -> None:
    assert Shuffle(Sender(3, 4)).assign("abc") == [0, 0, 0]


@given(
    active=st.sets(st.integers(0, 30), min_size=1).map(sorted),
    number=st.integers(0, 9),
    bundles=st.lists(st.integers(0, 50)),
)
def test_counts_differ_by_at_most_one(active: list[int], number: int, bundles: list[int]) -> None:
    grouping = shuffle(*active, number=number, of=10)
    counts = Counter(dict.fromkeys(active, 0))
    for size in bundles:
        counts.update(grouping.assign(range(size)))
    assert max(counts.values()) - min(counts.values()) <= 1
    assert counts.total() == sum(bundles)
