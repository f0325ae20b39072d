"""Short ways to make loads and snapshots by hand, for tests of policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.metrics.snapshot import OperatorLoad, Snapshot


def load(name: str, received_by: Mapping[str, int], processed: int | None = None, **more: Any) -> OperatorLoad:
    """An operator's load: all that it received is processed and one of 64 replicas is active, unless said.

    `replicas` are the first so many; `active` says which.

    >>> load("clean", {"in": 20}, backlog=3, replicas=2).active
    (0, 1)
    """
    given = {"backlog": 0, "pool": 64, "active": tuple(range(more.get("replicas", 1))), **more}
    given.pop("replicas", None)
    return OperatorLoad(
        name=name,
        received_by=received_by,
        processed=sum(received_by.values()) if processed is None else processed,
        **given,
    )


def snapshot(source_input: Mapping[str, int], loads: Iterable[OperatorLoad], **more: Any) -> Snapshot:
    """A snapshot of these loads, in order; an interval of 1 s that ends at 1 s, unless said."""
    given = {"time_s": 1.0, "interval_s": 1.0, "td_s": 1.0, **more}
    return Snapshot(source_input=source_input, operators={one.name: one for one in loads}, **given)
