"""The replica's side: a sketch of what it executes, sent when it is stable, and answers about its time.

State START lasts for N events and ends with a snapshot Ψ = Ω/Φ. In STABILIZING, after every N events: if Ψ changed by
η <= μ, the sketch is stable, is to be sent, and is reset (→ START); otherwise the new Ψ takes the place of the old one.

The paper has one scheduler. With several, true time is counted by sender: each balances what it sends itself, and so
the sum is balanced. If replies told the time of all senders' events, every sender would make up for the same difference
on its own, and they would herd: simulated with 8 senders and 8 replicas in use to 90 %, 36 s of latency instead of
0.1 s. Counting each sent event once for every sender repairs that, and balances as well as this, but no better; and it
has to know how much the others send.

All state is in arrays with a row for each replica: one in a live replica, the whole pool in a simulation.

Paper: DABS-Storm, TLDKS 2019, §5.2, figure 7b.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from penstock.grouping.online_shuffle.hashing import coefficients
from penstock.grouping.online_shuffle.options import OnlineShuffleOptions
from penstock.grouping.online_shuffle.sketch import add, clear, copy, renew

START, STABILIZING = 0, 1

_STATUS = np.dtype(
    (
        np.record,
        [
            ("state", np.int64),
            ("events", np.int64),  # since the last snapshot, or the start
            ("window", np.int64),  # N
            ("mu", np.float64),
        ],
    )
)


class Sketchers(NamedTuple):
    """What the replicas of an operator remember; a row for each."""

    coefficients: NDArray[np.uint64]
    sketches: NDArray[np.float64]  # Φ and Ω
    snapshots: NDArray[np.float64]  # Ψ
    stable: NDArray[np.float64]  # Φ and Ω when they were last stable
    spent: NDArray[np.float64]  # C, a column for each sender
    status: NDArray[np.void]


def sketchers(rows: int, senders: int, options: OnlineShuffleOptions) -> Sketchers:
    """Replicas that have not executed anything."""
    shape = options.shape
    status = np.zeros(rows, _STATUS)
    status["window"], status["mu"] = options.window, options.mu
    return Sketchers(
        coefficients(shape[0], options.seed),
        np.zeros((rows, 2, *shape)),
        np.zeros((rows, *shape)),
        np.zeros((rows, 2, *shape)),
        np.zeros((rows, senders)),
        status,
    )


@njit(cache=True, inline="always")
def execute(k: Any, row: int, sender: int, key: int, time_s: float) -> bool:
    """Count an executed event; True if a stable sketch is to be sent now.

    An event whose time is no number from 0 on is left out.
    """
    if not 0.0 <= time_s < math.inf:
        return False
    k.spent[row, sender] += time_s
    add(k.sketches[row], k.coefficients, key, time_s)
    status = k.status[row]
    status.events += 1
    if status.events < status.window:
        return False
    status.events = 0
    return _look(k, row)


@njit(cache=True)
def _look(k: Any, row: int) -> bool:
    """After N events: take a snapshot, and see whether the sketch is stable."""
    status = k.status[row]
    change = renew(k.snapshots[row], k.sketches[row])
    if status.state == START or not change <= status.mu:
        status.state = STABILIZING
        return False
    copy(k.sketches[row], k.stable[row])
    clear(k.sketches[row])
    status.state = START
    return True


@njit(cache=True)
def answer(k: Any, row: int, sender: int, estimate_s: float) -> float:
    """Δ = C − Ĉ, to be asked when the event that the request came with has been executed."""
    return k.spent[row, sender] - estimate_s  # type: ignore[no-any-return]


@njit(cache=True)
def execute_all(k: Any, row: int, sender: int, keys: Any, times_s: Any) -> bool:
    """Count a bundle; True if a stable sketch is to be sent."""
    stable = False
    for place in range(len(keys)):
        stable |= execute(k, row, sender, keys[place], times_s[place])
    return stable
