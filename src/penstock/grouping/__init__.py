"""Who gets each event: shuffle, fields, load balancing, online shuffle, pull."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.common.names import hint
from penstock.errors import InputError
from penstock.grouping.base import Grouping, Receivers, Sender
from penstock.grouping.fields import Fields, stable_hash
from penstock.grouping.key_groups import KeyGroups
from penstock.grouping.load_balancing import LoadBalancing
from penstock.grouping.names import GROUPINGS, LATE, WITH_STATE
from penstock.grouping.online_shuffle import OnlineShuffle, OnlineShuffleOptions, Sketching
from penstock.grouping.pull import Credits, Pull, Room
from penstock.grouping.shuffle import Shuffle

Key = str | Callable[[Any], object] | None


def make_grouping(name: str, sender: Sender, key: Key = None, options: OnlineShuffleOptions | None = None) -> Grouping:
    """The grouping of that name, for one sender; `key` is what `fields` and `online_shuffle` go by."""
    if name == "shuffle":
        return Shuffle(sender)
    if name == "load_balancing":
        return LoadBalancing(sender)
    if name == "fields" and key is not None:
        return Fields(key)
    if name == WITH_STATE and key is not None:
        return KeyGroups(key)
    if name == "online_shuffle":
        return make_online_shuffle(sender, key, options)
    if name in LATE:
        raise InputError(f"grouping {name!r}: its events are bound late, by `penstock.grouping.Pull`")
    near = "" if name in GROUPINGS else hint(name, GROUPINGS)
    raise InputError(f"grouping must be one of {', '.join(GROUPINGS)} ('fields' with a key); got {name!r}{near}")


def make_online_shuffle(sender: Sender, key: Key, options: OnlineShuffleOptions | None) -> OnlineShuffle:
    """Online shuffle by this key; without one, all events are alike."""
    return OnlineShuffle(sender, alike if key is None else key, options)


def alike(event: object) -> int:  # noqa: ARG001 - whatever it is
    """The key of events that all take the same time."""
    return 0


def warm_up() -> None:
    """Compile what is compiled, or load it from numba's cache, so that no event has to wait for it."""
    balancing = LoadBalancing(Sender())
    balancing.update(Receivers(active=(0, 1), utilisation={0: 0.1}, step=0.1))
    for bundle in ((None,), (None, None)):
        balancing.assign(bundle)
    options = OnlineShuffleOptions(window=1)
    shuffle, sketching = make_online_shuffle(Sender(), None, options), Sketching(1, options)
    sketch = None
    while sketch is None:  # the second event makes it stable
        sketch, _ = sketching.executed(0, [1], [0.1])
    shuffle.take_sketch(0, sketch)
    shuffle.assign((None,))
    for request in shuffle.requests():
        _, (reply,) = sketching.executed(0, [1], [0.1], [request])
        shuffle.take_reply(0, reply.epoch, reply.delta_s)
    shuffle.assign((None, None))


__all__ = [
    "GROUPINGS",
    "LATE",
    "Credits",
    "Fields",
    "Grouping",
    "KeyGroups",
    "LoadBalancing",
    "OnlineShuffle",
    "OnlineShuffleOptions",
    "Pull",
    "Receivers",
    "Room",
    "Sender",
    "Shuffle",
    "make_grouping",
    "make_online_shuffle",
    "stable_hash",
    "warm_up",
]
