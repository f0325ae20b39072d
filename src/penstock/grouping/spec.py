"""A grouping as a user writes it: a name, and for the online shuffle options, `online_shuffle:window=128,mu=0.1`."""

from __future__ import annotations

from typing import NamedTuple

from penstock.common.named import Named
from penstock.grouping.names import GROUPINGS, SIMULATED_ONLY
from penstock.grouping.online_shuffle.options import OnlineShuffleOptions


class GroupingSpec(NamedTuple):
    """A grouping's name, and its options if it has any."""

    name: str
    options: OnlineShuffleOptions | None = None


def parse_grouping(text: str) -> GroupingSpec:
    """What the text says; a name that is not known is left to whoever looks it up.

    >>> parse_grouping("shuffle")
    GroupingSpec(name='shuffle', options=None)
    >>> parse_grouping("online_shuffle:window=128,mu=0.1").options.window
    128
    >>> parse_grouping("shuffle:window=128")
    Traceback (most recent call last):
    penstock.errors.InputError: grouping 'shuffle': no such option 'window'; known: none
    """
    name = text.partition(":")[0] if isinstance(text, str) else text
    return GroupingSpec(name, _OPTIONS.make(text) if name in _OPTIONS.names else None)


_OPTIONS: Named[OnlineShuffleOptions | None] = Named("grouping")
for _name in (*GROUPINGS, *SIMULATED_ONLY):
    _OPTIONS.register(_name, OnlineShuffleOptions if _name == "online_shuffle" else lambda: None)
