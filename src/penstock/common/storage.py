"""Where a run keeps what a restart needs: a folder of this machine, of an HDFS, or of what `pyarrow.fs` knows.

A file is written as a whole: it is there, safe from a crash, when its context is left, and not at all if that fails.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Protocol, cast
from urllib.parse import unquote, urlsplit

from penstock.common.files import private_folder, sync_folder, write_whole

UNFINISHED = ".new"  # how the name of a file ends that is being written
IN_MEMORY_BYTES = 8 << 20  # of a file that is gathered before it is sent; more of it goes to disk
COPIED_BYTES = 1 << 20
HDFS = ("hdfs", "viewfs")


class Storage(Protocol):
    """One folder. Whoever writes a file is the only one who does."""

    @property
    def uri(self) -> str:
        """With an explicit scheme, and without secrets."""

    def __truediv__(self, name: str) -> Storage:
        """A folder within; it need not be there."""

    def names(self) -> list[str]:
        """Of all files that are whole; none where the folder is not there."""

    def read(self, name: str) -> bytes:
        """All of a file; a FileNotFoundError if it is not there."""

    def open(self, name: str) -> IO[bytes]:
        """A file to be read in parts, which can be sought in; a FileNotFoundError if it is not there."""

    def create(self, name: str, *, lasting: bool = True) -> AbstractContextManager[IO[bytes]]:
        """A new file to be written; one that need not outlast the machine may be quicker."""

    def write(self, name: str, data: bytes) -> None:
        """Have this in the file, whether it was there or not; readers see the old one or this."""

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""

    def tidy(self) -> None:
        """Remove what was being written, here and in folders within, when somebody died."""


Place = Storage | Path | str


def storage_at(place: Place) -> Storage:
    """The folder at a path or URI.

    >>> storage_at("/data/run") / "state", storage_at("file:///data/my%20run").uri
    (/data/run/state, 'file:///data/my%20run')
    """
    if isinstance(place, Path):
        return LocalStorage(place)
    if not isinstance(place, str):
        return place
    if ":/" not in place:
        return LocalStorage(Path(place))
    parts = urlsplit(place)
    if parts.scheme == "file":
        return LocalStorage(Path(unquote(parts.path)))
    if parts.scheme in HDFS and find_spec("hdfs_native") is not None:
        from penstock.common.hdfs_storage import hdfs_storage

        return hdfs_storage(place)
    from penstock.common.arrow_storage import arrow_storage  # takes its time to load

    return arrow_storage(place)


@contextmanager
def gathered() -> Iterator[IO[bytes]]:
    """A file on this machine for what is sent once it is whole: a writer that dies leaves nothing behind."""
    with tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES) as file:
        yield cast("IO[bytes]", file)


class LocalStorage:
    """A folder of this machine's file system, or of one that is mounted here."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    def __repr__(self) -> str:
        return str(self.path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalStorage) and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)

    @property
    def uri(self) -> str:
        """`file:///…`."""
        return self.path.as_uri()

    def __truediv__(self, name: str) -> LocalStorage:
        return LocalStorage(self.path / name)

    def names(self) -> list[str]:
        """Of all files that are whole."""
        if not self.path.is_dir():
            return []
        return [one.name for one in self.path.iterdir() if one.is_file() and not one.name.endswith(UNFINISHED)]

    def read(self, name: str) -> bytes:
        """All of a file."""
        return (self.path / name).read_bytes()

    def open(self, name: str) -> IO[bytes]:
        """A file to be read in parts."""
        return (self.path / name).open("rb")

    @contextmanager
    def create(self, name: str, *, lasting: bool = True) -> Iterator[IO[bytes]]:
        """A new file; on disk when the context is left, if it is to last."""
        private_folder(self.path)
        temporary = self.path / f"{name}.{os.getpid()}{UNFINISHED}"
        try:
            with temporary.open("wb") as file:
                yield file
                if lasting:
                    file.flush()
                    os.fsync(file.fileno())
            temporary.replace(self.path / name)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if lasting:
            sync_folder(self.path)

    def write(self, name: str, data: bytes) -> None:
        """Have this in the file, on disk."""
        private_folder(self.path)
        write_whole(self.path / name, data)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        (self.path / name).unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove what was being written when somebody died."""
        for left in self.path.rglob(f"*{UNFINISHED}"):
            left.unlink(missing_ok=True)
