"""Files that are there as a whole, or not at all, and folders that are nobody else's."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Have the file on disk when this returns; whoever reads meanwhile, or after a crash, sees the old one or this."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_folder(path.parent)


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
