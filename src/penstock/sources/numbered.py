"""Sources whose events have numbers 0, 1, 2, … and times at which they are due: dealt to the slots in turn."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from penstock.sources.base import Cursor, Polled, Reader, Slot, Source

TICK_S = 0.005  # shortest wait for the next event


class NumberedSource(Source):
    """Events by number, each due some seconds after the start; the cursor is how many of its events a slot has read."""

    total: int | None  # how many events there are in all; None: it never ends

    @abstractmethod
    def due(self, elapsed_s: float) -> int:
        """How many events are due by then."""

    @abstractmethod
    def due_times(self, numbers: range) -> Sequence[float]:
        """When each of these events is due; NaN: when it is read."""

    @abstractmethod
    def read(self, numbers: range) -> Sequence[Any]:
        """These events."""

    def open(self, slot: Slot, cursor: Cursor | None) -> Reader:
        """Read every n-th event, n being the number of slots."""
        return NumberedReader(self, slot, cursor or 0)


class NumberedReader(Reader):
    """One slot's events, as they become due."""

    def __init__(self, source: NumberedSource, slot: Slot, position: int) -> None:
        self._source = source
        self._slot = slot
        self._position = position  # how many of its events it has read

    @property
    def cursor(self) -> int:
        """How many events it has read."""
        return self._position

    @property
    def ended(self) -> bool:
        """Whether all events have been read."""
        return self._number(self._position) >= (math.inf if self._source.total is None else self._source.total)

    def poll(self, most: int, wait_s: float) -> list[Polled]:
        """The events that are due."""
        if self._due() <= self._position and wait_s > 0:
            time.sleep(self._until_next_s(wait_s))
        start, stop = self._position, min(self._due(), self._position + most)
        if stop <= start:
            return []
        numbers = range(self._number(start), self._number(stop), self._slot.slots)
        now, epoch_s = time.time(), self._slot.epoch_s
        self._position = stop
        return [
            Polled(str(number), now if math.isnan(due_s) else epoch_s + due_s, event)
            for number, due_s, event in zip(
                numbers, self._source.due_times(numbers), self._source.read(numbers), strict=True
            )
        ]

    def lag(self) -> int:
        """Events that are due and have not been read."""
        return max(0, self._due() - self._position)

    def _number(self, position: int) -> int:
        return position * self._slot.slots + self._slot.number

    def _due(self) -> int:
        """How many of this slot's events are due by now."""
        due = self._source.due(time.time() - self._slot.epoch_s)
        return max(0, (due - self._slot.number + self._slot.slots - 1) // self._slot.slots)

    def _until_next_s(self, longest_s: float) -> float:
        if self.ended:
            return longest_s
        number = self._number(self._position)
        (due_s,) = self._source.due_times(range(number, number + 1))
        return min(max(self._slot.epoch_s + due_s - time.time(), TICK_S), longest_s)
