"""Sketching: what a replica does so that its senders can use the online shuffle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from penstock.common.checks import whole
from penstock.errors import InputError
from penstock.grouping.online_shuffle.feedback import Reply, Request, Sketch
from penstock.grouping.online_shuffle.options import OnlineShuffleOptions
from penstock.grouping.online_shuffle.sketchers import answer, execute_all, sketchers


class Sketching:
    """Counts executed events and their times, by key and by sender; tells senders what they need to know.

    The sketch of Φ and Ω is given out when it is stable: Ψ = Ω/Φ has changed by η <= μ over the last N events. A
    request is answered with Δ = C − Ĉ, C being the time of all events of that sender up to the one it came with.

    Paper: DABS-Storm (TLDKS 2019), §5.2.

    >>> sketching = Sketching(senders=1, options=OnlineShuffleOptions(window=2))
    >>> sketching.executed(0, [7, 8], [0.5, 0.25], [Request(event=0, replica=0, epoch=1, estimate_s=0.375)])
    (None, [Reply(epoch=1, delta_s=0.125)])
    >>> sketch, replies = sketching.executed(0, [7, 8], [0.5, 0.25])
    >>> sketch.array().sum(axis=(1, 2)).tolist()  # three rows of 4 events and 1.5 s
    [12.0, 4.5]
    """

    def __init__(self, senders: int, options: OnlineShuffleOptions | None = None) -> None:
        self._senders = whole("grouping 'online_shuffle'", "senders", senders)
        self._state = sketchers(1, senders, options or OnlineShuffleOptions())

    def executed(
        self, sender: int, hashes: ArrayLike, times_s: ArrayLike, requests: Sequence[Request] = ()
    ) -> tuple[Sketch | None, list[Reply]]:
        """Take in a bundle that came from one sender: hashes of the keys, times, and requests that came with it.

        A request's `event` is its place in this bundle. Returns the newest sketch, if one became stable, and a reply
        to each request.
        """
        keys, times = np.asarray(hashes, np.uint32), np.asarray(times_s, np.float64)
        self._check(sender, keys.shape, times.shape)
        stable, done, replies = False, 0, []
        for request in sorted(requests):
            until = request.event + 1
            stable |= execute_all(self._state, 0, sender, keys[done:until], times[done:until])
            done = max(done, until)
            replies.append(Reply(request.epoch, answer(self._state, 0, sender, request.estimate_s)))
        stable |= execute_all(self._state, 0, sender, keys[done:], times[done:])
        return (Sketch.of(self._state.stable[0]) if stable else None), replies

    def _check(self, sender: int, keys: tuple[int, ...], times: tuple[int, ...]) -> None:
        if not 0 <= sender < self._senders:
            raise InputError(f"grouping 'online_shuffle': sender must be in 0..{self._senders - 1}; got {sender}")
        if keys != times or len(keys) != 1:
            raise InputError(f"grouping 'online_shuffle': every event must have one time; got {times} for {keys}")
