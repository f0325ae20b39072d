"""Load balancing: least U first, growth by et/td, round robin from 1 on; worked by hand, in eighths."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from penstock.grouping import LoadBalancing, Receivers, Sender

EIGHTH = 0.125  # et / td; exact in binary, so that ties are ties


def balancer(eighths: dict[int, int], number: int = 0, of: int = 1, step: float = EIGHTH) -> LoadBalancing:
    """A sender that knows U of each active replica, in eighths."""
    grouping = LoadBalancing(Sender(number, of))
    utilisation = {replica: used * EIGHTH for replica, used in eighths.items()}
    grouping.update(Receivers(tuple(eighths), utilisation, step, version=1))
    return grouping


def test_least_used_first_and_ties_by_the_turn_longest_past() -> None:
    """U 4 1 3: replica 1 twice (→ 3), tie with 2 which waited longer (→ 4), 1 (→ 4); all at 4: 0, 2, 1, 0."""
    assert balancer({0: 4, 1: 1, 2: 3}).assign(range(8)) == [1, 1, 2, 1, 0, 2, 1, 0]


def test_every_event_adds_et_over_td() -> None:
    """With twice the time an event, half as many fit below the other's U of 4."""
    assert balancer({0: 0, 1: 4}).assign(range(5)) == [0, 0, 0, 0, 1]
    assert balancer({0: 0, 1: 4}, step=2 * EIGHTH).assign(range(3)) == [0, 0, 1]


def test_round_robin_when_the_least_used_reaches_1() -> None:
    """U 6 7: 0 (→ 7), tie to 1 (→ 8), 0 (→ 8); both full: in turn, 1 before 0 as it waited longer."""
    assert balancer({0: 6, 1: 7}).assign(range(8)) == [0, 1, 0, 1, 0, 1, 0, 1]


def test_overload_is_not_looked_at() -> None:
    assert balancer({0: 16, 1: 8, 2: 24}).assign(range(7)) == [0, 1, 2, 0, 1, 2, 0]


def test_round_robin_goes_on_from_bundle_to_bundle() -> None:
    grouping = balancer({0: 9, 1: 9, 2: 9})
    assert [grouping.assign("ab"), grouping.assign("cd"), grouping.assign("e")] == [[0, 1], [2, 0], [1]]


def test_ties_go_round_robin() -> None:
    assert balancer({3: 0, 5: 0, 9: 0}).assign(range(7)) == [3, 5, 9, 3, 5, 9, 3]


def test_without_an_execution_time_events_go_round() -> None:
    assert balancer({0: 0, 1: 0, 2: 0}, step=0.0).assign(range(4)) == [0, 1, 2, 0]


def test_senders_start_at_different_replicas() -> None:
    idle = {0: 0, 1: 0, 2: 0, 3: 0}
    firsts = [balancer(idle, number, of=5).assign("a")[0] for number in range(5)]
    assert firsts == [0, 1, 2, 3, 0]
    assert balancer(idle, number=1, of=2).assign(range(5)) == [1, 2, 3, 0, 1]
    full = {0: 8, 1: 8, 2: 8, 3: 8}
    assert balancer(full, number=2, of=3).assign(range(5)) == [2, 3, 0, 1, 2]


def test_a_sender_counts_its_own_events_for_all_senders() -> None:
    """Four senders: each event adds 4 eighths. U 0 5: 0 (→ 4), 0 (→ 8), 1 (→ 9); both full: 0, 1."""
    assert balancer({0: 0, 1: 5}, of=4).assign(range(5)) == [0, 0, 1, 0, 1]
    assert balancer({0: 0, 1: 5}, of=1).assign(range(6)) == [0, 0, 0, 0, 0, 1]


def test_an_update_starts_again_from_what_is_published() -> None:
    grouping = balancer({0: 0, 1: 8})
    grouping.assign(range(6))
    grouping.update(Receivers((0, 1), {0: 7 * EIGHTH, 1: 0.0}, EIGHTH, version=2))
    assert grouping.assign(range(7)) == [1] * 7


def test_a_replica_just_activated_starts_from_0() -> None:
    grouping = balancer({0: 2, 1: 2})
    grouping.update(Receivers((0, 1, 4), {0: 2 * EIGHTH, 1: 2 * EIGHTH}, EIGHTH, version=2))
    assert grouping.assign(range(5)) == [4, 4, 0, 1, 4]


def test_a_replica_just_deactivated_gets_nothing() -> None:
    grouping = balancer({0: 0, 1: 9})
    grouping.update(Receivers((1,), {0: 0.0, 1: 9 * EIGHTH}, EIGHTH, version=2))
    assert grouping.assign("abc") == [1, 1, 1]


def test_before_the_first_update_replica_0_gets_everything() -> None:
    assert LoadBalancing(Sender(2, 3)).assign("abc") == [0, 0, 0]


EIGHTHS = st.dictionaries(st.integers(0, 15), st.integers(0, 12), min_size=1, max_size=8)


@given(eighths=EIGHTHS, of=st.integers(1, 4), data=st.data(), count=st.integers(0, 60))
def test_the_chosen_one_is_least_used_or_all_are_full(
    eighths: dict[int, int], of: int, data: st.DataObject, count: int
) -> None:
    number = data.draw(st.integers(0, of - 1))
    used = dict(eighths)
    for replica in balancer(eighths, number, of).assign(range(count)):
        least = min(used.values())
        if least < 8:
            assert used[replica] == least
            used[replica] += of


@given(eighths=EIGHTHS, count=st.integers(0, 60))
def test_full_replicas_share_evenly(eighths: dict[int, int], count: int) -> None:
    full = {replica: used + 8 for replica, used in eighths.items()}
    counts = Counter(dict.fromkeys(full, 0))
    counts.update(balancer(full).assign(range(count)))
    assert max(counts.values()) - min(counts.values()) <= 1
