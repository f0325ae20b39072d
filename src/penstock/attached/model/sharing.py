"""Which batches of a session's queries ran at the same time, and so shared its slots."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence

from penstock.attached.model.progress import Batch

REMEMBERED = 200  # batches of each query


def sharing(batch: Batch, beside: Iterable[tuple[float, float]]) -> float:
    """How many batches ran while this one did, on average, itself among them: so many shared its slots.

    >>> batch = Batch(number=1, start_s=10.0, planned_s=10.0, seconds=4.0, rows=9)
    >>> sharing(batch, [(8.0, 11.0), (13.0, 20.0), (30.0, 31.0)])
    1.5
    """
    if not batch.seconds > 0:
        return 1.0
    overlaps_s = (min(batch.end_s, end_s) - max(batch.start_s, start_s) for start_s, end_s in beside)
    return 1 + math.fsum(max(0.0, one_s) for one_s in overlaps_s) / batch.seconds


class Sharing:
    """Remembers when batches ran, by query.

    >>> shared, batch = Sharing(), Batch(number=1, start_s=10.0, planned_s=10.0, seconds=4.0, rows=9)
    >>> shared.ran("clicks", [batch])
    >>> shared.runs("counts", since_s=13.0)
    >>> shared.among("clicks", batch), shared.among("counts", batch)
    (1.25, 2.0)
    """

    def __init__(self) -> None:
        self._ran: defaultdict[str, deque[tuple[float, float]]] = defaultdict(lambda: deque(maxlen=REMEMBERED))
        self._since_s: dict[str, float] = {}

    def ran(self, query: str, batches: Sequence[Batch]) -> None:
        """These have ended; those without rows took nothing."""
        self._ran[query].extend((one.start_s, one.end_s) for one in batches if one.rows > 0)

    def runs(self, query: str, since_s: float | None) -> None:
        """One runs since then, or none does."""
        self._since_s.pop(query, None)
        if since_s is not None:
            self._since_s[query] = since_s

    def among(self, query: str, batch: Batch) -> float:
        """How many shared the slots with a batch of this query, itself among them."""
        ended = [span for name, spans in self._ran.items() if name != query for span in spans]
        running = [(since_s, math.inf) for name, since_s in self._since_s.items() if name != query]
        return sharing(batch, [*ended, *running])

    def forget(self, query: str) -> None:
        """It is watched no longer."""
        self._ran.pop(query, None)
        self._since_s.pop(query, None)
