"""A worker, as the managers see it, and what they need of whoever runs the workers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from penstock.errors import InputError

WORKER_NAME = "PENSTOCK_WORKER"  # in the environment of a worker and of all that it starts


class WorkerState(StrEnum):
    """Where a worker is in its life; one that has ended is not listed any more."""

    STARTING = "starting"
    JOINING = "joining"  # it is up; replicas are being put on it
    AVAILABLE = "available"
    DRAINING = "draining"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSize:
    """A kind of worker that a region offers: how many replicas one can host, and what it costs.

    >>> WorkerSize(name="small", capacity=0)
    Traceback (most recent call last):
    penstock.errors.InputError: worker size 'small': capacity must be at least 1 replica; got 0
    """

    name: str
    capacity: int
    price: float = 1.0  # per second

    def __post_init__(self) -> None:
        if self.capacity < 1:
            raise InputError(f"worker size '{self.name}': capacity must be at least 1 replica; got {self.capacity}")
        if not self.price >= 0:
            raise InputError(f"worker size '{self.name}': price must be at least 0; got {self.price}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One worker: C_n replicas fit on it."""

    name: str
    region: str
    capacity: int
    price: float = 1.0  # per second
    state: WorkerState = WorkerState.AVAILABLE

    @property
    def available(self) -> bool:
        """Whether replicas may be put on it."""
        return self.state is WorkerState.AVAILABLE

    def turned(self, state: WorkerState) -> Worker:
        """The same worker in another state."""
        return replace(self, state=state)


def executor_here(environment: Mapping[str, str] | None = None, folder: Path | None = None) -> str | None:
    """The Spark executor that this process belongs to; None outside of one.

    On Kubernetes the environment says it. Spark Standalone starts an executor in a folder of its own, by application
    and executor, and the Python workers with it.

    >>> executor_here({}, Path("work/app-20261116055720-0000/3")), executor_here({"SPARK_EXECUTOR_ID": "7"})
    ('3', '7')
    """
    told = (os.environ if environment is None else environment).get("SPARK_EXECUTOR_ID")
    if told:
        return told
    here = folder or Path.cwd()
    return here.name if here.name.isdecimal() and here.parent.name.startswith("app-") else None


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
