"""Output that waits for its checkpoint to be committed: in files that survive the process, and that a record names."""

from __future__ import annotations

import os
import uuid
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import msgspec

from penstock.common.files import private_folder, sync_folder
from penstock.errors import EngineError

_LENGTH_BYTES = 4


class Message(msgspec.Struct, array_like=True, frozen=True):
    """One event as it will be published."""

    id: str
    value: bytes
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


class Staged(msgspec.Struct, array_like=True, frozen=True):
    """One file: what one replica got for one checkpoint in one attempt."""

    checkpoint: int
    attempt: int
    name: str
    size_bytes: int
    crc: int = 0


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Message]).decode


class Staging:
    """The files of one replica. What a record names stays until it is published; the rest an attempt leaves behind.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> staging = Staging(Path(folder.name), "0")
    >>> staging.add(1, 7, [Message("17.0", b"a"), Message("17.1", b"b")])
    >>> staging.seal()
    >>> [(one.checkpoint, one.attempt) for one in staging.up_to(7)]
    [(7, 1)]
    >>> [message.id for messages in read(Path(folder.name), staging.up_to(7)[0]) for message in messages]
    ['17.0', '17.1']
    >>> staging.forget(7)
    >>> staging.up_to(7)
    []
    >>> folder.cleanup()
    """

    def __init__(self, folder: Path, replica: str) -> None:
        self._folder = folder
        self._replica = replica
        self._sealed: list[Staged] = []
        self._file: IO[bytes] | None = None
        self._crc = 0  # of what is in it
        self._begun: tuple[int, int] = (0, 0)  # attempt and checkpoint of the file that is open
        private_folder(folder)

    def add(self, attempt: int, checkpoint: int, messages: list[Message]) -> None:
        """Append these to the file of the checkpoint."""
        if not messages:
            return
        if self._file is None:
            name = f"{checkpoint:09d}-{attempt:06d}-{self._replica}-{uuid.uuid4().hex[:8]}.staged"
            self._file, self._begun = (self._folder / name).open("xb"), (attempt, checkpoint)
            self._crc = 0
        frame = _encode(messages)
        data = len(frame).to_bytes(_LENGTH_BYTES) + frame
        self._crc = zlib.crc32(data, self._crc)
        self._file.write(data)

    def seal(self) -> None:
        """Have all that was added on disk; what comes next goes to another file."""
        if self._file is None:
            return
        attempt, checkpoint = self._begun
        with self._file as file:
            file.flush()
            os.fsync(file.fileno())
            self._sealed.append(Staged(checkpoint, attempt, Path(file.name).name, file.tell(), self._crc))
        self._file = None
        sync_folder(self._folder)

    def up_to(self, checkpoint: int) -> list[Staged]:
        """What is sealed up to this checkpoint and not removed yet, oldest first."""
        return [one for one in self._sealed if one.checkpoint <= checkpoint]

    def forget(self, checkpoint: int) -> None:
        """What is sealed up to this checkpoint is no longer ours; whoever has published it removes it."""
        self._sealed = [one for one in self._sealed if one.checkpoint > checkpoint]

    def close(self) -> None:
        """Let go of the file; what a record does not name is removed by the next attempt."""
        if self._file is not None:
            self._file.close()


def read(folder: Path, staged: Staged) -> Iterator[list[Message]]:
    """The messages of a file, as they were added; an EngineError, before the first, if it is not as it was sealed."""
    left_bytes = staged.size_bytes
    try:
        with (folder / staged.name).open("rb") as file:
            _check(file, staged)
            while left_bytes > 0:
                length = int.from_bytes(file.read(_LENGTH_BYTES))
                frame = file.read(length)
                left_bytes -= _LENGTH_BYTES + len(frame)
                yield _decode(frame)
    except (OSError, ValueError) as error:
        raise EngineError(f"staged file '{folder / staged.name}': must be whole; {error}") from error


def _check(file: IO[bytes], staged: Staged) -> None:
    size = crc = 0
    while data := file.read(1 << 20):
        size, crc = size + len(data), zlib.crc32(data, crc)
    if (size, crc) != (staged.size_bytes, staged.crc):
        raise ValueError(f"it has {size} of {staged.size_bytes} bytes, or others")
    file.seek(0)


def remove(folder: Path, staged: Iterable[Staged]) -> None:
    """Remove these files, as far as they are there."""
    for one in staged:
        (folder / one.name).unlink(missing_ok=True)


def clear(folder: Path) -> None:
    """Remove what earlier attempts have left."""
    for path in folder.glob("*.staged"):
        path.unlink(missing_ok=True)


def as_part(staged: list[Staged]) -> list[list[object]]:
    """What `prepare` gives the record of the checkpoint."""
    return [list(msgspec.structs.astuple(one)) for one in staged]


def of_part(part: object) -> list[Staged]:
    """What a record says of one replica; nothing where it prepared nothing."""
    return msgspec.convert(part or [], list[Staged])
