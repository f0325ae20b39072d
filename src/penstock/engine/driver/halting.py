"""Sources that stand still: because the run is to end, or for as long as the next shift takes over."""

from __future__ import annotations

import threading

from penstock.engine.driver.ledger import Ledger
from penstock.engine.driver.positions import Positions
from penstock.engine.driver.routing import RoutingTable
from penstock.engine.driver.shifts import Shift
from penstock.engine.protocol.messages import Halted, Position, StartQuery
from penstock.engine.protocol.numbers import Slot


class Halting:
    """Who told the sources to stop, and where each slot did. What the user has stopped no pause lets go on.

    A slot whose query dies begins at the start of its batch. It then sends again what it had sent, also while sources
    stand still: up to where it halted; or, if the user has stopped it before it could say so or before it had caught
    up, as far as it was heard to have come.
    """

    def __init__(self, routing: RoutingTable, ledger: Ledger, positions: Positions) -> None:
        self._routing = routing
        self._ledger = ledger
        self._positions = positions
        self._lock = threading.Lock()
        self._since = 0  # the version of the routing that told the sources to stop
        self.for_good = False  # the user has stopped them

    def stop(self) -> None:
        """No source sends any more, whichever shift takes over."""
        with self._lock:
            if not self.for_good:
                self.for_good = True
                self._halt()  # also in a pause: a slot that has not caught up is told to

    def pause(self) -> None:
        """No source sends until `resume` or `hand_over`."""
        with self._lock:
            if not self.for_good:
                self._halt()

    def leave(self, shift: Shift) -> None:
        """Another takes over from where its slots have halted; what they say from here on changes nothing."""
        with self._lock:
            shift.left = True

    def resume(self, shift: Shift) -> None:
        """Let the sources of a shift go on after all, unless they are to stop anyway."""
        with self._lock:
            shift.left = False
            if not self.for_good:
                self._since = self._routing.current.version + 1
                shift.halted.clear()
                self._routing.change(stopping=False)

    def hand_over(self, last: Shift, following: Shift) -> None:
        """Let the sources of the next shift go on, unless they are to stop anyway."""
        with self._lock:
            following.owed = dict(last.owed)
            self._routing.change(shift=following.number, stopping=self.for_good)

    def start(self, shift: Shift, asked: StartQuery) -> Position:
        """A slot asks where its batch starts."""
        slot = (asked.source, asked.slot)
        with self._lock:
            position = self._positions.start(asked.batch, slot)
            if shift.begun.get(slot, asked.generation) != asked.generation:
                batch, sent = self._ledger.furthest(shift.number, slot)
                shift.owed[slot] = max(shift.owed.get(slot, 0), self._positions.start(batch, slot) + sent)
            shift.begun[slot] = asked.generation
            return Position(asked.batch, position, self._until(shift, slot))

    def halted(self, shift: Shift, said: Halted) -> Position:
        """A slot says which event is the first that it has not sent, and is told if it is to go on to a later one."""
        slot = (said.source, said.slot)
        with self._lock:
            if said.version >= self._since and not shift.left:
                before = (shift.halted.get(slot, 0), shift.owed.get(slot, 0)) if self.for_good else ()
                shift.halted[slot] = max((said.position, *before))
            return Position(said.batch, said.position, self._until(shift, slot))

    def _until(self, shift: Shift, slot: Slot) -> int | None:
        return shift.halted.get(slot) if shift.left or self.for_good else None

    def _halt(self) -> None:
        self._since = self._routing.current.version + 1
        self._routing.change(stopping=True, stops=self._routing.current.stops + 1)
