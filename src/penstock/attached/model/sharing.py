"""Which batches of a session's queries ran at the same time, and so shared its slots."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

from penstock.attached.model.progress import Batch

REMEMBERED = 200  # batches of each query


def sharing(batch: Batch, beside: Iterable[Batch]) -> float:
    """How many times its own work all batches together did while this one ran: its part of the slots is one of so many.

    In what order Spark served them does not matter: what another took, this one waited for or went without. Where it is
    not known what tasks took, batches are taken to work alike.

    >>> def ran(start_s: float, seconds: float, core_s: float | None = None) -> Batch:
    ...     return Batch(number=1, start_s=start_s, planned_s=start_s, seconds=seconds, rows=9, core_s=core_s)
    >>> sharing(ran(10.0, 4.0), [ran(8.0, 3.0), ran(13.0, 7.0), ran(30.0, 1.0)])
    1.5
    >>> sharing(ran(10.0, 4.0, core_s=2.0), [ran(10.0, 2.0, core_s=6.0)])
    4.0
    """
    if not batch.seconds > 0:
        return 1.0
    return 1 + math.fsum(_beside(batch, other) for other in beside)


def _beside(batch: Batch, other: Batch) -> float:
    """The work of another in the time of this one, over this one's."""
    overlap_s = min(batch.end_s, other.end_s) - max(batch.start_s, other.start_s)
    if overlap_s <= 0:
        return 0.0
    if not batch.core_s or not other.core_s:
        return overlap_s / batch.seconds
    return other.core_s * overlap_s / other.seconds / batch.core_s


class Sharing:
    """Remembers the batches that ran, by query.

    >>> shared, batch = Sharing(), Batch(number=1, start_s=10.0, planned_s=10.0, seconds=4.0, rows=9)
    >>> shared.ran("clicks", [batch])
    >>> shared.ran("counts", [batch])
    >>> shared.runs("counts", since_s=13.0)
    >>> shared.among("clicks", batch), shared.among("counts", batch)
    (2.25, 2.0)
    """

    def __init__(self) -> None:
        self._ran: defaultdict[str, deque[Batch]] = defaultdict(lambda: deque(maxlen=REMEMBERED))
        self._since_s: dict[str, float] = {}

    def ran(self, query: str, batches: Sequence[Batch]) -> None:
        """These have ended; those without rows took nothing."""
        self._ran[query].extend(one for one in batches if one.rows > 0)

    def runs(self, query: str, since_s: float | None) -> None:
        """One runs since then, or none does."""
        self._since_s.pop(query, None)
        if since_s is not None:
            self._since_s[query] = since_s

    def among(self, query: str, batch: Batch) -> float:
        """Of how many parts of the slots a batch of this query had one; see `sharing`."""
        ended = [one for name, batches in self._ran.items() if name != query for one in batches]
        running = [self._until(batch.end_s, name, since_s) for name, since_s in self._since_s.items() if name != query]
        return sharing(batch, [*ended, *filter(None, running)])

    def _until(self, end_s: float, query: str, since_s: float) -> Batch | None:
        """The batch that runs, up to a time, as if it worked like the one before."""
        if since_s >= end_s or not self._ran[query]:
            return None
        last, seconds = self._ran[query][-1], end_s - since_s
        core_s = last.core_s * seconds / last.seconds if last.core_s and last.seconds > 0 else None
        return replace(last, start_s=since_s, seconds=seconds, core_s=core_s)

    def forget(self, query: str) -> None:
        """It is watched no longer."""
        self._ran.pop(query, None)
        self._since_s.pop(query, None)
