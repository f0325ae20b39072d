"""An engine in small for tests of sinks: it plays attempts, checkpoints, deaths and stragglers, and knows the history.

The stream is the numbers 0, 1, 2, … A sink gets each of them in every attempt that reads it, always with the attempt in
the event, and in every other attempt under another id: so that rows of two attempts never look the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cloudpickle
import msgspec
import pytest

from penstock.sinks.base import Recovery

STEPS = ("staged", "prepared by one", "prepared", "decided", "publishing", "marking", "published", "committed by one")
Within = Mapping[str, tuple[object, str, Callable[..., Any]]]  # by step: whose which function dies, after doing this


class Death(Exception):  # noqa: N818 - what a test does to a process
    """The process ends here."""


@dataclass
class Replica:
    """The context of a replica, which counts what it is told was repeated."""

    run: str = "r"
    operator: str = "end"
    replica: int = 0
    folder: Path = Path("none")
    checkpoint: int = 1
    attempt: int = 1
    event_ids: tuple[str, ...] = ()
    parts: dict[int, Any] = field(default_factory=dict)
    again: int = 0

    def repeated(self, count: int) -> None:
        self.again += count


@dataclass
class Attempt:
    """The replicas of a sink in one start of the query, and what they have got since the last record."""

    number: int
    contexts: list[Replica]
    sinks: list[Any]
    cursor: int
    checkpoint: int
    given: list[tuple[str, Any]] = field(default_factory=list)

    def close(self) -> None:
        for sink in self.sinks:
            sink.close()


class Engine:
    """One run of one sink: `history` is what the destination must hold, by the records that were written."""

    def __init__(self, make: Callable[[], Any], folder: Path, run: str = "r") -> None:
        self._make = make
        self._folder = folder
        self._run = run
        self._attempts = itertools.count(1)
        self.history: list[tuple[str, Any]] = []
        self.checkpoint, self.cursor = 0, 0  # of the last record
        self.parts: dict[int, Any] = {}

    def start(self, pool: int = 2) -> Attempt:
        """Recover, as the driver does, and open the replicas of the next attempt."""
        number = next(self._attempts)
        parts = msgspec.json.decode(msgspec.json.encode(self.parts), type=dict[int, Any])  # as a record keeps them
        self._shipped().recover(Recovery(self._run, "end", number, self.checkpoint, parts, self._folder))
        contexts = [
            Replica(self._run, "end", replica, self._folder, self.checkpoint + 1, number) for replica in range(pool)
        ]
        sinks = [self._shipped() for _ in contexts]
        for sink, context in zip(sinks, contexts, strict=True):
            sink.open(context)
        return Attempt(number, contexts, sinks, self.cursor, self.checkpoint + 1)

    def feed(self, attempt: Attempt, count: int) -> None:
        """The next numbers of the stream, dealt out to the replicas."""
        for place, (sink, context) in enumerate(zip(attempt.sinks, attempt.contexts, strict=True)):
            numbers = range(attempt.cursor + place, attempt.cursor + count, len(attempt.sinks))
            context.event_ids = tuple(f"{n}.{attempt.number % 2}" for n in numbers)
            events = [{"n": n, "attempt": attempt.number} for n in numbers]
            sink.process_many(events)
            attempt.given += zip(context.event_ids, events, strict=True)
        attempt.cursor += count

    def prepare(self, attempt: Attempt, most: int | None = None) -> dict[int, Any]:
        """The barrier reaches the replicas, or only the first of them; what each prepared."""
        parts = {}
        for sink, context in list(zip(attempt.sinks, attempt.contexts, strict=True))[:most]:
            parts[context.replica] = sink.prepare(attempt.checkpoint)
            context.checkpoint = attempt.checkpoint + 1
        return parts

    def decide(self, attempt: Attempt, parts: dict[int, Any]) -> None:
        """Write the record: from here on this is the history."""
        self.checkpoint, self.cursor, self.parts = attempt.checkpoint, attempt.cursor, parts
        self.history += attempt.given
        attempt.given = []

    def commit(self, attempt: Attempt, most: int | None = None) -> None:
        """Tell the replicas, or only the first of them."""
        for sink, context in list(zip(attempt.sinks, attempt.contexts, strict=True))[:most]:
            context.parts = self.parts
            sink.commit(self.checkpoint)

    def complete(self, attempt: Attempt, count: int = 6) -> None:
        """One checkpoint as it should be."""
        self.feed(attempt, count)
        self.decide(attempt, self.prepare(attempt))
        self.commit(attempt)
        attempt.checkpoint += 1

    def give_up(self, attempt: Attempt, count: int = 6, most: int | None = None) -> None:
        """A checkpoint that some replicas prepare, and that nobody decides: the next one covers it."""
        self.feed(attempt, count)
        self.prepare(attempt, most)
        attempt.checkpoint += 1

    def _shipped(self) -> Any:
        return cloudpickle.loads(cloudpickle.dumps(self._make()))


def dies(engine: Engine, attempt: Attempt, step: str, within: Within, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go on with the attempt until that step of its checkpoint, and no further."""
    engine.feed(attempt, 6)
    if step == "staged":
        return
    parts = engine.prepare(attempt, 1 if step == "prepared by one" else None)
    if step in ("prepared by one", "prepared"):
        return
    engine.decide(attempt, parts)
    if step == "decided":
        return
    with monkeypatch.context() as patch:
        if step in within:
            whose, name, work = within[step]
            patch.setattr(whose, name, interrupted(work))
        with suppress(Death):
            engine.commit(attempt, 1 if step == "committed by one" else None)


def interrupted(work: Callable[..., Any]) -> Callable[..., Any]:
    """Does it, and dies."""

    def call(*given: Any) -> Any:
        work(*given)
        raise Death

    return call
