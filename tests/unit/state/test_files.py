"""State on disk: segments are read as a restart needs them, files of moves once, and what is old goes."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.errors import EngineError
from penstock.state.files import StateFiles
from penstock.state.segments import KEPT_BATCHES, WHOLE_AFTER, Segment, newest_first


@pytest.fixture
def files(tmp_path: Path) -> StateFiles:
    return StateFiles(tmp_path / "count")


def loaded(files: StateFiles, before: int, *groups: int) -> dict[int, list[bytes]]:
    found = files.load(groups, newest_first(files.found(), before))
    return {group: one.parts for group, one in found.items()}


def test_the_last_whole_and_the_changes_after_it(files: StateFiles) -> None:
    files.write(Segment(0, 0, 0), [(1, True, b"old"), (2, True, b"two")])
    files.write(Segment(1, 0, 0), [(1, True, b"whole")])
    files.write(Segment(2, 0, 1), [(1, False, b"change")])
    files.write(Segment(5, 0, 0), [(1, False, b"last")])  # numbers may jump
    assert loaded(files, 6, 1, 2, 3) == {1: [b"whole", b"change", b"last"], 2: [b"two"], 3: []}
    assert loaded(files, 2, 1) == {1: [b"whole"]}
    found = files.load([1], newest_first(files.found(), 6))[1].past
    assert (found.whole_bytes, found.changes_bytes, found.segments, found.whole_in) == (5, 10, 2, 1)


def test_of_a_batch_that_was_done_again_the_last_time_counts(files: StateFiles) -> None:
    """Replica 0 had written group 1 before the crash; the second time it is replica 1's."""
    files.write(Segment(0, 0, 0), [(1, True, b"first")])
    files.write(Segment(1, 0, 0), [(1, True, b"wrong")])
    files.write(Segment(1, 1, 1), [(1, False, b"right")])
    files.write(Segment(1, 1, 0), [])
    assert loaded(files, 2, 1) == {1: [b"first", b"right"]}


def test_nothing_is_there_yet(files: StateFiles) -> None:
    assert files.found() == []
    assert loaded(files, 0, 7) == {7: []}
    files.clean()
    files.forget_moves()


def test_half_a_file_is_not_seen(files: StateFiles, tmp_path: Path) -> None:
    files.write(Segment(0, 0, 0), [(1, True, b"one")])
    (tmp_path / "count" / "1.0.0.99.new").write_bytes(b"\x07")
    assert [one.name for one in files.found()] == ["0.0.0"]


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
        files.write(Segment(0, 0, 0), parts())
    assert list((tmp_path / "count").iterdir()) == []


def test_old_segments_are_removed(files: StateFiles) -> None:
    for batch in range(50):
        files.write(Segment(batch, 0, 0), [])
    files.clean()
    kept = 2 * WHOLE_AFTER + KEPT_BATCHES
    assert sorted(one.number for one in files.found()) == list(range(50 - kept, 50))


# ── checkpoints ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_segment_knows_what_it_should_be(files: StateFiles, tmp_path: Path) -> None:
    segment = files.write(Segment(3, 1, 0), [(1, True, b"one"), (2, True, b"two" * 10**6)])
    content = (tmp_path / "count" / "3.1.0").read_bytes()
    assert (segment.name, segment.size, segment.crc) == ("3.1.0", len(content), zlib.crc32(content))
    files.check([segment])


def changed(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"two", b"2.0"))


def shortened(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (Path.unlink, "the segment .*3.1.0 of a committed checkpoint is missing"),
        (changed, "the segment .*3.1.0 is not as it was written"),
        (shortened, "the segment .*3.1.0 is not as it was written"),
    ],
    ids=["gone", "changed", "shortened"],
)
def test_a_segment_that_was_harmed_is_named(
    files: StateFiles, tmp_path: Path, harm: Callable[[Path], object], said: str
) -> None:
    """Before anything starts, not when a replica reads half of it."""
    whole = files.write(Segment(2, 1, 0), [(1, True, b"one")])
    harmed = files.write(Segment(3, 1, 0), [(1, False, b"two")])
    harm(tmp_path / "count" / "3.1.0")
    with pytest.raises(EngineError, match=said):
        files.check([whole, harmed])


def test_a_folder_that_is_not_shared_is_named(files: StateFiles) -> None:
    """The driver sees the segment, the worker does not."""
    with pytest.raises(EngineError, match=r"3.1.0 is not to be seen here; all workers must share the run's folder"):
        files.load([1], [Segment(3, 1, 0)])


def test_changes_of_nothing_are_not_taken_for_state(files: StateFiles) -> None:
    """Should a segment ever be missing from a record, counts would silently begin at the wrong number."""
    files.write(Segment(2, 0, 0), [(1, True, b"one"), (3, True, b"three")])
    changes = files.write(Segment(3, 0, 0), [(1, False, b"two"), (3, True, b"four")])
    with pytest.raises(EngineError, match=r"count has changes of the key groups \[1\], and not what changed"):
        files.load([1, 2, 3], [changes])
    assert files.load([2, 3], [changes])[3].parts == [b"four"]


def test_what_a_record_does_not_name_goes_once_it_is_older(files: StateFiles) -> None:
    """Of checkpoint 4 replica 1 had written its part when the query died; 6 is under way."""
    kept = [files.write(Segment(number, 0, 0), [(1, True, b"one")]) for number in (2, 5)]
    for other in (Segment(3, 0, 0), Segment(4, 0, 1), Segment(6, 1, 0)):
        files.write(other, [])
    files.keep(kept, below=5)
    assert sorted(one.name for one in files.found()) == ["2.0.0", "5.0.0", "6.1.0"]


def test_what_was_not_committed_is_forgotten(files: StateFiles, tmp_path: Path) -> None:
    for number in range(4):
        files.write(Segment(number, 0, 0), [])
    with files.hand_over(0, 2, 3) as add:
        add(4, True, b"four")
    files.forget_from(2)
    assert sorted(one.number for one in files.found()) == [0, 1]
    assert list((tmp_path / "count" / "moves").iterdir()) == []
