"""Senders by online shuffle in each of their states; times in eighths of a second, exact in binary."""

from __future__ import annotations

import pickle

import numpy as np

from penstock.grouping.base import Receivers, Sender
from penstock.grouping.fields import stable_hash
from penstock.grouping.online_shuffle import OnlineShuffle, OnlineShuffleOptions, Sketch
from penstock.grouping.online_shuffle.hashing import coefficients
from penstock.grouping.online_shuffle.sketch import add

PATIENCE = 20


def sketch(**times_s: float) -> Sketch:
    """Of one event of each key."""
    cells = np.zeros((2, 3, 54))
    for key, time_s in times_s.items():
        add(cells, coefficients(3, 0), stable_hash(key), time_s)
    return Sketch.of(cells)


ALIKE = sketch(a=1.0, b=0.5, c=0.25)


def shuffle(*active: int, number: int = 0) -> OnlineShuffle:
    grouping = OnlineShuffle(Sender(number, of=9), options=OnlineShuffleOptions(patience=PATIENCE))
    grouping.update(Receivers(active))
    return grouping


def asking(*active: int, sketch: Sketch = ALIKE) -> OnlineShuffle:
    """In SEND_ALL, epoch 1, with the same sketch of all replicas."""
    grouping = shuffle(*active)
    for replica in active:
        grouping.take_sketch(replica, sketch)
    return grouping


def replied(grouping: OnlineShuffle, deltas_s: dict[int, float], epoch: int = 1) -> None:
    for replica, delta_s in deltas_s.items():
        grouping.take_reply(replica, epoch, delta_s)


def running(loads_s: dict[int, float], sketch: Sketch = ALIKE) -> OnlineShuffle:
    """In RUN, after epoch 1, with these Ĉ."""
    grouping = asking(*loads_s, sketch=sketch)
    for replica in grouping.assign("b" * len(loads_s)):
        grouping.take_reply(replica, 1, loads_s[replica] - 0.5)
    assert grouping.state == "RUN"
    assert grouping.loads_s == loads_s
    return grouping


def frozen(grouping: OnlineShuffle) -> bytes:
    return pickle.dumps(grouping._state)
