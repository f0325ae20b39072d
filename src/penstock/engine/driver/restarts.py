"""Whether a query that died is started again, and after which pause: decided from causes, times and progress alone."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass

from penstock.engine.driver.causes import Cause, Kind

FIRST_PAUSE_S = 0.2  # of the second restart in a row; the first one does not wait
LONGEST_PAUSE_S = 10.0
KEPT_EVENTS = 1000  # that have ended a query, and are known again


@dataclass(frozen=True, slots=True)
class Death:
    """A query that died: of what, how long after its start, and how many checkpoints there have been by then."""

    cause: Cause
    lived_s: float
    checkpoints: int


@dataclass(frozen=True, slots=True)
class Again:
    """It is started again after so long; so many restarts in a row there have been then without progress."""

    pause_s: float
    in_a_row: int


@dataclass(frozen=True, slots=True)
class Over:
    """It is not started again, and why."""

    why: str


class Restarts:
    """What becomes of one query after each of its deaths.

    A checkpoint since the last death, or a life of `window_s`, is progress. What the environment did is tried again for
    ever. An event that fails again in the same way ends it, and so do more than `retries` other deaths in a row without
    progress. Pauses double from death to death and begin anew with progress; each is drawn from its upper half, so that
    many runs that wait for the same thing do not come back at the same moment.

    >>> restarts = Restarts(retries=1, window_s=600, draw=random.Random(7))
    >>> death = Death(Cause(Kind.PROGRAM, "operator 'parse': open failed: KeyError: 'x'"), lived_s=1.0, checkpoints=3)
    >>> restarts.decide(death)
    Again(pause_s=0.0, in_a_row=1)
    >>> restarts.decide(death).why
    "the query died 2 times in a row without progress; the last time: operator 'parse': open failed: KeyError: 'x'"
    """

    def __init__(self, retries: int, window_s: float, draw: random.Random) -> None:
        self._retries = retries
        self._window_s = window_s
        self._draw = draw
        self._checkpoints: int | None = None  # as of the last death
        self._deaths = 0  # since there was progress
        self._own = 0  # of these, those that are not the environment's
        self._failed: deque[str] = deque(maxlen=KEPT_EVENTS)  # events that have ended the query

    def decide(self, death: Death) -> Again | Over:
        """What becomes of it now."""
        if self._progressed(death):
            self._deaths = self._own = 0
        self._deaths += 1
        if death.cause.kind is Kind.UNSEEN:
            return Over(death.cause.text)
        if not death.cause.outside:
            self._own += 1
            if (event := death.cause.event) in self._failed:
                return Over(f"an event failed in the same way each time: {death.cause}")
            if event is not None:
                self._failed.append(event)
            if self._own > self._retries:
                return Over(f"{_times(self._own)}: {death.cause}")
        return Again(self._pause_s(), self._deaths)

    def _progressed(self, death: Death) -> bool:
        before, self._checkpoints = self._checkpoints, death.checkpoints
        return (before is not None and death.checkpoints > before) or death.lived_s >= self._window_s

    def _pause_s(self) -> float:
        if self._deaths == 1:
            return 0.0
        longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(self._deaths - 2, 30))
        return longest * self._draw.uniform(0.5, 1.0)


def _times(deaths: int) -> str:
    if deaths == 1:
        return "the query died"
    return f"the query died {deaths} times in a row without progress; the last time"
