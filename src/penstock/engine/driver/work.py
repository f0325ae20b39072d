"""What is at work under the driver, as it sees it: shifts, or in micro-batch mode the batches of a DataFrame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.driver.causes import Cause
from penstock.engine.plan.layout import Layout
from penstock.engine.protocol.messages import Question, Start, StartQuery
from penstock.errors import EngineError


class Work(Protocol):
    """Starts and ends queries, and answers what their replicas ask."""

    lasting: bool  # its processes stay connected

    @property
    def layout(self) -> Layout:
        """Where its replicas are."""

    @property
    def query(self) -> StreamingQuery | None:
        """What Spark runs all replicas in, if it is one query."""

    @property
    def failure(self) -> EngineError | None:
        """Why it has ended for good, if it has."""

    @property
    def restarts(self) -> int:
        """How often a query was started again."""

    def open(self, layout: Layout) -> None:
        """Start."""

    def await_ready(self) -> None:
        """Wait until the sources can begin."""

    def stop_sources(self) -> None:
        """Let no more events in."""

    def stop(self) -> None:
        """End."""

    def all_sent(self) -> bool:
        """Whether nothing that was let in has yet to be sent."""

    def is_ready(self) -> bool:
        """Whether all its replicas are there."""

    def all_read(self) -> bool:
        """Whether no source will ever have another event."""

    def checkpoint_now(self, timeout_s: float) -> bool:
        """Whether all that has been processed is in a checkpoint, and shown, within the time."""

    def start_of(self, question: StartQuery) -> Start:
        """Where a source's slot starts."""

    def is_starting(self, generation: int) -> bool:
        """Whether that is of a shift that is not at work yet, while another is."""

    def check(self, question: Question) -> object:
        """Raise an EngineError if whoever asks has been replaced."""

    def take_over(self, layout: Layout) -> float:
        """Have the next shift take over; how long no source could send."""

    def wait_settled(self, timeout_s: float) -> bool:
        """Wait until no earlier shift is at work."""

    def give_up(self, generation: int, cause: Cause) -> None:
        """End that attempt, if it is still at work; it is started again as after any death."""

    def suspect(self, generation: int, pid: int, said: str) -> None:
        """A process of that attempt, on this machine, may have ended."""

    def renew(self, between: Callable[[], None]) -> None:
        """Have what is at work begin again from the last checkpoint; nothing runs while `between` is called."""
