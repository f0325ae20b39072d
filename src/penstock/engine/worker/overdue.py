"""A task ends soon after its input, whatever it is stuck in."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

OVERDUE_S = 30.0


class Overdue:
    """The input of a task in real-time mode; if the task is not over soon after it, its process ends.

    Spark ends what is stuck through its Python daemon. If that is gone, too, nobody would: a client that waited for a
    broker by a clock that had jumped back held its process for an hour.
    """

    def __init__(self, batches: Iterable[Any], end: Callable[[], object] | None = None) -> None:
        self._batches = batches
        self._timer = threading.Timer(OVERDUE_S, end or _end_process)
        self._timer.daemon = True

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self._batches
        finally:
            self._timer.start()

    def over(self) -> None:
        """The task is: its process may be given another."""
        self._timer.cancel()


def _end_process() -> None:
    os._exit(1)  # in whatever state: it is stuck
