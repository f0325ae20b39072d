"""What the senders to one operator remember, as arrays: a row for each sender, one in a live replica."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.grouping.online_shuffle.hashing import coefficients
from penstock.grouping.online_shuffle.options import OnlineShuffleOptions

ROUND_ROBIN, SEND_ALL, WAIT_ALL, RUN = 0, 1, 2, 3
STATES = ("ROUND_ROBIN", "SEND_ALL", "WAIT_ALL", "RUN")

RECEIVER = np.dtype(
    (
        np.record,
        [
            ("load", np.float64),  # Ĉ; in ROUND_ROBIN events, afterwards seconds
            ("start", np.float64),  # the part of Ĉ that was not sent, but given when the replica joined
            ("floor", np.float64),  # Ĉ as last confirmed: executed, so it cannot become less
            ("told", np.float64),  # Ĉ when the replica was last asked
            ("delta", np.float64),  # its reply
            ("asked", np.int64),  # epoch of the last request; 0: none
            ("heard", np.int64),  # epoch of the last reply
            ("known", np.int64),  # 1 if its sketch is here
            ("active", np.int64),
            ("listed", np.int64),  # at place n: the n-th active replica
        ],
    )
)
STATUS = np.dtype(
    (
        np.record,
        [
            ("state", np.int64),
            ("first", np.int64),  # where rounds begin with a new set of replicas: the sender's number
            ("turn", np.int64),  # place of the replica that is next in turn
            ("count", np.int64),  # of active replicas
            ("epoch", np.int64),
            ("since", np.int64),  # events assigned in this epoch
            ("again", np.int64),  # 1 if a sketch came during the epoch: another one follows
            ("patience", np.int64),
            ("mean_s", np.float64),  # time of an event, by all sketches here
        ],
    )
)
REQUEST = np.dtype(
    (np.record, [("event", np.int64), ("replica", np.int64), ("epoch", np.int64), ("estimate_s", np.float64)])
)


class Schedulers(NamedTuple):
    """The senders to one operator; `receivers` and `sketches` have a column for each replica of its pool."""

    coefficients: NDArray[np.uint64]
    sketches: NDArray[np.float64]  # Φ and Ω of each replica
    receivers: NDArray[np.void]
    status: NDArray[np.void]


def schedulers(rows: int, pool: int, options: OnlineShuffleOptions) -> Schedulers:
    """Senders that know of no active replica yet. Their rounds begin at different places, so that they do not herd."""
    shape = options.shape
    status = np.zeros(rows, STATUS)
    status["first"], status["patience"] = np.arange(rows), options.patience
    return Schedulers(
        coefficients(shape[0], options.seed),
        np.zeros((rows, pool, 2, *shape)),
        np.zeros((rows, pool), RECEIVER),
        status,
    )


def enlarged(s: Schedulers, pool: int) -> Schedulers:
    """The same senders with room for a larger pool."""
    rows, before = s.receivers.shape
    sketches = np.zeros((rows, pool, *s.sketches.shape[2:]))
    sketches[:, :before] = s.sketches
    receivers = np.zeros((rows, pool), RECEIVER)
    receivers[:, :before] = s.receivers
    return s._replace(sketches=sketches, receivers=receivers)
