"""Distinct: of the events with the same key, the first."""

from __future__ import annotations

from typing import Any


class Distinct:
    """Gives the first event of each key, and leaves the others out.

    Declare it with the `key` that makes two events the same, and with `expire_after_s`, unless it is to remember every
    key for good: an event that comes longer than that after the last one of its key is a first one again.

    >>> from penstock.topology import Topology
    >>> topology = Topology("news")
    >>> source = topology.source("news")
    >>> once = topology.operator("once", Distinct(), inputs=source, key="headline", expire_after_s=3600)
    >>> seen = {}
    >>> [Distinct().process(event, seen) for event in ("flood", "flood")]
    ['flood', None]
    """

    def process(self, event: Any, state: dict[str, bool]) -> Any:
        """The event, if it is the first of its key."""
        if state.get("seen"):
            return None
        state["seen"] = True
        return event
