"""State on disk: segments are read as the batch needs them, files of moves once, and what is old goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import EngineError
from penstock.state.files import StateFiles
from penstock.state.segments import KEPT_BATCHES, WHOLE_AFTER, SegmentName, newest_first


@pytest.fixture
def files(tmp_path: Path) -> StateFiles:
    return StateFiles(tmp_path / "count")


def loaded(files: StateFiles, before: int, *groups: int) -> dict[int, list[bytes]]:
    found = files.load(groups, newest_first(files.names(), before))
    return {group: one.parts for group, one in found.items()}


def test_the_last_whole_and_the_changes_after_it(files: StateFiles) -> None:
    files.write(SegmentName(0, 0, 0), [(1, True, b"old"), (2, True, b"two")])
    files.write(SegmentName(1, 0, 0), [(1, True, b"whole")])
    files.write(SegmentName(2, 0, 1), [(1, False, b"change")])
    files.write(SegmentName(5, 0, 0), [(1, False, b"last")])  # numbers may jump
    assert loaded(files, 6, 1, 2, 3) == {1: [b"whole", b"change", b"last"], 2: [b"two"], 3: []}
    assert loaded(files, 2, 1) == {1: [b"whole"]}
    found = files.load([1], newest_first(files.names(), 6))[1].past
    assert (found.whole_bytes, found.changes_bytes, found.segments) == (5, 10, 2)


def test_of_a_batch_that_was_done_again_the_last_time_counts(files: StateFiles) -> None:
    """Replica 0 had written group 1 before the crash; the second time it is replica 1's."""
    files.write(SegmentName(0, 0, 0), [(1, True, b"first")])
    files.write(SegmentName(1, 0, 0), [(1, True, b"wrong")])
    files.write(SegmentName(1, 1, 1), [(1, False, b"right")])
    files.write(SegmentName(1, 1, 0), [])
    assert loaded(files, 2, 1) == {1: [b"first", b"right"]}


def test_nothing_is_there_yet(files: StateFiles) -> None:
    assert files.names() == []
    assert loaded(files, 0, 7) == {7: []}
    files.clean()
    files.forget_moves()


def test_half_a_file_is_not_seen(files: StateFiles, tmp_path: Path) -> None:
    files.write(SegmentName(0, 0, 0), [(1, True, b"one")])
    (tmp_path / "count" / "1.0.0.99.new").write_bytes(b"\x07")
    assert files.names() == [(0, 0, 0)]


def test_moves_are_handed_over_taken_and_forgotten(files: StateFiles, tmp_path: Path) -> None:
    with files.hand_over(0, 2, 3) as add:
        add(4, True, b"four")
        add(5, True, b"five")
        assert not (tmp_path / "count" / "moves" / "0-2-3.state").exists()
    with files.hand_over(0, 3, 1) as add:
        add(4, True, b"again")
    assert list(files.take(0, 2, 3, {5})) == [(5, b"five")]
    with pytest.raises(EngineError, match=r"0-2-3.state: lacks the key groups \[9\]"):
        list(files.take(0, 2, 3, {4, 9}))
    files.forget_moves(before=3)
    assert [file.name for file in (tmp_path / "count" / "moves").iterdir()] == ["0-3-1.state"]
    files.forget_moves()
    assert list((tmp_path / "count" / "moves").iterdir()) == []


def test_what_fails_leaves_no_file_behind(files: StateFiles, tmp_path: Path) -> None:
    def parts() -> Iterator[tuple[int, bool, bytes]]:
        yield 4, True, b"four"
        raise EngineError("group 5 cannot be encoded")

    with pytest.raises(EngineError, match=r"cannot be encoded"):
        files.write(SegmentName(0, 0, 0), parts())
    assert list((tmp_path / "count").iterdir()) == []


def test_old_segments_are_removed(files: StateFiles) -> None:
    for batch in range(50):
        files.write(SegmentName(batch, 0, 0), [])
    files.clean()
    kept = 2 * WHOLE_AFTER + KEPT_BATCHES
    assert sorted(name.batch for name in files.names()) == list(range(50 - kept, 50))
