"""Where batches start in the sources: kept on disk, so that a batch done again is the same batch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.engine.driver.positions import KEPT_BATCHES, Positions
from penstock.engine.protocol.progress import first_batch
from penstock.errors import EngineError

SLOT = ("tweets", 0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "positions.json"


def test_the_first_batch_starts_at_0_and_the_next_where_it_ended(file: Path) -> None:
    positions = Positions(file)
    assert positions.start(0, SLOT) == 0
    assert positions.end(0, SLOT, 40) == 40
    assert positions.start(1, SLOT) == 40


def test_slots_and_sources_are_kept_apart(file: Path) -> None:
    positions = Positions(file)
    ends = {("tweets", 0): 40, ("tweets", 1): 39, ("news", 0): 7}
    for slot, position in ends.items():
        positions.end(0, slot, position)
    assert {slot: positions.start(1, slot) for slot in ends} == ends


def test_a_new_driver_reads_the_file_back(file: Path) -> None:
    before = Positions(file)
    before.end(0, SLOT, 40)
    before.end(1, SLOT, 90)
    after = Positions(file)
    assert (after.start(1, SLOT), after.start(2, SLOT)) == (40, 90)


def test_a_batch_done_again_may_end_elsewhere(file: Path) -> None:
    positions = Positions(file)
    positions.end(0, SLOT, 40)
    positions.end(1, SLOT, 90)
    assert positions.start(1, SLOT) == 40
    positions.end(1, SLOT, 75)
    assert Positions(file).start(2, SLOT) == 75


def test_a_batch_whose_start_is_not_known_is_an_error_not_0(file: Path) -> None:
    positions = Positions(file)
    positions.end(0, SLOT, 40)
    for batch, slot in ((2, SLOT), (1, ("tweets", 1))):
        with pytest.raises(EngineError) as caught:
            positions.start(batch, slot)
        assert str(caught.value) == f"source 'tweets': where batch {batch} starts is not known"


def test_only_the_last_batches_are_kept(file: Path) -> None:
    positions = Positions(file)
    for batch in range(50):
        positions.end(batch, SLOT, batch)
    assert Positions(file).start(50 - KEPT_BATCHES + 1, SLOT) == 50 - KEPT_BATCHES
    assert len(positions._starts) == KEPT_BATCHES + 1


def test_the_file_is_replaced_in_one_step(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that dies while it writes leaves the old positions, whole."""
    positions = Positions(file)
    positions.end(0, SLOT, 40)

    def power_cut(number: int) -> None:
        raise OSError("power cut")

    monkeypatch.setattr(os, "fsync", power_cut)
    with pytest.raises(OSError, match="power cut"):
        positions.end(1, SLOT, 90)
    for after in (positions, Positions(file)):  # what is not on disk is not known
        assert after.start(1, SLOT) == 40
        with pytest.raises(EngineError, match="where batch 2 starts is not known"):
            after.start(2, SLOT)
    for write in (lambda: positions.begin(1, {SLOT: 90}), lambda: positions.forget(0)):
        with pytest.raises(OSError, match="power cut"):
            write()
        assert positions.shifts() == {0}


def test_a_shift_begins_where_it_is_told_to_whichever_of_its_batches_that_is(file: Path) -> None:
    positions = Positions(file)
    positions.end(0, SLOT, 40)
    positions.begin(2, {SLOT: 55})
    assert [positions.start(first_batch(2) + batch, SLOT) for batch in (0, 3)] == [55, 55]
    positions.end(first_batch(2) + 3, SLOT, 70)
    assert positions.start(first_batch(2) + 4, SLOT) == 70
    with pytest.raises(EngineError, match="where batch 2000000005 starts is not known"):
        positions.start(first_batch(2) + 5, SLOT)
    assert positions.start(1, SLOT) == 40  # the last shift may still have to do its batch again


def test_a_shift_that_has_ended_is_forgotten(file: Path) -> None:
    positions = Positions(file)
    positions.end(0, SLOT, 40)
    positions.begin(1, {SLOT: 55})
    positions.forget(0)
    after = Positions(file)
    assert after.start(first_batch(1), SLOT) == 55
    with pytest.raises(EngineError):
        after.start(1, SLOT)


@pytest.mark.parametrize("idle", [1, 2, KEPT_BATCHES, KEPT_BATCHES + 3])
def test_a_shift_that_began_late_can_do_its_batch_again(file: Path, idle: int) -> None:
    """Batches were over before its turn had come; in the next it sent, and died between the end and the commit."""
    first = first_batch(1)
    positions = Positions(file)
    positions.begin(1, {SLOT: 55})
    assert positions.start(first + idle, SLOT) == 55
    positions.end(first + idle, SLOT, 70)
    for after in (positions, Positions(file)):
        assert (after.start(first + idle, SLOT), after.start(first + idle + 1, SLOT)) == (55, 70)


def test_a_slot_that_hears_late_of_its_turn_is_not_forgotten_over_the_others(file: Path) -> None:
    late = ("tweets", 1)
    positions = Positions(file)
    positions.begin(1, {SLOT: 55, late: 54})
    for batch in range(KEPT_BATCHES + 3):
        positions.end(first_batch(1) + batch, SLOT, 60 + batch)
    assert positions.start(first_batch(1) + KEPT_BATCHES + 3, late) == 54


def test_no_batch_of_a_shift_that_was_forgotten_comes_back(file: Path) -> None:
    """Spark may end a batch of a shift that has just been seen off."""
    positions = Positions(file)
    positions.begin(0, {SLOT: 0})
    positions.begin(1, {SLOT: 55})
    positions.end(0, SLOT, 40)
    positions.forget(0)
    with pytest.raises(EngineError, match="where batch 1 starts is not known"):
        positions.end(1, SLOT, 55)
    assert Positions(file).shifts() == {1}
