"""An application: a topology of one of the papers, and events to run it on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.apps.options import AppOptions
from penstock.common.checks import whole
from penstock.errors import InputError
from penstock.topology import Topology

Payload = dict[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class PayloadOptions:
    """Where events come from: real ones from the folder's files where it has them, made ones by seed otherwise."""

    folder: Path | None = None
    seed: int = 0
    skew: float | None = None  # of drawn values, words and cities: 0 is uniform, s is Zipf s; None as the app has it
    count: int = 4000  # of made events

    def __post_init__(self) -> None:
        if self.skew is not None and not (math.isfinite(self.skew) and self.skew >= 0):
            raise InputError(f"payloads: skew must not be negative; got {self.skew!r}")
        whole("payloads", "count", self.count)


@dataclass(frozen=True, slots=True)
class App:
    """A shipped application, found by its name."""

    name: str
    summary: str
    build: Callable[[AppOptions], Topology]
    payloads: Callable[[PayloadOptions], list[Payload]]
    deployed: Mapping[str, int] = field(default_factory=dict)  # the paper's static deployment, where it has its own
    publishes: bool = False  # whether its sinks publish to a queue, instead of storing in a database
