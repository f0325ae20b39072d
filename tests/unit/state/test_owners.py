"""Key groups: every group has an owner, evenly, and few move."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.grouping import Receivers, Sender, make_grouping, stable_hash
from penstock.state.owners import Owners, first_owners, reassigned

actives = st.lists(st.integers(0, 40), min_size=1, max_size=12, unique=True).map(tuple)


@pytest.mark.parametrize(
    ("owners", "active", "expected"),
    [
        ((0, 0, 0, 0), (0,), (0, 0, 0, 0)),
        ((0, 0, 0, 0), (0, 1), (0, 0, 1, 1)),
        ((0, 0, 1, 1), (0, 1, 2), (0, 0, 1, 2)),  # one moves, though three replicas share four groups
        ((0, 0, 1, 2), (2, 1), (2, 1, 1, 2)),
        ((0, 1, 2, 3), (7,), (7, 7, 7, 7)),
        ((0, 1), (0, 1, 2), (0, 1)),  # more replicas than groups: some own none
    ],
)
def test_golden_cases(owners: Owners, active: tuple[int, ...], expected: Owners) -> None:
    assert reassigned(owners, active) == expected


@given(st.integers(1, 200), st.lists(actives, min_size=1, max_size=6))
def test_balanced_within_one_and_no_move_too_many(groups: int, play: list[tuple[int, ...]]) -> None:
    owners = first_owners(groups, play[0])
    for active in play:
        before, owners = owners, reassigned(owners, active)
        counts = Counter(owners)
        assert set(counts) <= set(active)
        sizes = [counts[replica] for replica in active]
        assert max(sizes) - min(sizes) <= 1
        assert sum(a == b for a, b in zip(before, owners, strict=True)) == most_that_can_stay(before, active)


def most_that_can_stay(owners: Owners, active: tuple[int, ...]) -> int:
    """All that are within the lower quota stay, and one more on as many replicas as have one and may."""
    least, more = divmod(len(owners), len(active))
    held = [Counter(owners)[replica] for replica in active]
    return sum(min(h, least) for h in held) + min(more, sum(h > least for h in held))


@given(st.integers(1, 64), actives)
def test_nothing_moves_when_nothing_changes(groups: int, active: tuple[int, ...]) -> None:
    owners = first_owners(groups, active)
    assert reassigned(owners, active) == owners


def test_the_grouping_sends_by_the_owners() -> None:
    grouping = make_grouping("key_groups", Sender(), "word")
    owners = (4, 0, 2, 0, 4)
    grouping.update(Receivers(active=(0, 2, 4), owners=owners))
    words = [f"word {n}" for n in range(50)]
    assert grouping.assign([{"word": word} for word in words]) == [owners[stable_hash(word) % 5] for word in words]


@pytest.mark.parametrize(("event", "why"), [({"text": "a"}, "has no field 'word'"), ({"word": None}, "key is None")])
def test_an_event_without_a_key(event: dict[str, object], why: str) -> None:
    grouping = make_grouping("key_groups", Sender(), "word")
    grouping.update(Receivers(active=(0,), owners=(0, 0)))
    with pytest.raises(InputError, match=rf"grouping 'key_groups': the event.* ?{why}: \{{"):
        grouping.assign([event])
