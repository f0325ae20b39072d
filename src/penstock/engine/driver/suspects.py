"""Events that end the process that works on them: found by what processes were about to do when they were lost."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from penstock.engine.driver.causes import Cause
from penstock.engine.protocol.messages import AtWork

CAREFUL_AFTER = 2  # deaths in a row without a checkpoint


class Suspects:
    """Told of processes that are lost and of deaths of the query; says what the next attempt has to look out for.

    An operator that crashes leaves no word, and the next attempt comes to the same event. So after two deaths of the
    environment's without a checkpoint between them attempts are *careful*: replicas say what they are about to work on.
    Of the processes that are lost then the first was that which crashed; the others Spark ends after it. An event at
    which that happens twice in a row is deadly, and counts as one that fails. Who was at none was ended from outside.

    >>> from penstock.engine.driver.causes import Kind
    >>> suspects = Suspects()
    >>> for generation in (2, 3, 4, 5):
    ...     suspects.lost(AtWork(generation - 1, "parse", 0, "41"))  # the first two would not have said it
    ...     suspects.died(Cause(Kind.ENVIRONMENT, "a worker exited"), 7, generation)
    >>> suspects.careful, suspects.deadly
    (True, {'parse': frozenset({'41'})})
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deaths, self._checkpoints = 0, 0
        self._generation = 0  # of the present attempt
        self._lost: AtWork | None = None  # the first in the present attempt
        self._suspect: tuple[str, str] | None = None  # operator and event, of the last careful attempt
        self.deadly: Mapping[str, frozenset[str]] = {}  # by operator; replaced as a whole

    @property
    def careful(self) -> bool:
        """Whether replicas are to say what they are about to work on."""
        return self._deaths >= CAREFUL_AFTER

    def lost(self, last: AtWork) -> None:
        """A process is gone that was last at work on this event, or on none."""
        with self._lock:
            if self._lost is None and last.generation >= self._generation:
                self._lost = last

    def died(self, cause: Cause, checkpoints: int, generation: int) -> None:
        """The query has died, after so many checkpoints of the run; the next attempt has that generation."""
        with self._lock:
            lost, self._lost, self._generation = self._lost, None, generation
            if checkpoints > self._checkpoints:
                self._deaths, self._suspect, self._checkpoints = 0, None, checkpoints
            if not cause.outside:
                return  # it has said why
            careful, self._deaths = self.careful, self._deaths + 1
            suspect = None
            if careful and lost is not None and lost.event_id is not None:
                suspect = name, event_id = lost.operator, lost.event_id
            if suspect is not None and suspect == self._suspect:
                self.deadly = {**self.deadly, name: self.deadly.get(name, frozenset()) | {event_id}}
            self._suspect = suspect
