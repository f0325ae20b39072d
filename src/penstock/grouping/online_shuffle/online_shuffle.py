"""Online shuffle: to the replica that has been given the least work, by what its events have taken so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock.errors import InputError
from penstock.grouping.base import Receivers, Sender
from penstock.grouping.online_shuffle.feedback import Request, Sketch
from penstock.grouping.online_shuffle.keys import Key, KeyHashes
from penstock.grouping.online_shuffle.options import OnlineShuffleOptions
from penstock.grouping.online_shuffle.scheduler import choose_all, choose_one, set_active, take_reply, take_sketch
from penstock.grouping.online_shuffle.state import REQUEST, STATES, enlarged, schedulers


class OnlineShuffle:
    """Each event goes to the active replica of least Ĉ, which then grows by the event's estimated time.

        replica = argmin_j Ĉ_j        Ĉ_j += Ω_j/Φ_j at the event's key

    Events go round until every active replica has sent a sketch (Φ, Ω). With every new sketch, one request goes to each
    replica with its next event; the replies correct Ĉ. After `assign`, the bundle's requests are in `requests`.

    Paper: DABS-Storm (TLDKS 2019), §5.

    >>> from penstock.grouping.online_shuffle.sketching import Sketching
    >>> options = OnlineShuffleOptions(window=1)
    >>> shuffle = OnlineShuffle(Sender(), options=options)
    >>> shuffle.update(Receivers(active=(0, 1)))
    >>> slow, quick = shuffle.hashes(["slow", "quick"]).tolist()
    >>> sketch, _ = Sketching(senders=1, options=options).executed(0, [slow, quick] * 2, [0.8, 0.2] * 2)
    >>> shuffle.take_sketch(0, sketch), shuffle.take_sketch(1, sketch), shuffle.state
    (None, None, 'SEND_ALL')
    >>> shuffle.assign(["slow", "quick"]), shuffle.assign(["quick"] * 4)
    ([0, 1], [1, 1, 1, 0])
    >>> {replica: round(load_s, 9) for replica, load_s in shuffle.loads_s.items()}
    {0: 1.0, 1: 0.8}
    """

    def __init__(self, sender: Sender, key: Key = None, options: OnlineShuffleOptions | None = None) -> None:
        self.hashes = KeyHashes(key)
        self._state = schedulers(1, 1, options or OnlineShuffleOptions())
        self._state.status["first"] = sender.number
        self._found = np.empty(0, REQUEST)
        self._asked = 0
        self._active: tuple[int, ...] = ()
        self._set_active((0,))

    @property
    def state(self) -> str:
        """ROUND_ROBIN, SEND_ALL, WAIT_ALL or RUN."""
        return STATES[self._state.status["state"][0]]

    @property
    def loads_s(self) -> dict[int, float]:
        """Ĉ of the active replicas; in ROUND_ROBIN, events."""
        return {replica: float(self._state.receivers["load"][0, replica]) for replica in self._active}

    def update(self, receivers: Receivers) -> None:
        """Go on with a new set of replicas; utilisations are of no use here."""
        if not receivers.active or min(receivers.active) < 0:
            raise InputError(f"grouping 'online_shuffle': some replica must be active; got {receivers.active}")
        if receivers.active != self._active:
            self._set_active(receivers.active)

    def reseat(self, sender: Sender) -> None:
        """Take another number among the senders: the next new set of replicas is begun at another place."""
        self._state.status["first"] = sender.number

    def _set_active(self, active: tuple[int, ...]) -> None:
        pool = 1 + max(active)
        if pool > self._state.receivers.shape[1]:
            self._state = enlarged(self._state, pool)
        self._active = active
        set_active(self._state, 0, np.array(active, np.int64), len(active))

    def assign(self, events: Sequence[Any]) -> list[int]:
        """The replica for each event, in order."""
        if len(events) == 1:
            return [self._assign_one(self.hashes.of(events[0]))]
        chosen: list[int] = self.assign_hashes(self.hashes(events)).tolist()
        return chosen

    def assign_hashes(self, hashes: ArrayLike) -> NDArray[np.int64]:
        """The same, from the hashes of the events' keys."""
        keys = np.asarray(hashes, np.uint32)
        if len(keys) == 1:
            return np.array([self._assign_one(keys.item())], np.int64)
        if len(keys) > len(self._found):
            self._found = np.empty(len(keys), REQUEST)
        chosen = np.empty(len(keys), np.int64)
        self._asked = choose_all(self._state, 0, keys, chosen, self._found)
        return chosen

    def _assign_one(self, key: int) -> int:
        """A bundle of one event, in less time."""
        replica, epoch, estimate_s = choose_one(*self._state, key)
        self._asked = 0
        if epoch:
            self._found = np.array([(0, replica, epoch, estimate_s)], REQUEST)
            self._asked = 1
        return replica

    def requests(self) -> list[Request]:
        """What goes with the events of the last bundle; empty when asked again."""
        found, self._asked = self._found[: self._asked], 0
        return [Request(*request) for request in found.tolist()]

    def take_sketch(self, replica: int, sketch: Sketch) -> None:
        """Use a replica's new sketch."""
        cells, shape = sketch.array(), self._state.sketches.shape[2:]
        if cells.shape != shape:
            raise InputError(f"grouping 'online_shuffle': a sketch must have shape {shape}; got {cells.shape}")
        if replica in self._active:
            take_sketch(self._state, 0, replica, cells)

    def take_reply(self, replica: int, epoch: int, delta_s: float) -> None:
        """Use a replica's reply to a request of this epoch."""
        if replica in self._active:
            take_reply(self._state, 0, replica, epoch, delta_s)
