"""A grouping chooses, for every event that a sender emits, the replica of the receiving operator that gets it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Receivers:
    """What a sender knows of the receiving operator."""

    active: tuple[int, ...]  # replicas that may get events
    utilisation: dict[int, float] = field(default_factory=dict)  # U_j of the last interval, where known
    step: float = 0.0  # et / td: what one event adds to U
    version: int = 0  # grows with every publication
    owners: tuple[int, ...] = ()  # of the key groups, where the operator keeps state


@dataclass(frozen=True, slots=True)
class Sender:
    """Who is choosing: its number among the replicas that send to the same operator."""

    number: int = 0
    of: int = 1


class Grouping(Protocol):
    """Chooses replicas for events, a bundle at a time."""

    def update(self, receivers: Receivers) -> None:
        """Take a new set of active replicas, or new utilisations."""

    def assign(self, events: Sequence[Any]) -> list[int]:
        """The replica for each event, in order."""
