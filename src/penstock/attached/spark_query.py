"""A running query of Spark's, looked at from the driver: its trigger, its progress, and what its tasks took."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from penstock.attached.model.progress import Batch, offsets_between, parse_progress
from penstock.errors import InputError

MEASURED = 3  # of the batches that ended since the last look, the newest: each takes some calls into Java
MEASURED_FIRST = 20  # at the first look
_PERIODIC = "ProcessingTimeTrigger"
_REFUSED = {
    "OneTimeTrigger": "once",
    "AvailableNowTrigger": "availableNow",
    "ContinuousTrigger": "continuous",
    "RealTimeTrigger": "realTime",
}
_BATCH = re.compile(r"\bbatch = (\d+)")


def checked_query(query: Any) -> Any:
    """Java's side of a query that can be attached to; an InputError says why it cannot."""
    java = getattr(query, "_jsq", None)
    if java is None:
        kind = f"{type(query).__module__}.{type(query).__name__}"
        raise InputError(f"attach: must be given a query whose driver is this process; got {kind}")
    if not java.isActive():
        raise InputError(f"query '{named(java)}': must be running; it has ended")
    return java


def named(java: Any) -> str:
    """The query's name, or the beginning of its id."""
    return str(java.name() or str(java.id().toString())[:8])


def trigger_s(java: Any) -> float:
    """The interval of its trigger; 0 if it goes as fast as it can. Others than these are refused."""
    trigger = java.streamingQuery().trigger()
    kind = str(trigger.getClass().getSimpleName()).removesuffix("$")
    if kind != _PERIODIC:
        rule = "its trigger must be processingTime, or none"
        raise InputError(f"query '{named(java)}': {rule}; got {_REFUSED.get(kind, kind)}")
    return float(trigger.intervalMs()) / 1000


class SparkQuery:
    """A query, by its id: if it is started again in the same session, it is followed under its new run id.

    >>> SparkQuery(None)
    Traceback (most recent call last):
    penstock.errors.InputError: attach: must be given a query whose driver is this process; got builtins.NoneType
    """

    def __init__(self, query: Any) -> None:
        self._java = checked_query(query)
        self.name = named(self._java)
        self.trigger_s = trigger_s(self._java)
        self.id = str(self._java.id().toString())
        self.run_id = str(self._java.runId().toString())
        self.restarts = 0
        self._session = self._java.sparkSession()
        self._context = self._session.sparkContext()
        self._told = ""  # the time stamp of the last progress that was read
        self._last = -1  # batch of which it was told
        self._looked_at = -1  # the last job that was looked at

    def batches(self) -> Sequence[Batch]:
        """Those that have ended since this was last asked, the oldest first; the newest with what their tasks took."""
        progress, new = self._java.recentProgress(), []
        for place in range(len(progress) - 1, -1, -1):
            if str(progress[place].timestamp()) <= self._told:
                break
            new.append(progress[place])
        if not new:
            return ()
        first, self._told = not self._told, str(new[0].timestamp())
        found = [parse_progress(str(one.json())) for one in reversed(new)]
        self._last = max((one.number for one in found if one.rows > 0), default=self._last)
        work = self._work(found, MEASURED_FIRST if first else MEASURED)
        return [
            replace(one, core_s=work[one.number][0], tasks=work[one.number][1])
            if one.rows > 0 and one.number in work
            else one
            for one in found
        ]

    def running(self) -> float | None:
        """By how many offsets the batch that runs goes on, which its progress tells only when it has ended.

        NaN if one runs whose offsets do not say.
        """
        try:
            now = self._java.streamingQuery().getLatestExecutionContext()
            if int(now.batchId()) <= self._last or not self._java.status().isTriggerActive():
                return None
            found = offsets_between(_offsets(now.startOffsets()), _offsets(now.endOffsets()))
            return math.nan if found is None else found
        except Exception:  # Spark's own; another version may have it elsewhere, and it is good to have, not needed
            return None

    def absence(self) -> str | None:
        """Why it is not there; one that was started again is there."""
        if self._java.isActive() or self._follow():
            return None
        failed = self._java.exception()
        why = str(failed.get().getMessage()).strip().splitlines()[0] if failed.isDefined() else "it was stopped"
        return f"the query has ended: {why}"

    def _follow(self) -> bool:
        """Look for the same query under another run id; one that is just ending is listed still."""
        for other in self._session.streams().active():
            if str(other.id().toString()) == self.id and str(other.runId().toString()) != self.run_id:
                self._java, self.run_id = other, str(other.runId().toString())
                self.restarts, self._looked_at = self.restarts + 1, -1
                return True
        return False

    def _work(self, batches: Sequence[Batch], most: int) -> dict[int, tuple[float, int]]:
        """Slot-seconds and tasks of the widest stage, by batch, from Spark's status store."""
        wanted = {one.number for one in [one for one in batches if one.rows > 0][-most:]}
        found: dict[int, tuple[float, int]] = {}
        if not wanted:
            return found
        store, last = self._context.statusStore(), max(one.number for one in batches)
        looked_at = self._looked_at
        for job in _newest_first(self._context.statusTracker().getJobIdsForGroup(self.run_id), self._looked_at):
            looked_at = max(looked_at, job)
            number, stages = _job(store, job)
            if number is not None and number < min(wanted):
                break
            if number in wanted:
                core_s, tasks = _stages(store, stages)
                before = found.get(number, (0.0, 0))
                found[number] = before[0] + core_s, max(before[1], tasks)
            if number is not None and number > last:  # of the batch that runs: the next look wants it again
                looked_at = job - 1
        self._looked_at = max(self._looked_at, looked_at)
        return {number: one for number, one in found.items() if one[0] > 0}


def _offsets(progress: Any) -> list[Any]:
    """The offsets of all sources, as Spark writes them."""
    found, each = [], progress.valuesIterator()
    while each.hasNext():
        found.append(str(each.next().json()))
    return found


def _newest_first(jobs: Any, after: int) -> Iterator[int]:
    """Those after one, in Java's array, whichever way it is sorted: to read one is a call, and Spark keeps a thousand.

    >>> list(_newest_first([7, 5, 4, 2], 4)), list(_newest_first([2, 4, 5, 7], 4))
    ([7, 5], [7, 5])
    """
    count = len(jobs)
    places = range(count) if count < 2 or jobs[0] > jobs[count - 1] else range(count - 1, -1, -1)
    for place in places:
        if (job := int(jobs[place])) <= after:
            return
        yield job


def _job(store: Any, job: int) -> tuple[int | None, list[int]]:
    """The batch that a job is of, as its description says, and its stages; none of one that is no longer kept."""
    try:
        data = store.job(job)
        told = data.description()
        match = _BATCH.search(str(told.get())) if told.isDefined() else None
        stages = data.stageIds()
        return (int(match[1]) if match else None), [int(stages.apply(n)) for n in range(stages.size())]
    except Exception:  # whatever Java says of one that is gone
        return None, []


def _stages(store: Any, stages: Sequence[int]) -> tuple[float, int]:
    core_s, tasks = 0.0, 0
    for stage in stages:
        try:
            data = store.lastStageAttempt(stage)
            took_s = float(data.executorRunTime()) / 1000
            core_s, tasks = core_s + took_s, max(tasks, int(data.numTasks()) if took_s > 0 else 0)
        except Exception:  # skipped, or no longer kept
            continue
    return core_s, tasks
