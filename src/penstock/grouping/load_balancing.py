"""Load balancing, algorithm 1 of the PSPS paper: to the replica that is least used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.grouping.base import Receivers, Sender
from penstock.grouping.kernels import choose_least_used, one_least_used, publish, senders


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
        self.update(Receivers(active=(0,)))

    def update(self, receivers: Receivers) -> None:
        """Start again from the published utilisations; a replica that was not active starts from 0."""
        pool = 1 + max(receivers.active)
        self._senders, self._count = senders(1, pool), len(receivers.active)
        used = np.zeros(pool)
        for replica in receivers.active:
            used[replica] = receivers.utilisation.get(replica, 0.0)
        step = receivers.step * self._sender.of
        publish(self._senders, 0, self._sender.number, np.array(receivers.active), self._count, used, step)

    def assign(self, events: Sequence[Any]) -> list[int]:
        """The least used replica for each event."""
        if len(events) == 1:
            return [one_least_used(*self._senders, self._count)]
        chosen = np.empty(len(events), np.int64)
        choose_least_used(self._senders, 0, self._count, chosen)
        return chosen.tolist()
