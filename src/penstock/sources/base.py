"""A source: where events enter a run. Each slot of the run reads a part of it, from a cursor on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Cursor = Any  # what msgspec takes as JSON; only the source knows what it means


class Polled(NamedTuple):
    """One event: an id that it always has, when it was born (seconds since 1970) and what it is."""

    id: str
    born_s: float
    event: Any


@dataclass(frozen=True, slots=True)
class Undecoded:
    """In the place of an event that could not be made of its bytes; what is done with it, `on_error` says."""

    raw: bytes
    error: str


@dataclass(frozen=True, slots=True)
class Slot:
    """Which part of a source is read, and when the run's sources began."""

    run: str
    source: str
    number: int  # from 0 on
    slots: int  # in all
    epoch_s: float


class Reader(ABC):
    """One slot's part of a source, opened. Used by one thread."""

    @abstractmethod
    def poll(self, most: int, wait_s: float) -> Sequence[Polled]:
        """Up to so many events that are there; waits at most so long for the first. Plain tuples will do."""

    @property
    @abstractmethod
    def cursor(self) -> Cursor:
        """Behind all that was polled: a reader opened there polls what comes next."""

    @property
    def ended(self) -> bool:
        """Whether no event will ever come again."""
        return False

    @property
    def caught_up(self) -> bool:
        """Whether all that is there for now has been polled, for certain; False where that is not known."""
        return False

    def lag(self) -> int | None:
        """How many events wait outside, behind the cursor; None where that is not known. Must not wait."""
        return None

    def committed(self, cursor: Cursor) -> None:  # noqa: B027 - most sources need not know
        """A checkpoint with this cursor has been committed: nothing before it is read again."""

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Let go of what was opened."""


class Source(ABC):
    """Declared where the run is, shipped to the slots, opened there."""

    def check(self) -> None:  # noqa: B027 - most can tell when they are made
        """Raise an InputError if it cannot be read; called once, before anything starts."""

    @abstractmethod
    def open(self, slot: Slot, cursor: Cursor | None) -> Reader:
        """Open a slot's part at a cursor, or at its beginning. All slots together read each event once.

        What was read behind the cursor of the last committed checkpoint may be asked for again.
        """
