"""The lines of a Spark event log: one file or a rolled folder, finished or growing, compressed as Spark does it."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from penstock.errors import InputError

GROWING = ".inprogress"
COMPACT = ".compact"
CHUNK_BYTES = 1 << 20
_ROLLED = re.compile(r"events_(\d+)_.*")
_LZ4_HEAD = struct.Struct("<8sBiii")  # magic, method and level, compressed, original, checksum
_LZ4_MAGIC, _LZ4_PLAIN = b"LZ4Block", 0x10
_SNAPPY_HEAD, _SNAPPY_MAGIC = 16, b"\x82SNAPPY\0"


def log_lines(path: Path) -> Iterator[bytes]:
    """The events, a line of JSON each; of a log that is being written, as far as it goes."""
    for file in log_files(path):
        yield from _lines(file)


def log_files(path: Path) -> list[Path]:
    """The files of a log in order: those of a folder that Spark rolls, or the one that it is.

    >>> log_files(Path("no/such/log"))
    Traceback (most recent call last):
    penstock.errors.InputError: event log 'no/such/log': no such file or folder
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InputError(f"event log '{path}': no such file or folder")
    rolled = {one: int(found[1]) for one in path.iterdir() if (found := _ROLLED.fullmatch(one.name))}
    rolled = {one: number for one, number in rolled.items() if not one.name.endswith(COMPACT + GROWING)}
    compact = [one for one in rolled if one.name.endswith(COMPACT)]
    last = max((rolled[one] for one in compact), default=-1)
    kept = [one for one, number in rolled.items() if number > last or (number == last and one in compact)]
    if not kept:
        raise InputError(f"event log '{path}': must be a file, or a folder with files events_1_…; has none")
    return sorted(kept, key=lambda one: rolled[one])


def codec_of(file: Path) -> str:
    """How a file is compressed, by its name; `plain` if it is not.

    >>> codec_of(Path("app-1.zstd.inprogress")), codec_of(Path("events_2_app-1.lz4.compact")), codec_of(Path("app-1"))
    ('zstd', 'lz4', 'plain')
    """
    named = file.name.removesuffix(GROWING).removesuffix(COMPACT)
    return next((codec for codec in CODECS if named.endswith(f".{codec}")), "plain")


def _lines(file: Path) -> Iterator[bytes]:
    """Whole lines only: the last of a growing file may be half written."""
    rest = b""
    with file.open("rb") as stream:
        for chunk in _whole(file, CODECS[codec_of(file)](stream)):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from filter(None, lines)
    if rest.endswith(b"}"):
        yield rest


def _whole(file: Path, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks until the end, or until where a growing file breaks off."""
    try:
        yield from chunks
    except (OSError, pa.ArrowException, struct.error, IndexError, ValueError) as error:
        if not _is_written_to(file):
            raise InputError(f"event log '{file}': cannot be decompressed; {error}") from error


def _is_written_to(file: Path) -> bool:
    """Whether Spark has not closed it: a log that has not ended, or the last file of one that is rolled."""
    if file.name.endswith(GROWING):
        return True
    rolled = _ROLLED.fullmatch(file.name) and any(file.parent.glob(f"appstatus_*{GROWING}"))
    return bool(rolled) and file == log_files(file.parent)[-1]


def _plain(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


def _zstd(stream: BinaryIO) -> Iterator[bytes]:
    """Frames one after another, the last of which may be open.

    What was unpacked before an open frame breaks off is in the buffer: no event has a byte of 0, so all before these.
    """
    with pa.CompressedInputStream(pa.PythonFile(stream, "r"), "zstd") as plain:
        while True:
            buffer = bytearray(CHUNK_BYTES)
            try:
                count = plain.readinto(buffer)
            except (OSError, pa.ArrowException):
                yield bytes(buffer.rstrip(b"\0"))
                raise
            if not count:
                return
            yield bytes(buffer[:count])


def _lz4(stream: BinaryIO) -> Iterator[bytes]:
    """Blocks of lz4-java: a head, and raw LZ4."""
    while len(head := stream.read(_LZ4_HEAD.size)) == _LZ4_HEAD.size:
        magic, token, packed, size, _ = _LZ4_HEAD.unpack(head)
        if magic != _LZ4_MAGIC:
            raise ValueError("no block of LZ4 begins where one should")
        data = _exactly(stream, packed)
        if size:
            yield data if token & 0xF0 == _LZ4_PLAIN else _unpacked(data, size, "lz4_raw")


def _snappy(stream: BinaryIO) -> Iterator[bytes]:
    """Chunks of snappy-java; heads may come again where streams were joined."""
    while len(head := stream.read(4)) == 4:
        if head == _SNAPPY_MAGIC[:4]:
            _exactly(stream, _SNAPPY_HEAD - 4)
            continue
        data = _exactly(stream, int.from_bytes(head, "big"))
        yield _unpacked(data, _length(data), "snappy")


def _lzf(stream: BinaryIO) -> Iterator[bytes]:
    """Chunks of compress-lzf: ZV, a kind, and lengths of two bytes."""
    while len(head := stream.read(5)) == 5:
        if head[:2] != b"ZV":
            raise ValueError("no chunk of LZF begins where one should")
        length = int.from_bytes(head[3:5], "big")
        if head[2] == 0:
            yield _exactly(stream, length)
        else:
            size = int.from_bytes(_exactly(stream, 2), "big")
            yield unpacked_lzf(_exactly(stream, length), size)


CODECS: dict[str, Callable[[BinaryIO], Iterator[bytes]]] = {
    "plain": _plain,
    "zstd": _zstd,
    "lz4": _lz4,
    "snappy": _snappy,
    "lzf": _lzf,
}


def unpacked_lzf(data: bytes, size: int) -> bytes:
    """What LZF packed: runs of plain bytes, and copies of what came before.

    >>> unpacked_lzf(bytes([2]) + b"abc" + bytes([0x20, 2]) + bytes([0]) + b"!", 7)
    b'abcabc!'
    """
    found, place = bytearray(), 0
    while place < len(data):
        control, place = data[place], place + 1
        if control < 32:
            found += data[place : place + control + 1]
            place += control + 1
            continue
        length = control >> 5
        if length == 7:
            length, place = length + data[place], place + 1
        start, place = len(found) - ((control & 31) << 8) - data[place] - 1, place + 1
        for at in range(start, start + length + 2):  # what is copied may overlap with what it makes
            found.append(found[at])
    if len(found) != size:
        raise ValueError(f"a chunk of LZF must have {size} bytes; got {len(found)}")
    return bytes(found)


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise ValueError("it ends within a block")
    return data


def _unpacked(data: bytes, size: int, codec: str) -> bytes:
    found: bytes = pa.decompress(data, size, codec, asbytes=True)
    return found


def _length(data: bytes) -> int:
    """Snappy's own: seven bits a byte, the lowest first."""
    found = shift = 0
    for byte in data:
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found
        shift += 7
    raise ValueError("a chunk of Snappy has no length")
