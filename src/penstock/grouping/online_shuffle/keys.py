"""The key of an event, as the 32-bit hash that sketches are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.grouping.fields import key_of, stable_hash

Key = str | Callable[[Any], object] | None


class KeyHashes:
    """Hashes of a field of each event, of what a function makes of it, or (key None) of the whole event.

    >>> KeyHashes("word")([{"word": "storm"}, {"word": "rain"}]).tolist() == [stable_hash("storm"), stable_hash("rain")]
    True
    """

    def __init__(self, key: Key = None) -> None:
        self._key = key

    def __call__(self, events: Sequence[Any]) -> NDArray[np.uint32]:
        """The hash of each event's key."""
        return np.array([self.of(event) for event in events], np.uint32)

    def of(self, event: Any) -> int:
        """The hash of one event's key."""
        value = self._value(event)
        try:
            return stable_hash(value)
        except TypeError:
            raise InputError(
                f"grouping 'online_shuffle': a key must be something that msgpack can carry; got {value!r}"
            ) from None

    def _value(self, event: Any) -> object:
        return event if self._key is None else key_of(self._key, event, "online_shuffle")
