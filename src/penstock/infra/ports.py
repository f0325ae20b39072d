"""What the Infrastructure Manager needs of whoever runs the workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from penstock.infra.worker import Worker, WorkerSize


class Workers(Protocol):
    """Starts, drains and stops workers. Every call returns at once; `list` shows what has come of it."""

    @property
    def seconds(self) -> float:
        """Worker-seconds so far."""

    def list(self) -> Sequence[Worker]:
        """The workers that start, are available or drain; the oldest first."""

    def sizes(self) -> Mapping[str, Sequence[WorkerSize]]:
        """What can be started, by region."""

    def add(self, region: str, size: WorkerSize) -> str:
        """Start a worker; its name."""

    def drain(self, name: str) -> None:
        """Put nothing more on it."""

    def restore(self, name: str) -> None:
        """Make a draining worker available again."""

    def remove(self, name: str) -> None:
        """Stop it."""
