"""A source: events by number, and when each is due."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Source(Protocol):
    """Events 0, 1, 2, …: what they are and when they are due, in seconds from the start.

    A source is read by number, so that an event that has to be sent again is the same event.
    """

    @property
    def total(self) -> int | None:
        """How many events there are in all; None when it never ends."""

    def due(self, elapsed_s: float) -> int:
        """How many events are due by then."""

    def due_times(self, numbers: range) -> Sequence[float]:
        """When each of these events is due."""

    def read(self, numbers: range) -> Sequence[Any]:
        """These events."""
