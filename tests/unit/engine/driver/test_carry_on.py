"""Where a new driver goes on: behind the last batch that Spark has committed, with the state of then."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.engine.driver.positions import Positions, Resumed, carry_on, next_batch
from penstock.engine.protocol.progress import first_batch
from penstock.state.files import StateFiles
from penstock.state.segments import SegmentName

SLOT = ("s", 0)


class Left:
    """A folder as a driver leaves it."""

    def __init__(self, folder: Path) -> None:
        self.checkpoint = folder / "checkpoint"
        self.positions = Positions(folder / "positions.json")
        self.state = StateFiles(folder / "state")

    def commit(self, shift: int, *batches: int) -> None:
        commits = self.checkpoint / str(shift) / "commits"
        commits.mkdir(parents=True)
        for batch in batches:
            (commits / str(batch)).touch()
            (commits / f".{batch}.crc").touch()

    def segment(self, batch: int) -> None:
        self.state.write(SegmentName(batch, 0, 0), [])

    def resume(self) -> Resumed:
        return carry_on(self.positions, self.checkpoint, [SLOT], [self.state])


@pytest.fixture
def left(tmp_path: Path) -> Left:
    return Left(tmp_path)


def test_a_new_folder_begins_at_the_beginning(left: Left) -> None:
    assert left.resume() == Resumed(0, {SLOT: 0})


def test_what_was_not_committed_is_sent_again(left: Left) -> None:
    left.commit(0, 0, 1)
    for batch, end in enumerate((40, 90, 130)):
        left.positions.end(batch, SLOT, end)
        left.segment(batch)
    assert left.resume() == Resumed(1, {SLOT: 90})
    assert left.positions.start(first_batch(1), SLOT) == 90
    assert left.positions.shifts() == {1}
    assert sorted(name.batch for name in left.state.names()) == [0, 1]


def test_a_run_that_died_in_its_first_batch_begins_again(left: Left) -> None:
    left.commit(0)
    left.segment(0)
    assert left.resume() == Resumed(1, {SLOT: 0})
    assert left.state.names() == []


def test_a_driver_that_died_while_a_shift_took_over_goes_on_where_the_earlier_had_committed(left: Left) -> None:
    left.commit(0, 0)
    left.positions.end(0, SLOT, 40)
    left.positions.begin(1, {SLOT: 70})
    left.commit(1, 0)
    left.positions.end(first_batch(1), SLOT, 99)
    left.segment(0)
    left.segment(1)
    left.segment(first_batch(1))
    assert left.resume() == Resumed(2, {SLOT: 40})
    assert left.positions.shifts() == {2}
    assert [name.batch for name in left.state.names()] == [0]


def test_a_driver_that_died_while_a_shift_took_over_in_the_first_batch_begins_again(left: Left) -> None:
    """The first shift was not in the positions before its first batch ended, and all that it had not done was lost."""
    assert left.resume() == Resumed(0, {SLOT: 0})
    left.commit(0)
    left.positions.begin(1, {SLOT: 70})
    left.commit(1)
    left.segment(first_batch(1))
    assert left.resume() == Resumed(2, {SLOT: 0})
    assert left.positions.shifts() == {2}
    assert left.state.names() == []


def test_a_shift_that_works_alone_is_gone_on_from(left: Left) -> None:
    left.commit(0, 0)
    left.positions.begin(1, {SLOT: 70})
    left.commit(1)
    assert left.resume() == Resumed(2, {SLOT: 70})


def test_other_files_among_the_commits_do_not_count(left: Left) -> None:
    left.commit(0, 3, 12)
    (left.checkpoint / "0" / "commits" / "metadata").touch()
    assert next_batch(left.checkpoint / "0") == 13
