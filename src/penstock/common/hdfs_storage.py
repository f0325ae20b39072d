"""Folders of an HDFS, through `hdfs-native`: it speaks Hadoop's own protocol without a JVM, and reads its settings.

So it finds a NameNode, the one in charge of several, and a login (Kerberos or a token) where Spark finds them:
`HADOOP_CONF_DIR`, `HADOOP_USER_NAME`, `HADOOP_TOKEN_FILE_LOCATION`.
"""

from __future__ import annotations

import io
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import IO, Any, cast
from urllib.parse import unquote, urlsplit

from hdfs_native import Client, WriteOptions

from penstock.common.secrets import masked_url
from penstock.common.storage import COPIED_BYTES, UNFINISHED, gathered
from penstock.errors import InputError

PRIVATE = 0o600
PATIENCE = {"dfs.client.failover.max.attempts": "8"}  # to reach a NameNode: for about a minute, not four


def hdfs_storage(uri: str) -> HdfsStorage:
    """The folder of a URI; without a host it is on Hadoop's `fs.defaultFS`."""
    parts = urlsplit(uri)
    path = unquote(parts.path).rstrip("/")
    thing = f"checkpoints {masked_url(uri)!r}"
    if not path:
        raise InputError(f"{thing}: must name a folder, as hdfs://host:8020/run")
    if "@" in parts.netloc or parts.query:
        raise InputError(f"{thing}: cannot be used; a login is not in the URI but with Hadoop's, as HADOOP_USER_NAME")
    try:
        client = _client(f"{parts.scheme}://{parts.netloc}" if parts.netloc else None, os.getpid())
    except (RuntimeError, ValueError, OSError) as error:
        raise InputError(f"{thing}: cannot be used; {_first_line(error)}") from None
    return HdfsStorage(client, path, uri.rstrip("/"))


@cache
def _client(url: str | None, pid: int) -> Client:  # noqa: ARG001 - its threads do not outlive a fork
    return Client(url, PATIENCE)


class HdfsStorage:
    """A folder of an HDFS, which renames onto a file in one step; a file counts when it has its name."""

    def __init__(self, client: Any, path: str, uri: str) -> None:
        self._client = client
        self._path = path
        self.uri = uri

    def __repr__(self) -> str:
        return self.uri

    def __truediv__(self, name: str) -> HdfsStorage:
        return HdfsStorage(self._client, f"{self._path}/{name}", f"{self.uri}/{name}")

    def names(self) -> list[str]:
        """Of all files that are whole."""
        files = [path.rpartition("/")[2] for path in self._files()]
        return [name for name in files if not name.endswith(UNFINISHED)]

    def read(self, name: str) -> bytes:
        """All of a file."""
        with self.open(name) as file:
            return file.read()

    def open(self, name: str) -> IO[bytes]:
        """A file to be read in parts."""
        with _as_os_errors():
            return cast(
                "IO[bytes]", io.BufferedReader(_Reader(self._client.read(f"{self._path}/{name}")), COPIED_BYTES)
            )

    @contextmanager
    def create(self, name: str, *, lasting: bool = True) -> Iterator[IO[bytes]]:  # noqa: ARG002 - all that is here lasts
        """A new file, sent when the context is left, and on as many DataNodes as HDFS is told."""
        with gathered() as file:
            yield file
            file.seek(0)
            self._send(f"{self._path}/{name}", file)

    def write(self, name: str, data: bytes) -> None:
        """Have this in the file."""
        with self.create(name) as file:
            file.write(data)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        self._delete(f"{self._path}/{name}")

    def tidy(self) -> None:
        """Remove what was being written when somebody died."""
        for path in self._files(recursive=True):
            if path.endswith(UNFINISHED):
                self._delete(path)

    def _files(self, *, recursive: bool = False) -> list[str]:
        with suppress(FileNotFoundError), _as_os_errors():
            return [str(one.path) for one in self._client.list_status(self._path, recursive) if not one.isdir]
        return []

    def _delete(self, path: str) -> None:
        with suppress(FileNotFoundError), _as_os_errors():
            self._client.delete(path)

    def _send(self, path: str, file: IO[bytes]) -> None:
        temporary = f"{path}.{secrets.token_hex(4)}{UNFINISHED}"
        try:
            with _as_os_errors():
                options = WriteOptions(permission=PRIVATE, create_parent=True)
                with self._client.create(temporary, options) as writer:
                    shutil.copyfileobj(file, writer, COPIED_BYTES)
                self._client.rename(temporary, path, True)
        except BaseException:
            with suppress(OSError):
                self._delete(temporary)
            raise


class _Reader(io.RawIOBase):
    """A file as Python's buffers want it."""

    def __init__(self, file: Any) -> None:
        self._file, self._at = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: len(self._file)}[whence]
        self._at = max(begin + offset, 0)
        return self._at

    def readinto(self, into: Any) -> int:
        size = max(min(len(into), len(self._file) - self._at), 0)
        if size:
            with _as_os_errors():
                into[:size] = self._file.read_range(self._at, size)
        self._at += size
        return size


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """What hdfs-native raises for an HDFS that cannot is a RuntimeError with Java's stack in it."""
    try:
        yield
    except RuntimeError as error:
        raise OSError(f"HDFS: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return str(error).replace("\\n", "\n").partition("\n")[0]
