"""Workers of a cluster that someone else runs: each is one executor of our Spark application."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.errors import InputError, PenstockError
from penstock.infra.worker import Worker, WorkerSize, WorkerState

REGION = "cluster"


class ExecutorPort(Protocol):
    """What is needed of Spark; see `penstock.infra.executors`."""

    def ids(self) -> tuple[str, ...]:
        """The executors that are registered."""

    def request(self, total: int) -> None:
        """Have so many, those that are leaving among them."""

    def decommission(self, executor: str) -> None:
        """Let one leave once its tasks have ended."""

    def leaving(self) -> frozenset[str]:
        """Those that have been decommissioned and are not gone."""


@dataclass(slots=True)
class _Known:
    since_s: float
    executor: str | None = None
    state: WorkerState = WorkerState.STARTING


class ExecutorWorkers:
    """Executors as workers that host `capacity` active replicas each.

    A worker that was added gets the next executor that registers. An executor that nobody added, as when the cluster
    replaces a lost one, is a worker too. One that was removed is no longer listed, and costs until it is gone. Several
    threads may use it.
    """

    def __init__(self, executors: ExecutorPort, capacity: int, now: Callable[[], float] = time.monotonic) -> None:
        self._executors = executors
        self._size = WorkerSize(name="executor", capacity=capacity)
        self._now = now
        self._workers: dict[str, _Known] = {}
        self._gone_soon: dict[str, float] = {}  # executors that leave, and since when they cost
        self._ended_s = 0.0
        self._count = 0
        self._lock = threading.Lock()  # nothing that is asked of Spark here takes long
        self._look()

    @property
    def seconds(self) -> float:
        """Worker-seconds so far."""
        with self._lock:
            self._look()
            since = [one.since_s for one in self._workers.values()] + list(self._gone_soon.values())
            return self._ended_s + sum(self._now() - since_s for since_s in since)

    def list(self) -> Sequence[Worker]:
        """The workers that start, are available or drain; the oldest first."""
        with self._lock:
            self._look()
            return [
                Worker(name=name, region=REGION, capacity=self._size.capacity, state=one.state)
                for name, one in self._workers.items()
            ]

    def sizes(self) -> Mapping[str, Sequence[WorkerSize]]:
        """One size: an executor."""
        return {REGION: (self._size,)}

    def add(self, region: str = REGION, size: WorkerSize | None = None) -> str:  # noqa: ARG002 - there is one of each
        """Ask for one executor more."""
        with self._lock:
            self._look()
            name = self._named(_Known(self._now()))
            try:
                self._ask()
            except PenstockError:  # nobody would know of it, and it would be waited for
                del self._workers[name]
                raise
            return name

    def drain(self, name: str) -> None:
        """Put nothing more on it."""
        with self._lock:
            self._known(name).state = WorkerState.DRAINING

    def restore(self, name: str) -> None:
        """Make a draining worker available again."""
        with self._lock:
            one = self._known(name)
            one.state = WorkerState.STARTING if one.executor is None else WorkerState.AVAILABLE

    def remove(self, name: str) -> None:
        """Let its executor leave, or ask for it no longer if it never came."""
        with self._lock:
            one = self._known(name)
            if one.executor is not None:
                self._executors.decommission(one.executor)
                self._gone_soon[one.executor] = one.since_s
            else:
                self._ended_s += self._now() - one.since_s
            del self._workers[name]
            self._ask()

    def executors(self, name: str) -> tuple[str, ...]:
        """The executor of a worker; none while it starts."""
        with self._lock:
            executor = self._known(name).executor
        return () if executor is None else (executor,)

    def named(self, host: str) -> str | None:
        """The worker that an executor is; replicas on it report its number."""
        with self._lock:
            return next((name for name, one in self._workers.items() if one.executor == host), None)

    def _look(self) -> None:
        """Take in what has registered and what is gone."""
        there, leaving = self._executors.ids(), self._executors.leaving()
        for name in [name for name, one in self._workers.items() if one.executor not in (None, *there)]:
            self._ended_s += self._now() - self._workers.pop(name).since_s
        for executor in [one for one in self._gone_soon if one not in there]:
            self._ended_s += self._now() - self._gone_soon.pop(executor)
        known = {one.executor for one in self._workers.values()} | set(self._gone_soon)
        came = [one for one in there if one not in known and one not in leaving]
        for executor in came:
            self._take_in(executor)
        for one in self._workers.values():
            if one.executor in leaving:
                one.state = WorkerState.DRAINING
        if came and not self._starting():
            self._ask()  # while those that leave are still there, or another would be started in their place

    def _take_in(self, executor: str) -> None:
        waiting = self._starting()
        one = waiting[0] if waiting else _Known(self._now())
        one.executor = executor
        if one.state is WorkerState.STARTING:
            one.state = WorkerState.AVAILABLE
        if not waiting:
            self._named(one)

    def _ask(self) -> None:
        """The cluster counts those that leave until they are gone; they matter only while one is to come."""
        self._executors.request(len(self._workers) + (len(self._gone_soon) if self._starting() else 0))

    def _starting(self) -> Sequence[_Known]:
        return [one for one in self._workers.values() if one.executor is None]

    def _named(self, one: _Known) -> str:
        self._count += 1
        name = f"executor-{self._count}"
        self._workers[name] = one
        return name

    def _known(self, name: str) -> _Known:
        if name not in self._workers:
            raise InputError(f"worker '{name}': is not running; known: {', '.join(self._workers) or 'none'}")
        return self._workers[name]
