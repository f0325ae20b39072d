"""Output that waits for its checkpoint to be committed: in files that survive the process, and that a record names."""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import IO

import msgspec

from penstock.common.storage import Place, storage_at
from penstock.errors import EngineError

STAGED = ".staged"
_LENGTH_BYTES = 4


class _NotSealed(Exception):  # noqa: N818 - what happened, and no error
    """A file is left off before it is whole."""


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
    >>> staging = Staging(folder.name, "0")
    >>> staging.add(1, 7, [Message("17.0", b"a"), Message("17.1", b"b")])
    >>> staging.seal()
    >>> [(one.checkpoint, one.attempt) for one in staging.up_to(7)]
    [(7, 1)]
    >>> [message.id for messages in read(folder.name, staging.up_to(7)[0]) for message in messages]
    ['17.0', '17.1']
    >>> staging.forget(7)
    >>> staging.up_to(7)
    []
    >>> folder.cleanup()
    """

    def __init__(self, place: Place, replica: str) -> None:
        self._storage = storage_at(place)
        self._replica = replica
        self._sealed: list[Staged] = []
        self._file: IO[bytes] | None = None
        self._name = ""
        self._crc = 0  # of what is in it
        self._begun: tuple[int, int] = (0, 0)  # attempt and checkpoint of the file that is open
        self._creating = ExitStack()

    def add(self, attempt: int, checkpoint: int, messages: list[Message]) -> None:
        """Append these to the file of the checkpoint."""
        if not messages:
            return
        if self._file is None:
            self._name = f"{checkpoint:09d}-{attempt:06d}-{self._replica}-{uuid.uuid4().hex[:8]}{STAGED}"
            self._file = self._creating.enter_context(self._storage.create(self._name))
            self._begun, self._crc = (attempt, checkpoint), 0
        frame = _encode(messages)
        data = len(frame).to_bytes(_LENGTH_BYTES) + frame
        self._crc = zlib.crc32(data, self._crc)
        self._file.write(data)

    def seal(self) -> None:
        """Have all that was added safe; what comes next goes to another file."""
        if self._file is None:
            return
        (attempt, checkpoint), size, self._file = self._begun, self._file.tell(), None
        try:
            self._creating.close()
        except FileNotFoundError as error:
            raise EngineError(f"staged file '{self._storage}/{self._name}': a later attempt has removed it") from error
        self._sealed.append(Staged(checkpoint, attempt, self._name, size, self._crc))

    def up_to(self, checkpoint: int) -> list[Staged]:
        """What is sealed up to this checkpoint and not removed yet, oldest first."""
        return [one for one in self._sealed if one.checkpoint <= checkpoint]

    def forget(self, checkpoint: int) -> None:
        """What is sealed up to this checkpoint is no longer ours; whoever has published it removes it."""
        self._sealed = [one for one in self._sealed if one.checkpoint > checkpoint]

    def close(self) -> None:
        """Let go of a file that is not sealed: nobody will ask for it."""
        if self._file is not None:
            self._file = None
            self._creating.__exit__(_NotSealed, _NotSealed(), None)


def read(place: Place, staged: Staged) -> Iterator[list[Message]]:
    """The messages of a file, as they were added; an EngineError, before the first, if it is not as it was sealed."""
    left_bytes, storage = staged.size_bytes, storage_at(place)
    try:
        with storage.open(staged.name) as file:
            _check(file, staged)
            while left_bytes > 0:
                length = int.from_bytes(file.read(_LENGTH_BYTES))
                frame = file.read(length)
                left_bytes -= _LENGTH_BYTES + len(frame)
                yield _decode(frame)
    except (OSError, ValueError) as error:
        raise EngineError(f"staged file '{storage}/{staged.name}': must be whole; {error}") from error


def _check(file: IO[bytes], staged: Staged) -> None:
    size = crc = 0
    while data := file.read(1 << 20):
        size, crc = size + len(data), zlib.crc32(data, crc)
    if (size, crc) != (staged.size_bytes, staged.crc):
        raise ValueError(f"it has {size} of {staged.size_bytes} bytes, or others")
    file.seek(0)


def remove(place: Place, staged: Iterable[Staged]) -> None:
    """Remove these files, as far as they are there."""
    for one in staged:
        storage_at(place).remove(one.name)


def clear(place: Place) -> None:
    """Remove what earlier attempts have left."""
    storage = storage_at(place)
    storage.tidy()
    for name in storage.names():
        if name.endswith(STAGED):
            storage.remove(name)


def as_part(staged: list[Staged]) -> list[list[object]]:
    """What `prepare` gives the record of the checkpoint."""
    return [list(msgspec.structs.astuple(one)) for one in staged]


def of_part(part: object) -> list[Staged]:
    """What a record says of one replica; nothing where it prepared nothing."""
    return msgspec.convert(part or [], list[Staged])
