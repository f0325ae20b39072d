"""What an event log says of an application's queries: their batches with what tasks took, and its executors."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from penstock.advise.log_files import log_lines
from penstock.attached.model.progress import Batch, parse_progress
from penstock.errors import InputError

_QUERY = "org.apache.spark.sql.streaming.StreamingQueryListener$Query"
TICKS_S = (0.1, 0.2, 0.25, 0.5, 1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60, 120, 180, 300, 600, 900, 1800, 3600)
ALIGNED = 0.9  # of the batches that were not late begin at a tick
ALIGNED_S = 0.1
GAP_S = 0.05  # after a batch, if nothing is waited for


class _Head(msgspec.Struct):
    event: str = msgspec.field(name="Event", default="")


class _Job(msgspec.Struct):
    stages: list[int] = msgspec.field(name="Stage IDs", default_factory=list)
    properties: dict[str, Any] | None = msgspec.field(name="Properties", default=None)


class _Metrics(msgspec.Struct):
    run_ms: int = msgspec.field(name="Executor Run Time", default=0)


class _Task(msgspec.Struct):
    stage: int = msgspec.field(name="Stage ID")
    metrics: _Metrics | None = msgspec.field(name="Task Metrics", default=None)


class _Info(msgspec.Struct):
    cores: int = msgspec.field(name="Total Cores", default=1)


class _Executor(msgspec.Struct):
    time_ms: int = msgspec.field(name="Timestamp")
    id: str = msgspec.field(name="Executor ID")
    info: _Info = msgspec.field(name="Executor Info", default_factory=_Info)


@dataclass
class LoggedQuery:
    """A query and its batches, in order; one that was started again is the same."""

    id: str
    name: str
    batches: list[Batch] = field(default_factory=list)

    @property
    def trigger_s(self) -> float:
        """The interval of its trigger, which logs do not have: guessed from when batches began; 0 for none."""
        return guessed_trigger_s(self.batches)


@dataclass
class LoggedApplication:
    """What a log has of an application."""

    id: str = ""
    name: str = ""
    version: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    queries: dict[str, LoggedQuery] = field(default_factory=dict)
    executors: list[tuple[float, str, int]] = field(default_factory=list)  # time, id, cores: 0 when it left
    ended: bool = False

    @property
    def slots_each(self) -> int:
        """Tasks that one executor runs at once."""
        cores = max((cores for _, _, cores in self.executors), default=1)
        return max(1, cores // max(1, int(self.settings.get("spark.task.cpus", "1"))))

    def executor_times(self) -> list[tuple[float, int]]:
        """How many executors there were from each time on."""
        there: set[str] = set()
        found: list[tuple[float, int]] = []
        for time_s, name, cores in sorted(self.executors):
            (there.add if cores else there.discard)(name)
            found.append((time_s, len(there)))
        return found

    def executor_seconds(self, start_s: float, end_s: float) -> float:
        """Of all executors between two times."""
        times = self.executor_times()
        total = 0.0
        for place, (time_s, count) in enumerate(times):
            until_s = times[place + 1][0] if place + 1 < len(times) else math.inf
            total += count * max(0.0, min(end_s, until_s) - max(start_s, time_s))
        return total

    def slots_between(self, start_s: float, end_s: float) -> float | None:
        """The slots, if they did not change meanwhile."""
        before, found = 0, set()
        for time_s, count in self.executor_times():
            if time_s <= start_s:
                before = count
            elif time_s < end_s:
                found.add(count)
        return None if found - {before} or not before else float(before * self.slots_each)


def read_log(path: Path) -> LoggedApplication:
    """An application from its event log, of Spark 3.4 or later."""
    reader = _Reader()
    for line in log_lines(path):
        reader.read(line)
    found = reader.finished()
    if not found.version:
        raise InputError(f"event log '{path}': must begin as Spark's do; is it another file?")
    if not any(one.rows for query in found.queries.values() for one in query.batches):
        raise InputError(f"event log '{path}': must have a query with rows; it has {len(found.queries)} queries")
    return found


class _Reader:
    """Takes events in, and puts work to batches at the end: tasks may end after their batch was told of."""

    def __init__(self) -> None:
        self.found = LoggedApplication()
        self._batch_of: dict[int, tuple[str, int]] = {}  # by stage: query and batch
        self._core_ms: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._tasks: defaultdict[tuple[str, int], defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
        self._seen: set[tuple[str, str]] = set()

    def read(self, line: bytes) -> None:
        """One event; those that say nothing of interest are not decoded."""
        kind = _kind(line)
        if kind.startswith(_QUERY):
            self._query(kind.removeprefix(_QUERY), msgspec.json.decode(line))
        elif read := _READS.get(kind):
            read(self, line)

    def _query(self, kind: str, told: Mapping[str, Any]) -> None:
        told = told.get("progress", told)
        known = self.found.queries.setdefault(told["id"], LoggedQuery(told["id"], told.get("name") or told["id"][:8]))
        if kind == "ProgressEvent" and (told["id"], told["timestamp"]) not in self._seen:
            self._seen.add((told["id"], told["timestamp"]))
            known.batches.append(parse_progress(told))

    def _job(self, line: bytes) -> None:
        job = msgspec.json.decode(line, type=_Job)
        told = job.properties or {}
        query, batch = told.get("sql.streaming.queryId"), told.get("streaming.sql.batchId")
        if query is not None and batch is not None:
            self._batch_of.update(dict.fromkeys(job.stages, (str(query), int(batch))))

    def _task(self, line: bytes) -> None:
        task = msgspec.json.decode(line, type=_Task)
        batch = self._batch_of.get(task.stage)
        if batch is not None and task.metrics is not None:
            self._core_ms[batch] += task.metrics.run_ms
            self._tasks[batch][task.stage] += 1

    def _came(self, line: bytes) -> None:
        one = msgspec.json.decode(line, type=_Executor)
        if one.id != "driver":
            self.found.executors.append((one.time_ms / 1000, one.id, max(1, one.info.cores)))

    def _left(self, line: bytes) -> None:
        one = msgspec.json.decode(line, type=_Executor)
        self.found.executors.append((one.time_ms / 1000, one.id, 0))

    def _start(self, line: bytes) -> None:
        told = msgspec.json.decode(line)
        self.found.version = str(told.get("Spark Version", ""))

    def _application(self, line: bytes) -> None:
        told = msgspec.json.decode(line)
        self.found.id, self.found.name = str(told.get("App ID", "")), str(told.get("App Name", ""))

    def _environment(self, line: bytes) -> None:
        self.found.settings = msgspec.json.decode(line).get("Spark Properties") or {}

    def _end(self, line: bytes) -> None:  # noqa: ARG002 - that it is there says it
        self.found.ended = True

    def finished(self) -> LoggedApplication:
        """All of it, batches with their work and slots."""
        for query in self.found.queries.values():
            ordered = sorted(query.batches, key=lambda one: one.start_s)
            query.batches = [self._worked(query.id, one) for one in ordered]
        return self.found

    def _worked(self, query: str, batch: Batch) -> Batch:
        key = query, batch.number
        slots = self.found.slots_between(batch.start_s, batch.end_s)
        if batch.rows <= 0 or not self._core_ms.get(key):
            return replace(batch, slots=slots)
        tasks = max(self._tasks[key].values())
        return replace(batch, slots=slots, core_s=self._core_ms[key] / 1000, tasks=tasks)


_READS: Mapping[str, Any] = {
    "SparkListenerLogStart": _Reader._start,
    "SparkListenerApplicationStart": _Reader._application,
    "SparkListenerApplicationEnd": _Reader._end,
    "SparkListenerEnvironmentUpdate": _Reader._environment,
    "SparkListenerExecutorAdded": _Reader._came,
    "SparkListenerExecutorRemoved": _Reader._left,
    "SparkListenerJobStart": _Reader._job,
    "SparkListenerTaskEnd": _Reader._task,
}


def _kind(line: bytes) -> str:
    """The event's name, which comes first; a line that is none has no name."""
    head, _, rest = line.partition(b'"Event":"')
    if len(head) <= 4:
        return rest.partition(b'"')[0].decode(errors="replace")
    try:
        return msgspec.json.decode(line, type=_Head).event
    except msgspec.DecodeError:
        return ""


def guessed_trigger_s(batches: Iterable[Batch]) -> float:
    """The longest usual interval at whose multiples batches begin, unless the one before took too long.

    >>> def at(*starts_s):
    ...     return [Batch(number=n, start_s=s, planned_s=s, seconds=0.4, rows=9) for n, s in enumerate(starts_s)]
    >>> guessed_trigger_s(at(100.0, 105.0, 110.01, 115.0, 125.0, 130.0)), guessed_trigger_s(at(100.0, 100.41, 100.83))
    (5, 0.0)
    """
    ordered = list(batches)
    waited = [one.start_s for before, one in pairwise(ordered) if one.start_s > before.end_s + GAP_S]
    if len(waited) < max(3, 0.1 * len(ordered)):
        return 0.0
    for tick_s in reversed(TICKS_S):
        near = [one for one in waited if (one + GAP_S / 2) % tick_s < min(ALIGNED_S, 0.3 * tick_s)]
        if len(near) >= ALIGNED * len(waited):
            return tick_s
    return 0.0
