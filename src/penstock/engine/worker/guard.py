"""Around the calls of an operator, after something has ended processes again and again: says what is about to be done.

The driver learns so which event a process was at when it was lost, and one that is known to be deadly is not tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from penstock.engine.plan.program import Program
from penstock.engine.protocol.messages import AtWork
from penstock.engine.protocol.progress import Progress
from penstock.engine.worker.lifecycle import Opened
from penstock.errors import InputError

DEADLY = "its process ended at this event, twice in a row"


class Teller(Protocol):
    """Who passes it on to the driver, and hears from it."""

    progress: Progress

    def tell(self, at_work: AtWork) -> None:
        """Say it before anything else is done."""


def guard(operator: Opened, program: Program, teller: Teller) -> None:
    """Have the operator's calls looked at, where there is reason to; elsewhere they stay as they are."""
    deadly = program.deadly.get(operator.context.operator, frozenset())
    if (program.careful or deadly) and not operator.guarded:
        operator.guarded = True
        guarded = _Guarded(operator, program, teller, deadly)
        operator.one = guarded.call
        if operator.many is not None:
            operator.many = guarded.call_many if program.careful else guarded.call_together


class _Guarded:
    """The calls of one operator in one attempt."""

    def __init__(self, operator: Opened, program: Program, teller: Teller, deadly: frozenset[str]) -> None:
        self._context, self._program, self._teller, self._deadly = operator.context, program, teller, deadly
        self._one: Callable[..., Any] = operator.one
        self._many: Any = operator.many

    def call(self, *given: Any) -> Any:
        """For one event, and the state of its key if there is any."""
        self._check()
        with self._saying():
            return self._one(*given)

    def call_together(self, events: list[Any]) -> Any:
        """For many events at once."""
        self._check()
        return self._many(events)

    def call_many(self, events: list[Any]) -> list[Any]:
        """For many events, one call each, so that it is known which one was the last."""
        self._check()
        ids, outputs = self._context.event_ids, list[Any]()
        for event_id, event in zip(ids, events, strict=True):
            self._context.event_ids = (event_id,)
            with self._saying():
                output = self._many([event])
            outputs += [None] if output is None else list(output)
        self._context.event_ids = ids
        return outputs

    def _check(self) -> None:
        """Before anything is done: of many, each is then called for alone."""
        if self._deadly.intersection(self._context.event_ids):
            raise InputError(DEADLY)

    @contextmanager
    def _saying(self) -> Iterator[None]:
        """Say when a call begins and that it has ended: who is lost between two calls was at none.

        Until a checkpoint of this attempt is committed: nobody comes to what is before that again.
        """
        if not self._program.careful or self._teller.progress.committed >= self._program.checkpoint:
            yield
            return
        mine, (event_id,) = self._context, self._context.event_ids
        self._teller.tell(AtWork(self._program.generation, mine.operator, mine.replica, event_id))
        try:
            yield
        finally:
            self._teller.tell(AtWork(self._program.generation, mine.operator, mine.replica))
