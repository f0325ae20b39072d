"""The obvious simulator, bound late: one line of events, and whoever has room is given the next.

- An event is in the line a hop after it was sent, unless `q_size` events are unfinished at the operator by then.
- The first in line is given to an active replica that is ready and has less than its credit, to the one that has
  least; of several, to the one whose turn is longest past.
- A restart puts all that had not finished back into the line, in the old order.
"""

from __future__ import annotations

import math

from penstock.grouping.pull import credit_of

from .reference import ReferenceOperator
from .reference_parts import Event


class PullReferenceOperator(ReferenceOperator):
    """One operator whose events are bound late."""

    def __init__(self, plant, declared) -> None:
        super().__init__(plant, declared)
        self.line: list[Event] = []
        self.counted: set[Event] = set()  # those that were received already
        self.turns: dict[int, int] = {number: number - declared.pool for number in range(declared.pool)}
        self.starts = 0  # of the operator as a whole

    @property
    def credit(self) -> int:
        return credit_of(self.plant.mean_s[self.name])

    @property
    def room(self) -> float:
        return math.inf

    def take(self, event: Event) -> None:
        self.unfinished.append(event)
        self.plant.env.process(self._hop(event, self.starts))

    def _hop(self, event: Event, start: int):
        yield self.plant.env.timeout(self.plant.options.hop_s)
        if start != self.starts:
            return
        q_size = self.plant.options.q_size
        present = len(self.line) + sum(len(replica.held) for replica in self.replicas)
        if q_size is not None and present >= q_size:
            self._receive(event)
            self.drop(event, "q_size")
        else:
            self.line.append(event)
        self.bind()

    def bind(self) -> None:
        """Give what can be given now."""
        while self.line:
            now_s = self.plant.env.now
            free = [
                (len(self.replicas[number].held), self.turns[number], number)
                for number in self.active
                if self.replicas[number].ready_s <= now_s and len(self.replicas[number].held) < self.credit
            ]
            if not free:
                return
            number, event = min(free)[2], self.line.pop(0)
            self.turns[number] = 1 + max(0, *self.turns.values())
            self._receive(event)
            if not self.replicas[number].held and self.too_old(event, now_s):  # it takes no time, and so no place
                super().drop(event, "t_out")
                continue
            self.replicas[number].held.append(event)
            self.replicas[number].arrive(event)

    def _receive(self, event: Event) -> None:
        if event not in self.counted:
            self.counted.add(event)
            self.received[event.wire.sender] += 1

    def finish(self, event: Event, replica: int, spent_s: float) -> None:
        super().finish(event, replica, spent_s)
        self.bind()

    def drop(self, event: Event, cause: str) -> None:
        super().drop(event, cause)
        self.bind()

    def changed(self) -> None:
        """Replicas changed: they have room from now on, or once they are ready."""
        now_s = self.plant.env.now
        for ready_s in {max(now_s, self.replicas[number].ready_s) for number in self.active}:
            self.plant.env.process(self._when_ready(ready_s))

    def _when_ready(self, ready_s: float):
        yield self.plant.env.timeout(ready_s - self.plant.env.now)
        self.bind()

    def restart(self, ready_s: float, *, lossy: bool) -> None:
        """Everything back into the line, or lost; then the replicas begin anew, with nothing."""
        self.starts += 1
        waiting, self.unfinished, self.line = list(self.unfinished), [], []
        super().restart(ready_s, lossy=lossy)
        self.unfinished = waiting
        if lossy:
            for event in list(waiting):
                self._receive(event)
                self.drop(event, "restart")
        else:
            self.line = list(waiting)
        self.changed()
