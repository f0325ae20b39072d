"""The replica's side of the online shuffle: how long its events took, by key and by sender."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.engine.online.mailbox import Mailbox
from penstock.engine.plan.program import Edge, Program
from penstock.engine.protocol.bundle import HASH, Keys
from penstock.engine.protocol.messages import ReplyTo
from penstock.grouping.online_shuffle import OnlineShuffleOptions, Request, Sketching
from penstock.topology import ReplicaId


@dataclass(slots=True)
class _Bundle:
    """A bundle whose events have not all been executed."""

    sender: str
    replica: int
    hashes: NDArray[np.uint32]
    requests: list[Request]
    done: int = 0


class OnlineReceiver:
    """Learns from the events that a replica executes, and puts what senders need to know into its mailbox.

    Every replica that may send has a column of its own. They count from 0 in each attempt, as the senders do.
    """

    def __init__(self, senders: Sequence[ReplicaId], options: OnlineShuffleOptions, mail: Mailbox) -> None:
        self._columns = {sender: column for column, sender in enumerate(senders)}
        self._sketching = Sketching(len(senders), options)
        self._mail = mail
        self._bundles: deque[_Bundle] = deque()

    def expect(self, sender: str, keys: Keys, count: int) -> None:
        """The next `count` events to be executed come from this sender; a bundle's others were dropped on arrival."""
        hashes = np.frombuffer(keys.hashes, HASH)[:count].astype(np.uint32)
        requests = [request._replace(event=min(request.event, count - 1)) for request in keys.requests]
        self._bundles.append(_Bundle(sender, keys.replica, hashes, requests))

    def executed(self, times_s: Sequence[float]) -> None:
        """The next events took so long; NaN for one that was not executed."""
        taken = 0
        while taken < len(times_s):
            bundle = self._bundles[0]
            count = min(len(times_s) - taken, len(bundle.hashes) - bundle.done)
            self._take(bundle, times_s[taken : taken + count])
            taken += count
            if bundle.done == len(bundle.hashes):
                self._bundles.popleft()

    def _take(self, bundle: _Bundle, times_s: Sequence[float]) -> None:
        first, bundle.done = bundle.done, bundle.done + len(times_s)
        here = range(first, bundle.done)
        requests = [one._replace(event=one.event - first) for one in bundle.requests if one.event in here]
        column = self._columns[bundle.sender, bundle.replica]
        sketch, replies = self._sketching.executed(column, bundle.hashes[first : bundle.done], times_s, requests)
        if sketch is not None or replies:
            self._mail.tell(sketch, [ReplyTo(bundle.sender, bundle.replica, *reply) for reply in replies])


def online_receiver(program: Program, name: str, mail: Mailbox) -> OnlineReceiver | None:
    """For an operator whose grouping is the online shuffle."""
    edge = _edge_to(program, name)
    if edge is None or edge.online is None:
        return None
    return OnlineReceiver(program.senders_to(name), edge.online, mail)


def _edge_to(program: Program, name: str) -> Edge | None:
    return next((edge for edges in program.edges.values() for edge in edges if edge.receiver == name), None)
