"""Key groups: a key belongs to a group, and events go to the replica that owns it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.errors import InputError
from penstock.grouping.base import Receivers
from penstock.grouping.fields import key_of, stable_hash


class KeyGroups:
    """replica = owners[hash(key) mod number of groups], for operators that keep state.

    Unlike with `fields`, a change of replicas moves no more groups than it must.

    >>> grouping = KeyGroups("word")
    >>> grouping.update(Receivers(active=(0, 2), owners=(0, 2, 5)))
    >>> grouping.assign([{"word": "storm"}, {"word": "dam"}])
    [2, 0]
    """

    def __init__(self, key: str | Callable[[Any], object]) -> None:
        self._key = key
        self._owners: tuple[int, ...] = (0,)

    def update(self, receivers: Receivers) -> None:
        """Follow the new owners."""
        self._owners = receivers.owners

    def hashes(self, events: Sequence[Any]) -> list[int]:
        """The hash of each event's key."""
        return [stable_hash(self._key_of(event)) for event in events]

    def assign(self, events: Sequence[Any]) -> list[int]:
        """The replica that owns each event's group."""
        return self.assign_hashes(self.hashes(events))

    def assign_hashes(self, hashes: Sequence[int]) -> list[int]:
        """The replica for each hash."""
        owners = self._owners
        groups = len(owners)
        return [owners[one % groups] for one in hashes]

    def _key_of(self, event: Any) -> object:
        key = key_of(self._key, event, "key_groups")
        if key is None:
            raise InputError(f"grouping 'key_groups': the event's key is None: {event!r}")
        return key
