"""Fields: events with the same key go to the same replica."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from penstock.errors import InputError
from penstock.grouping.base import Receivers

_encode = msgspec.msgpack.Encoder().encode


def stable_hash(key: object) -> int:
    """A 32-bit hash that is the same in every process, unlike Python's own.

    >>> stable_hash("storm"), stable_hash(7)
    (3485271718, 1281784366)
    """
    return zlib.crc32(_encode(key))


class Fields:
    """replica = active[hash(key) mod number of active replicas].

    The same key goes to the same replica as long as the set of active replicas is unchanged.
    """

    def __init__(self, key: str | Callable[[Any], object]) -> None:
        self._key = key
        self._active: tuple[int, ...] = (0,)

    def update(self, receivers: Receivers) -> None:
        """Spread the keys over the new set of replicas."""
        self._active = tuple(sorted(receivers.active))

    def assign(self, events: Sequence[Any]) -> list[int]:
        """The replica that owns each event's key."""
        active = self._active
        return [active[stable_hash(key_of(self._key, event)) % len(active)] for event in events]


def key_of(key: str | Callable[[Any], object], event: Any, grouping: str = "fields") -> object:
    """An event's key: one of its fields, or what a function makes of it.

    >>> key_of("word", {"word": "dam"}), key_of(len, "dam")
    ('dam', 3)
    """
    if callable(key):
        return key(event)
    try:
        return event[key] if isinstance(event, dict) else getattr(event, key)
    except (KeyError, AttributeError):
        raise InputError(f"grouping {grouping!r}: the event has no field {key!r}: {event!r}") from None
