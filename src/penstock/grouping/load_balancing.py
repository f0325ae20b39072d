"""Load balancing, algorithm 1 of the PSPS paper: to the replica that is least used."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from penstock.grouping.base import Receivers, Sender


class LoadBalancing:
    """Each event goes to the active replica of least U, which then grows by et/td; from 1 on, round robin.

    U_j = processed_j · et / td is published once an interval. Every sender adds what it sent itself since then,
    times the number of senders, as if all sent alike, and starts its round at a different replica. Ties go round
    robin: of several replicas of least U, the one whose turn is longest past.

    Paper: Predictive Stream Processing Systems (SBAC-PAD 2022).

    >>> grouping = LoadBalancing(Sender())
    >>> grouping.update(Receivers(active=(0, 1, 2), utilisation={0: 0.5, 1: 0.2, 2: 0.4}, step=0.1, version=1))
    >>> grouping.assign("abcdef")
    [1, 1, 2, 1, 0, 2]
    """

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._turn = sender.number
        self._heap: list[tuple[float, int, int]] = [(0.0, 0, 0)]  # U, turn, replica
        self._step = 0.0

    def update(self, receivers: Receivers) -> None:
        """Start again from the published utilisations; a replica that was not active starts from 0."""
        count = len(receivers.active)
        self._step = receivers.step * self._sender.of
        first = self._sender.number % count
        self._heap = [
            (receivers.utilisation.get(replica, 0.0), (place - first) % count, replica)
            for place, replica in enumerate(receivers.active)
        ]
        heapq.heapify(self._heap)
        self._turn = count

    def assign(self, events: Sequence[Any]) -> list[int]:
        """The least used replica for each event."""
        heap, step = self._heap, self._step
        chosen: list[int] = []
        for _ in events:
            used, _, replica = heap[0]
            if used >= 1.0:
                return chosen + self._round_robin(len(events) - len(chosen))
            chosen.append(replica)
            heapq.heapreplace(heap, (used + step, self._turn, replica))
            self._turn += 1
        return chosen

    def _round_robin(self, count: int) -> list[int]:
        order = sorted(self._heap, key=lambda entry: entry[1])
        replicas = [replica for _, _, replica in order]
        chosen = [replicas[n % len(replicas)] for n in range(count)]
        turns = {replica: self._turn + n for n, replica in enumerate(chosen)}
        self._turn += count
        self._heap = [(used, turns.get(replica, turn), replica) for used, turn, replica in self._heap]
        heapq.heapify(self._heap)
        return chosen
