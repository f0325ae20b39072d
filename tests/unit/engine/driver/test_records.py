"""The record of a checkpoint: there as a whole or not at all, and the last one counts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.common import files
from penstock.engine.driver.records import Record, Records
from penstock.errors import InputError
from penstock.state.segments import Segment

SLOT = ("tweets", 0)


def record(number: int, **more: Any) -> Record:
    given: dict[str, Any] = {"cursors": {"tweets/0": number}, "sent": {"tweets/0": 10 * number}} | more
    return Record(number=number, generation=0, at_s=1.5, **given)


def numbers(folder: Path) -> list[int]:
    return sorted(int(file.stem) for file in folder.iterdir() if file.suffix == ".json")


def test_a_new_folder_has_none(tmp_path: Path) -> None:
    assert Records(tmp_path / "checkpoints").last is None


def test_a_new_driver_reads_the_last_one_back_as_it_was(tmp_path: Path) -> None:
    cursors = {"tweets/0": {"topic-0": [17, "a"]}, "tweets/1": None, "news/0": 4}
    state = {"count": [Segment(3, 0, 1, 12, 99), Segment(4, 0, 0, 8, 7)]}
    last = record(4, cursors=cursors, state=state, parts={"store": {0: "a.jsonl", 3: [1, 2]}})
    records = Records(tmp_path)
    records.write(record(3))
    records.write(last)
    assert records.last == Records(tmp_path).last == last


def test_the_highest_number_is_the_last_one(tmp_path: Path) -> None:
    """Not the last by name: 9 comes after 10 there."""
    for number in (9, 10):
        Records(tmp_path).write(record(number))
    found = Records(tmp_path).last
    assert found is not None
    assert found.number == 10


def test_only_the_last_two_are_kept(tmp_path: Path) -> None:
    records = Records(tmp_path)
    for number in (1, 2, 5, 1_000_000_001):
        records.write(record(number))
    assert numbers(tmp_path) == [5, 1_000_000_001]


def test_where_a_slot_goes_on(tmp_path: Path) -> None:
    assert record(4).start(SLOT) == (4, 40)
    assert record(4).start(("tweets", 1)) == (None, 0)  # the source's own beginning


def test_a_driver_that_dies_while_it_writes_leaves_the_record_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = Records(tmp_path)
    records.write(record(1))

    def power_cut(number: int) -> None:
        raise OSError("power cut")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", power_cut)
        with pytest.raises(OSError, match="power cut"):
            records.write(record(2))
    for after in (records, Records(tmp_path)):
        assert after.last == record(1)
    records.write(record(2))  # what was left half written does not matter
    assert Records(tmp_path).last == record(2)


def test_a_record_that_is_not_known_to_be_on_disk_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attempt began again from the one before; a new driver would have gone on from this one, and lost the rest."""
    records = Records(tmp_path)
    records.write(record(1))

    def unsynced(folder: Path) -> None:
        raise OSError("the disk is gone")

    with monkeypatch.context() as broken:
        broken.setattr(files, "sync_folder", unsynced)
        with pytest.raises(OSError, match="the disk is gone"):
            records.write(record(2))
    for after in (records, Records(tmp_path)):
        assert after.last == record(1)


def test_one_that_cannot_be_removed_does_not_stop_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was committed, and then written again and again."""
    records = Records(tmp_path)

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(f"{path}: not yours")

    monkeypatch.setattr(Path, "unlink", refuse)
    for number in (1, 2, 3):
        records.write(record(number))
    assert records.last == Records(tmp_path).last == record(3)
    assert numbers(tmp_path) == [1, 2, 3]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 2, "number": 7}'])
def test_a_broken_one_is_refused(tmp_path: Path, content: bytes) -> None:
    Records(tmp_path).write(record(6))
    (tmp_path / "7.json").write_bytes(content)
    with pytest.raises(InputError) as caught:
        Records(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / '7.json'}: is not the record of a checkpoint: ")


@pytest.mark.parametrize("version", [1, 3])
def test_one_of_another_version_is_refused(tmp_path: Path, version: int) -> None:
    (tmp_path / "7.json").write_bytes(msgspec.json.encode({"version": version, "elsewhere": True}))
    with pytest.raises(InputError) as caught:
        Records(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path / '7.json'}: is of format {version}; this version of Penstock reads format 2"
    )


def test_other_files_in_the_folder_do_not_count(tmp_path: Path) -> None:
    Records(tmp_path).write(record(6))
    for name in ("7.json.4711.new", "notes.json", "8.txt"):
        (tmp_path / name).write_text("{")
    assert Records(tmp_path).last == record(6)
