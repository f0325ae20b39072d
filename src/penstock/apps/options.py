"""What a user may change of a shipped application."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from penstock.apps.waiting import Waiting
from penstock.errors import InputError
from penstock.topology import Process
from penstock.topology.operator import Function

SinkFactory = Callable[[str, float], Process | Function]


@dataclass(frozen=True, slots=True)
class AppOptions:
    """Settings that every application understands; what is not set stays as the application has it."""

    sink: SinkFactory  # makes the last operator, from its name and service time in ms
    service_ms: Mapping[str, float] = field(default_factory=dict)  # by operator; the mean where it varies
    pool: int | None = None  # of every operator
    pools: Mapping[str, int] = field(default_factory=dict)  # by operator; goes before `pool`
    grouping: str | None = None  # of every operator without a key
    seed: int = 0


class Declared(TypedDict):
    """The parts of an operator's declaration that options decide."""

    pool: int
    grouping: str | None
    execution_time_ms: float | None


class Tuning:
    """An application's own service times and pools, with the user's options over them."""

    def __init__(
        self, app: str, options: AppOptions, service_ms: Mapping[str, float], pool: int | Mapping[str, int]
    ) -> None:
        for what, given in (("service_ms", options.service_ms), ("pools", options.pools)):
            _check_known(f"app {app!r}: {what}", given, service_ms)
        for name, value in options.service_ms.items():
            if not (math.isfinite(value) and value >= 0):
                raise InputError(f"app {app!r}: service_ms of {name!r} must not be negative; got {value!r}")
        self.service_ms = {**service_ms, **options.service_ms}
        self._own_pools = pool if isinstance(pool, Mapping) else dict.fromkeys(service_ms, pool)
        self._options = options

    def run(self, name: str, function: Function) -> Waiting:
        """The function, with the operator's service time after it."""
        return Waiting(function, self.service_ms[name])

    def sink(self, name: str) -> Process | Function:
        """The caller's sink, made for this operator."""
        return self._options.sink(name, self.service_ms[name])

    def declared(self, name: str, *, keyed: bool = False) -> Declared:
        """Pool, grouping and execution time, to be passed on to `Topology.operator`."""
        common = self._own_pools[name] if self._options.pool is None else self._options.pool
        return {
            "pool": self._options.pools.get(name, common),
            "grouping": None if keyed else self._options.grouping,
            "execution_time_ms": self.service_ms[name] or None,
        }


def _check_known(thing: str, given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for name in given:
        if name not in known:
            raise InputError(f"{thing}: no operator {name!r}; known: {', '.join(known)}")
