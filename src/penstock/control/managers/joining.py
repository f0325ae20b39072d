"""How long workers take to join, as they are seen to."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from statistics import median

from penstock.infra.worker import Worker, WorkerState

USUAL_S = 30.0  # until one has been seen to join
_LAST = 5


class JoiningTime:
    """What the last five workers took from when they were asked for until they could be used.

    >>> joining = JoiningTime()
    >>> new = Worker(name="w1", region="here", capacity=4, state=WorkerState.STARTING)
    >>> joining.look(10.0, [new]); joining.longest_s
    30.0
    >>> joining.look(22.0, [new.turned(WorkerState.AVAILABLE)]); joining.longest_s
    12.0
    """

    def __init__(self, usual_s: float = USUAL_S) -> None:
        self._since_s: dict[str, float] = {}
        self._took_s: deque[float] = deque(maxlen=_LAST)
        self._usual_s = usual_s

    def look(self, now_s: float, workers: Iterable[Worker]) -> None:
        """Take in the workers as they are now."""
        since_s = {}
        for one in workers:
            if one.state in (WorkerState.STARTING, WorkerState.JOINING):
                since_s[one.name] = self._since_s.get(one.name, now_s)
            elif one.state is WorkerState.AVAILABLE and one.name in self._since_s:
                self._took_s.append(max(0.0, now_s - self._since_s[one.name]))
        self._since_s = since_s

    @property
    def longest_s(self) -> float:
        """The longest of these."""
        return max(self._took_s, default=self._usual_s)

    @property
    def median_s(self) -> float:
        """The middle one of these."""
        return median(self._took_s) if self._took_s else self._usual_s
