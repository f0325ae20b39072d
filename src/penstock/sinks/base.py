"""What a sink may do beyond being an operator: take part in the checkpoint, so that its output is one history.

A sink is an operator's class with some of the methods below; the engine calls those that are there. For the number of
a checkpoint n and an attempt (each start of the query is one), a replica of a sink sees:

    open(context)
    process_many(events)      any number of times; context.checkpoint is n, context.attempt the attempt
    prepare(n)                its part of checkpoint n ends: what it has got must be safe when this returns
    process_many(events)      from here on context.checkpoint is n + 1
    commit(n)                 checkpoint n is decided: its parts, and earlier ones of this attempt, may be seen;
                              context.parts has what each replica's `prepare(n)` returned
    ...
    close()

A checkpoint that is given up is neither committed nor abandoned by itself: the next one covers it, too. When an attempt
dies, all after the last committed checkpoint is abandoned, and done again by the next attempt from there. Before that,
`recover` is called once, in the driver's process. So a sink needs no memory of its own: record and destination tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from penstock.common.storage import Storage, storage_at

LEVELS = ("at_least_once", "latest", "committed")


@dataclass(frozen=True, slots=True)
class Recovery:
    """What is known when an attempt begins: the very first, one after a crash, or one of a new driver."""

    run: str
    operator: str
    attempt: int  # the one that begins; numbers grow from attempt to attempt, also from driver to driver
    checkpoint: int  # the last that was committed; 0: none
    parts: Mapping[int, Any] = field(default_factory=dict)  # by replica: what `prepare` returned in that checkpoint
    folder: Storage = field(default_factory=lambda: storage_at("."))  # the same as the context's


@runtime_checkable
class Prepares(Protocol):
    """A sink that wants to know where its part of a checkpoint ends."""

    def prepare(self, checkpoint: int) -> Any:
        """Have all events so far safe; what is returned (as JSON) is kept in the record of the checkpoint."""


@runtime_checkable
class Commits(Protocol):
    """A sink that shows its output only once it is committed."""

    def commit(self, checkpoint: int) -> None:
        """Show all that was prepared up to this checkpoint; no later one is committed before this returns."""


@runtime_checkable
class Recovers(Protocol):
    """A sink that cleans up, or completes, what an earlier attempt left behind."""

    def recover(self, recovery: Recovery) -> None:
        """Called in the driver's process before the replicas of an attempt begin; the sink is not open there."""


@runtime_checkable
class Checks(Protocol):
    """A sink that can tell beforehand whether its destination can be reached."""

    def check(self) -> None:
        """Raise an InputError if not; called in the driver's process, once, before anything starts."""


def takes_part(run: Any) -> bool:
    """Whether what an operator runs takes part in checkpoints."""
    return isinstance(run, Prepares | Commits | Recovers)
