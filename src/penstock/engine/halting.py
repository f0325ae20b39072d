"""Sources that stand still: because the run is to end, or for as long as the next shift takes over."""

from __future__ import annotations

import threading

from penstock.engine.messages import Halted, Position
from penstock.engine.numbers import Slot
from penstock.engine.routing import RoutingTable
from penstock.engine.shifts import Shift


class Halting:
    """Who told the sources to stop, and where each slot did. What the user has stopped no pause lets go on."""

    def __init__(self, routing: RoutingTable) -> None:
        self._routing = routing
        self._lock = threading.Lock()
        self._since = 0  # the version of the routing that told the sources to stop
        self._for_good = False  # the user has stopped them

    def stop(self) -> None:
        """No source sends any more, whichever shift takes over."""
        with self._lock:
            self._for_good = True
            if not self._routing.current.stopping:
                self._halt()

    def pause(self) -> None:
        """No source sends until `resume` or `hand_over`."""
        with self._lock:
            if not self._for_good:
                self._halt()

    def resume(self, shift: Shift) -> None:
        """Let the sources of a shift go on, unless they are to stop anyway."""
        with self._lock:
            if not self._for_good:
                self._since = self._routing.current.version + 1
                shift.halted.clear()
                self._routing.change(stopping=False)

    def hand_over(self, following: Shift) -> None:
        """Let the sources of the next shift go on, unless they are to stop anyway."""
        with self._lock:
            self._routing.change(shift=following.number, stopping=self._for_good)

    def halted(self, shift: Shift, said: Halted) -> Position:
        """A slot says which event is the first that it has not sent."""
        slot: Slot = (said.source, said.slot)
        with self._lock:
            if said.version >= self._since and not shift.left:
                shift.halted[slot] = said.position
            return Position(said.batch, said.position)

    def _halt(self) -> None:
        self._since = self._routing.current.version + 1
        self._routing.change(stopping=True)
