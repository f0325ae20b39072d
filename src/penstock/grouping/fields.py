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
        return [active[stable_hash(self._key_of(event)) % len(active)] for event in events]

    def _key_of(self, event: Any) -> object:
        if callable(self._key):
            return self._key(event)
        try:
            return event[self._key] if isinstance(event, dict) else getattr(event, self._key)
        except (KeyError, AttributeError):
            raise InputError(f"grouping 'fields': the event has no field {self._key!r}: {event!r}") from None
