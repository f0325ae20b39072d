"""Segments: whole or change, which ones a recovery reads, and which can go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.state.codec import Codec
from penstock.state.keyed_state import KeyedState
from penstock.state.segments import (
    KEPT_BATCHES,
    WHOLE_AFTER,
    Compaction,
    Segment,
    newest_first,
    parse_name,
    unneeded,
)


def state_with(*groups: int) -> KeyedState:
    state = KeyedState(Codec("operator 'count'"))
    for group in groups:
        state.own(group)
    return state


def written(state: KeyedState, compaction: Compaction, number: int = 0) -> dict[int, bool]:
    """Which groups are written, and whether whole."""
    parts = [compaction.part(state, group, number) for group in sorted(state.owned)]
    return {part[0]: part[1] for part in parts if part is not None}


def test_first_the_whole_then_changes_until_they_outgrow_it() -> None:
    state, compaction = state_with(3), Compaction()
    for key in range(20):
        state.value(3, key, 1.0)["n"] = 1
    assert written(state, compaction) == {3: True}
    assert written(state, compaction) == {}
    kinds = []
    for _ in range(6):
        for key in range(8):
            state.value(3, key, 2.0)["n"] += 1
        kinds.append(written(state, compaction)[3])
    assert kinds == [False, False, True, False, False, True]


def test_a_group_that_is_not_changed_is_written_whole_now_and_then() -> None:
    state, compaction = state_with(0, 5), Compaction()
    wholes: dict[int, list[int]] = {0: [], 5: []}
    for batch in range(100):
        for group, whole in written(state, compaction).items():
            assert whole
            wholes[group].append(batch)
    assert wholes[0] == list(range(0, 100, WHOLE_AFTER))
    assert wholes[5] == list(range(0, 100, WHOLE_AFTER + 5))


def test_a_group_that_was_taken_is_written_whole() -> None:
    state, compaction = state_with(0), Compaction()
    written(state, compaction)
    state.own(1)
    assert written(state, compaction) == {1: True}


def test_the_oldest_segment_that_is_needed() -> None:
    """It is the one with the last whole of some group: changes after it are no use without it."""
    state, compaction = state_with(0, 5), Compaction()
    assert compaction.oldest(default=7) == 7
    oldest = []
    for number in range(1, 40):
        written(state, compaction, number)
        oldest.append(compaction.oldest(default=0))
    assert WHOLE_AFTER == 16  # group 0 is whole in 1, 17 and 33, group 5 in 1 and 22
    assert oldest == [1] * 21 + [17] * 11 + [22] * 7


def test_a_change_is_written_once() -> None:
    state, compaction = state_with(3), Compaction()
    for key in range(20):
        state.value(3, key, 1.0)["n"] = 1
    written(state, compaction)
    state.value(3, 7, 2.0)["n"] = 2
    assert written(state, compaction) == {3: False}
    assert written(state, compaction) == {}


def test_keys_that_have_expired_are_deleted_with_the_segment() -> None:
    state, compaction = KeyedState(Codec("operator 'count'"), expire_after_s=10.0), Compaction()
    state.own(3)
    for key in range(20):
        state.value(3, key, 100.0)["n"] = 1
    parts = [compaction.part(state, 3, 1)]
    state.value(3, 7, 200.0)["n"] = 2
    parts.append(compaction.part(state, 3, 2))
    other = KeyedState(Codec("operator 'count'"))
    other.own(3, [data for _, _, data in filter(None, parts)])
    assert [(whole, len(state), len(other)) for _, whole, _ in filter(None, parts)][1] == (False, 1, 1)


def test_names() -> None:
    assert Segment(12, 1, 3, size=7, crc=9).name == "12.1.3"
    assert parse_name("12.1.3") == Segment(12, 1, 3)
    assert [parse_name(name) for name in ("moves", "12.1", "12.1.3.new", "a.b.c", "-1.2.3", ".1.2")] == [None] * 6


def test_of_a_batch_that_was_done_again_the_last_generation_counts() -> None:
    known = [Segment(*one) for one in ((1, 0, 0), (1, 0, 1), (2, 0, 0), (2, 1, 0), (2, 1, 1), (3, 0, 0), (3, 1, 0))]
    assert [one.name for one in newest_first(known, before=3)] == ["2.1.1", "2.1.0", "1.0.1", "1.0.0"]


@given(st.sets(st.tuples(st.integers(0, 90), st.integers(0, 2), st.integers(0, 1)), max_size=60), st.integers(0, 3))
def test_what_is_removed_is_not_needed_by_the_last_batches(known: set[tuple[int, int, int]], back: int) -> None:
    segments = [Segment(*one) for one in known]
    batches = sorted({one.number for one in segments}, reverse=True)
    gone = set(unneeded(segments))
    if len(batches) <= back:
        return
    redone = batches[back]  # the batch that is done again
    reached = [batch for batch in batches if batch < redone][: 2 * WHOLE_AFTER]
    assert not [one for one in newest_first(segments, redone) if one in gone and one.number in reached]
    assert back < KEPT_BATCHES


def test_old_segments_go() -> None:
    segments = [Segment(batch, 0, 0) for batch in range(100)]
    assert len(segments) - len(unneeded(segments)) == 2 * WHOLE_AFTER + KEPT_BATCHES
    assert unneeded([]) == []
