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
    SegmentName,
    newest_first,
    parse_name,
    unneeded,
)


def state_with(*groups: int) -> KeyedState:
    state = KeyedState(Codec("operator 'count'"))
    for group in groups:
        state.own(group)
    return state


def written(state: KeyedState, compaction: Compaction) -> dict[int, bool]:
    """Which groups are written, and whether whole."""
    found = {group: whole for group, whole, _ in compaction.parts(state)}
    state.settle()
    return found


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


def test_names() -> None:
    assert str(SegmentName(12, 1, 3)) == "12.1.3"
    assert parse_name("12.1.3") == SegmentName(12, 1, 3)
    assert [parse_name(name) for name in ("moves", "12.1", "12.1.3.new", "a.b.c", "-1.2.3", ".1.2")] == [None] * 6


def test_of_a_batch_that_was_done_again_the_last_generation_counts() -> None:
    names = [SegmentName(*one) for one in ((1, 0, 0), (1, 0, 1), (2, 0, 0), (2, 1, 0), (2, 1, 1), (3, 0, 0), (3, 1, 0))]
    assert newest_first(names, before=3) == [(2, 1, 1), (2, 1, 0), (1, 0, 1), (1, 0, 0)]


@given(st.sets(st.tuples(st.integers(0, 90), st.integers(0, 2), st.integers(0, 1)), max_size=60), st.integers(0, 3))
def test_what_is_removed_is_not_needed_by_the_last_batches(known: set[tuple[int, int, int]], back: int) -> None:
    names = [SegmentName(*one) for one in known]
    batches = sorted({name.batch for name in names}, reverse=True)
    gone = set(unneeded(names))
    if len(batches) <= back:
        return
    redone = batches[back]  # the batch that is done again
    reached = [batch for batch in batches if batch < redone][: 2 * WHOLE_AFTER]
    assert not [name for name in newest_first(names, redone) if name in gone and name.batch in reached]
    assert back < KEPT_BATCHES


def test_old_segments_go() -> None:
    names = [SegmentName(batch, 0, 0) for batch in range(100)]
    assert len(names) - len(unneeded(names)) == 2 * WHOLE_AFTER + KEPT_BATCHES
    assert unneeded([]) == []
