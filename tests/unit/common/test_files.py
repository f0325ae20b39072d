"""Files and folders that are nobody else's."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.common import files
from penstock.common.files import once_there_is_room, private_folder, write_whole


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_what_is_written_is_for_its_owner_only(tmp_path: Path) -> None:
    """Records, run files and secrets could be read by everyone on the machine."""
    write_whole(tmp_path / "run.json", b"{}")
    write_whole(tmp_path / "run.json", b"[]")
    assert ((tmp_path / "run.json").read_bytes(), mode(tmp_path / "run.json")) == (b"[]", 0o600)


def test_a_folder_that_is_made_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file was, and after a power cut the folder around it might not have been."""
    synced: list[Path] = []
    monkeypatch.setattr(files, "sync_folder", synced.append)
    private_folder(tmp_path / "state" / "count")
    private_folder(tmp_path / "state" / "count")
    assert set(synced) == {tmp_path, tmp_path / "state"}
    assert len(synced) == 2


def test_a_folder_is_made_private_and_one_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    private_folder(tmp_path / "out" / "run")
    assert mode(tmp_path / "out" / "run") == 0o700
    (tmp_path / "shared").mkdir(mode=0o755)
    private_folder(tmp_path / "shared")
    assert mode(tmp_path / "shared") == 0o755


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each record that did not fit left a file that nobody removed, and the disk was fuller than before."""
    write_whole(tmp_path / "run.json", b"{}")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(tmp_path / "run.json", b"[]")
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("run.json", b"{}")]


class Disk:
    """Full for so many tries, or of another fault."""

    def __init__(self, full: int, number: int = errno.ENOSPC) -> None:
        self.full, self.tried, self._number = full, 0, number

    def write(self) -> str:
        self.tried += 1
        if self.tried <= self.full:
            raise OSError(self._number, os.strerror(self._number))
        return "written"


def test_a_full_disk_is_waited_for(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A driver that carried a run on while the disk was full ended with OSError, though runs outlive a full disk."""
    monkeypatch.setattr(files, "LOOK_EVERY_S", 0.001)
    disk = Disk(full=3)
    assert once_there_is_room(disk.write, 60.0, threading.Event()) == "written"
    assert (disk.tried, caplog.text.count("the disk is full")) == (4, 1)


@pytest.mark.parametrize(
    ("disk", "within_s", "ended"),
    [(Disk(full=1), 0.0, False), (Disk(full=1, number=errno.EACCES), 60.0, False), (Disk(full=1), 60.0, True)],
    ids=["no time", "another fault", "the run ends"],
)
def test_not_for_ever_and_for_nothing_else(disk: Disk, within_s: float, ended: bool) -> None:
    ending = threading.Event()
    if ended:
        ending.set()
    with pytest.raises(OSError, match=r"No space left|denied"):
        once_there_is_room(disk.write, within_s, ending)
    assert disk.tried == 1
