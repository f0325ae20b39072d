"""Files that are there as a whole, or not at all, and folders that are nobody else's."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

log = logging.getLogger(__name__)
LOOK_EVERY_S = 0.5  # whether there is room again

T = TypeVar("T")


def write_whole(path: Path, data: bytes) -> None:
    """Have the file on disk when this returns; whoever reads meanwhile, or after a crash, sees the old one or this."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def once_there_is_room(act: Callable[[], T], within_s: float, ending: threading.Event) -> T:
    """What it gives; while the disk is full it is done again, for so long and unless all is to end."""
    deadline, told = time.monotonic() + within_s, False
    while True:
        try:
            return act()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT) or time.monotonic() > deadline:
                raise
            if not told:
                log.warning("the disk is full, which is waited for up to %g s: %s", within_s, error)
                told = True
            if ending.wait(LOOK_EVERY_S):
                raise


def sealed(data: bytes) -> bytes:
    """Text with its checksum on a line behind it.

    >>> sealed(b'{"a": 1}')
    b'{"a": 1}\\ncrc32 fba18e97\\n'
    """
    return b"%b\ncrc32 %08x\n" % (data, zlib.crc32(data))


def unsealed(data: bytes) -> bytes:
    """The text without its checksum, if it has one; a ValueError if it is not the text's."""
    text, mark, checksum = data.rpartition(b"\ncrc32 ")
    if not mark:
        return data
    if sealed(text) != data:
        raise ValueError(f"its checksum should be {zlib.crc32(text):08x}; got {checksum.strip()[:20]!r}")
    return text


def private_folder(folder: Path) -> None:
    """Make the folder if it is not there, so that nobody else can look into it; one that is there stays as it is."""
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for one in new:  # what is written into it later must not vanish with the folder when the machine goes down
        sync_folder(one.parent)


def sync_folder(folder: Path) -> None:
    """Have the folder's list of files on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
