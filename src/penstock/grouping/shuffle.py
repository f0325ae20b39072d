"""Shuffle: round robin over the active replicas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.grouping.base import Receivers, Sender


class Shuffle:
    """Events go to the active replicas in turn; senders start at different replicas so that they do not herd.

    >>> shuffle = Shuffle(Sender(number=1, of=2))
    >>> shuffle.update(Receivers(active=(0, 2, 5)))
    >>> shuffle.assign(["a", "b", "c", "d"])
    [2, 5, 0, 2]
    """

    def __init__(self, sender: Sender) -> None:
        self._turn = sender.number
        self._active: tuple[int, ...] = (0,)

    def update(self, receivers: Receivers) -> None:
        """Go on with the new set of replicas."""
        self._active = receivers.active

    def assign(self, events: Sequence[Any]) -> list[int]:
        """The next replicas of the round."""
        active, count = self._active, len(events)
        start = self._turn % len(active)
        self._turn += count
        rounds = -(-(start + count) // len(active))
        return list((active * rounds)[start : start + count])
