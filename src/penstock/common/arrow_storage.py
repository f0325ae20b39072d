"""Folders of other file systems, through `pyarrow.fs`: `s3:` (or `s3a:`), `gs:`, `abfs:`, `hdfs:`, `fsspec+…:`.

An object store shows a file when all of it is there, so it is written under its own name. Elsewhere it gets that name
when it is whole. `hdfs:` comes here where `hdfs-native` is not installed and Hadoop's `libhdfs` is.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, cast
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from penstock.common.secrets import masked_url, resolve_url
from penstock.common.storage import COPIED_BYTES, HDFS, UNFINISHED, gathered
from penstock.errors import InputError

OBJECT_STORES = ("s3", "gcs", "abfs")
_ARROWS = {"s3a": "s3", "s3n": "s3"}  # as Hadoop and as Arrow call the same


def arrow_storage(uri: str) -> ArrowStorage:
    """The folder of a URI; `${env:NAME}` in it stands for a secret, and an InputError says what is wrong with it."""
    thing = f"checkpoints {masked_url(uri)!r}"
    scheme, _, rest = resolve_url(thing, uri).partition(":")
    resolved = f"{_ARROWS.get(scheme, scheme)}:{rest}"
    try:
        system, path = fs.FileSystem.from_uri(resolved)
    except (pa.ArrowException, OSError, ValueError, ImportError) as error:
        told = str(error).splitlines()[0].replace(resolved, masked_url(uri))
        way_out = "; pip install 'penstock[hdfs]' brings what it needs" if scheme in HDFS else ""
        raise InputError(f"{thing}: cannot be used; {told}{way_out}") from None
    if not path.strip("/"):
        raise InputError(f"{thing}: must name a folder, as s3://bucket/run")
    parts = urlsplit(uri)
    host = parts.netloc.rpartition("@")[2]
    return ArrowStorage(system, path.rstrip("/"), f"{parts.scheme}://{host}{parts.path}".rstrip("/"))


class ArrowStorage:
    """A folder of a file system of Arrow's."""

    def __init__(self, system: Any, path: str, uri: str) -> None:
        self._system = system
        self._path = path
        self._whole_at_once = system.type_name in OBJECT_STORES
        self.uri = uri

    def __repr__(self) -> str:
        return self.uri

    def __truediv__(self, name: str) -> ArrowStorage:
        return ArrowStorage(self._system, f"{self._path}/{name}", f"{self.uri}/{name}")

    def names(self) -> list[str]:
        """Of all files that are whole."""
        found = self._system.get_file_info(fs.FileSelector(self._path, allow_not_found=True))
        files = [str(one.base_name) for one in found if one.type == fs.FileType.File]
        return [name for name in files if not name.endswith(UNFINISHED)]

    def read(self, name: str) -> bytes:
        """All of a file."""
        with self.open(name) as file:
            return file.read()

    def open(self, name: str) -> IO[bytes]:
        """A file to be read in parts; one that was being replaced when its writer died is found in its new form."""
        path = self._file(name)
        for tried in (path,) if self._whole_at_once else (path, path + UNFINISHED, path):
            with suppress(FileNotFoundError):
                return cast("IO[bytes]", self._system.open_input_file(tried))
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), f"{self}/{name}")

    @contextmanager
    def create(self, name: str, *, lasting: bool = True) -> Iterator[IO[bytes]]:  # noqa: ARG002 - all that is here lasts
        """A new file, sent when the context is left."""
        with gathered() as file:
            yield file
            file.seek(0)
            self._send(name, file)

    def write(self, name: str, data: bytes) -> None:
        """Have this in the file."""
        with self.create(name) as file:
            file.write(data)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with suppress(FileNotFoundError):
            self._system.delete_file(self._file(name))

    def tidy(self) -> None:
        """Remove what was being written when somebody died, unless it was to replace what is no longer there."""
        found = self._system.get_file_info(fs.FileSelector(self._path, allow_not_found=True, recursive=True))
        there = {str(one.path) for one in found if one.type == fs.FileType.File}
        for path in there:
            if path.endswith(UNFINISHED) and path.removesuffix(UNFINISHED) in there:
                self._system.delete_file(path)

    def _file(self, name: str) -> str:
        return f"{self._path}/{name}"

    def _send(self, name: str, file: IO[bytes]) -> None:
        path = self._file(name)
        target = path if self._whole_at_once else path + UNFINISHED
        if not self._whole_at_once:
            self._system.create_dir(self._path, recursive=True)
        try:
            with self._system.open_output_stream(target) as stream:
                shutil.copyfileobj(file, stream, COPIED_BYTES)
        except BaseException:
            with suppress(Exception):  # a stream that breaks may leave what it had sent
                self._system.delete_file(target)
            raise
        if target != path:
            with suppress(FileNotFoundError):
                self._system.delete_file(path)  # HDFS moves nothing onto a file
            self._system.move(target, path)
