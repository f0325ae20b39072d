"""Who gets each event: shuffle, fields, load balancing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.errors import InputError
from penstock.grouping.base import Grouping, Receivers, Sender
from penstock.grouping.fields import Fields, stable_hash
from penstock.grouping.load_balancing import LoadBalancing
from penstock.grouping.names import GROUPINGS
from penstock.grouping.shuffle import Shuffle

Key = str | Callable[[Any], object] | None


def make_grouping(name: str, sender: Sender, key: Key = None) -> Grouping:
    """The grouping of that name, for one sender."""
    if name == "shuffle":
        return Shuffle(sender)
    if name == "load_balancing":
        return LoadBalancing(sender)
    if name == "fields" and key is not None:
        return Fields(key)
    raise InputError(f"grouping must be one of {', '.join(GROUPINGS)} ('fields' with a key); got {name!r}")


__all__ = [
    "GROUPINGS",
    "Fields",
    "Grouping",
    "LoadBalancing",
    "Receivers",
    "Sender",
    "Shuffle",
    "make_grouping",
    "stable_hash",
]
