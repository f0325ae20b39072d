"""Values as files: JSON for people, the version of its format, and a checksum behind it."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from penstock.common.files import sealed, unsealed

Value = TypeVar("Value", bound=msgspec.Struct)


class OtherVersion(Exception):  # noqa: N818 - whoever reads says what is wrong with it
    """A file is of another version of its format."""

    def __init__(self, version: int) -> None:
        self.version = version


class _Versioned(msgspec.Struct):
    version: int = 1  # of Penstock 0.1, which did not always write it


def to_json(value: msgspec.Struct) -> bytes:
    """What is in the file of a value."""
    return sealed(msgspec.json.format(msgspec.json.encode(value)))


def from_json(data: bytes, kind: type[Value], version: int) -> Value:
    """The value of a file; raises OtherVersion, or a ValueError if it is no longer as it was written.

    >>> class Point(msgspec.Struct):
    ...     x: int
    ...     version: int = 2
    >>> from_json(to_json(Point(7)), Point, version=2)
    Point(x=7, version=2)
    """
    text = unsealed(data)
    found = msgspec.json.decode(text, type=_Versioned).version
    if found != version:
        raise OtherVersion(found)
    return msgspec.json.decode(text, type=kind)
