"""What the managers said to each other: who proposed, granted or refused what, and why."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Entry:
    """One word of one manager.

    >>> print(Entry(60.0, "infrastructure", "refused", "worker of here", "12 workers are the most"))
    60 s: infrastructure refused worker of here: 12 workers are the most
    """

    time_s: float
    manager: str
    word: str  # proposed, granted, refused, done, cancelled, lost
    subject: str
    reason: str

    def __str__(self) -> str:
        return f"{self.time_s:g} s: {self.said}"

    @property
    def said(self) -> str:
        """Without the time."""
        return f"{self.manager} {self.word} {self.subject}: {self.reason}"


class Diary:
    """The last entries, and how many there were of each kind; every entry also goes to the log."""

    def __init__(self, most: int = 1000) -> None:
        self._entries: deque[Entry] = deque(maxlen=most)
        self._counts: dict[tuple[str, str], int] = {}
        self.written = 0

    def write(self, entry: Entry) -> None:
        """Add an entry."""
        self._entries.append(entry)
        self.written += 1
        key = entry.manager, entry.word
        self._counts[key] = self._counts.get(key, 0) + 1
        log.info("%s", entry.said)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The last entries, the oldest first."""
        return tuple(self._entries)

    def since(self, written: int) -> tuple[tuple[int, Entry], ...]:
        """What came after so many had been written, as far as it is kept: each with its place, counted from 0.

        >>> diary = Diary(most=2)
        >>> for word in ("proposed", "granted", "done"):
        ...     diary.write(Entry(60.0, "infrastructure", word, "start here-1", "1 slot is free, 2 should be"))
        >>> [(place, entry.word) for place, entry in diary.since(0)], [place for place, _ in diary.since(2)]
        ([(1, 'granted'), (2, 'done')], [2])
        """
        first = self.written - len(self._entries)
        return tuple((place, entry) for place, entry in enumerate(self._entries, first) if place >= written)

    def count(self, manager: str, word: str) -> int:
        """How often this manager said this, since the beginning."""
        return self._counts.get((manager, word), 0)
