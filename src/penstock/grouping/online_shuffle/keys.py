"""The key of an event, as the 32-bit hash that sketches are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.grouping.fields import key_of, stable_hash

Key = str | Callable[[Any], object] | None
MOST_KNOWN = 1 << 16


class KeyHashes:
    """Hashes of a field of each event, of what a function makes of it, or (key None) of the whole event.

    >>> KeyHashes("word")([{"word": "storm"}, {"word": "rain"}]).tolist() == [stable_hash("storm"), stable_hash("rain")]
    True
    """

    def __init__(self, key: Key = None) -> None:
        self._key = key
        self._known: dict[type, _Known] = {int: _Known(), str: _Known()}  # one for each type, as 1 == True

    def __call__(self, events: Sequence[Any]) -> NDArray[np.uint32]:
        """The hash of each event's key."""
        values = self._values(events)
        kinds = set(map(type, values))
        known = self._known.get(kinds.pop()) if len(kinds) == 1 else None
        if known is None:
            return np.array([_hash(value) for value in values], np.uint32)
        return np.fromiter(map(known.__getitem__, values), np.int64, len(values)).astype(np.uint32)

    def of(self, event: Any) -> int:
        """The hash of one event's key."""
        value = self._value(event)
        known = self._known.get(type(value))
        return _hash(value) if known is None else known[value]

    def _values(self, events: Sequence[Any]) -> list[object]:
        if isinstance(self._key, str) and events and "." not in self._key:  # to attrgetter a dot means something
            get = itemgetter(self._key) if type(events[0]) is dict else attrgetter(self._key)
            try:
                return list(map(get, events))
            except (AttributeError, KeyError, TypeError):
                pass  # not all are of one kind, or one has no such field: look at them one by one
        return [self._value(event) for event in events]

    def _value(self, event: Any) -> object:
        return event if self._key is None else key_of(self._key, event, "online_shuffle")


class _Known(dict[Any, int]):
    """The hashes of the keys that were seen lately."""

    def __missing__(self, value: object) -> int:
        if len(self) >= MOST_KNOWN:
            self.clear()
        found = self[value] = _hash(value)
        return found


def _hash(value: object) -> int:
    try:
        return stable_hash(value)
    except (TypeError, OverflowError):
        raise InputError(
            f"grouping 'online_shuffle': a key must be something that msgpack can carry; got {value!r}"
        ) from None
