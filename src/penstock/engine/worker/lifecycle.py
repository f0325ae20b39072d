"""Opened operators of this process: a replica opens its operator once and keeps it over batches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.common.storage import Storage, storage_at
from penstock.engine.plan.program import Program
from penstock.errors import EngineError
from penstock.metrics.counters import ReplicaCounters
from penstock.topology import Operator

KEPT_BATCHES = 1  # an operator that was unused for longer,
KEPT_S = 60.0  # in batches and in time, is closed


@dataclass
class ReplicaContext:
    """What an operator learns when it is opened, and how it speaks to its replica."""

    run: str
    operator: str
    replica: int
    folder: Storage = field(default_factory=lambda: storage_at("."))
    attempt: int = 0
    checkpoint: int = 0
    parts: Mapping[int, Any] = field(default_factory=dict)  # of the last checkpoint that was committed, by replica
    event_ids: tuple[str, ...] = ()
    counters: ReplicaCounters = field(default_factory=ReplicaCounters)

    def repeated(self, count: int) -> None:
        """Count events that had been stored before."""
        self.counters.repeated += count


@dataclass
class Opened:
    """An operator at work in this process."""

    spec: Operator
    context: ReplicaContext
    one: Callable[[Any], Any]
    many: Callable[[list[Any]], Any] | None
    event_type: Any
    prepare: Callable[[int], Any] | None = None  # of a sink that takes part in checkpoints
    commit: Callable[[int], None] | None = None
    guarded: bool = False  # its calls are looked at
    used_in: int = 0  # the batch in which it was last used,
    used_s: float = 0.0  # and when that began


_opened: dict[tuple[str, str, int, int], Opened] = {}


def opened(program: Program, name: str, replica: int, batch: int) -> Opened:
    """The replica's operator, opened if this process has not got it; others long unused are closed.

    What an earlier attempt has opened is closed: what its operator has in hand is done again.
    """
    key, now_s = (program.run, name, replica, program.generation), time.monotonic()
    for other, operator in list(_opened.items()):
        unused = abs(batch - operator.used_in) > KEPT_BATCHES and now_s - operator.used_s > KEPT_S
        if other != key and (unused or other[:3] == key[:3]):
            del _opened[other]
            _close(operator)
    if key not in _opened:
        _opened[key] = _open(program, name, replica)
    _opened[key].used_in, _opened[key].used_s = batch, now_s
    _opened[key].context.checkpoint = program.checkpoint  # every micro-batch is one
    return _opened[key]


def _open(program: Program, name: str, replica: int) -> Opened:
    spec, events_of = program.operator(name)
    run: Any = spec.run
    folder = program.storage / "sinks" / name
    context = ReplicaContext(program.run, name, replica, folder, program.generation, program.checkpoint)
    if hasattr(run, "open"):
        try:
            run.open(context)
        except Exception as error:
            raise EngineError(f"{spec}: open failed: {type(error).__name__}: {error}") from error
    one = run.process if hasattr(run, "process") else run
    opened = Opened(spec, context, one, getattr(run, "process_many", None), events_of)
    opened.prepare, opened.commit = getattr(run, "prepare", None), getattr(run, "commit", None)
    return opened


def close_all() -> None:
    """Close every operator of this process."""
    while _opened:
        _close(_opened.popitem()[1])


def _close(operator: Opened) -> None:
    close = getattr(operator.spec.run, "close", None)
    if close is not None:
        try:
            close()
        except Exception as error:  # nothing depends on it any more
            print(f"{operator.spec}: close failed: {type(error).__name__}: {error}", file=sys.stderr)
