"""What Spark says of one batch of a query, read from its progress: rows, times, and what waits at the source."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.errors import InputError

_FILES = "logOffset"  # how a source of files calls its offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch that has ended; one without rows is Spark's word that nothing came.

    Times are in seconds since 1970. `planned_s` is when its offsets were taken: what came later is in the next one.
    `waiting` are the rows that the source had beyond it, where the source says so. What it took of the executors is
    not in the progress, and is added by who knows it.
    """

    number: int
    start_s: float
    planned_s: float
    seconds: float  # all of it, by the clock
    rows: int
    waiting: float | None = None
    offsets: float | None = None  # by how much it went on, in the sources' own offsets, where these are numbers
    state_partitions: int | None = None  # of a query that keeps state: more slots than that do not help it
    state_bytes: int = 0
    core_s: float | None = None  # slots times the time that tasks had them
    tasks: int | None = None  # of its widest stage
    slots: float | None = None  # that were there all the time; None if they changed, or are not known

    @property
    def end_s(self) -> float:
        """When it was committed."""
        return self.start_s + self.seconds


def parse_progress(progress: str | Mapping[str, Any]) -> Batch:
    """A batch from the JSON of a `StreamingQueryProgress`, of Spark 3.4 or later.

    >>> parse_progress('''{"batchId": 7, "timestamp": "2026-11-17T22:00:02.000Z", "numInputRows": 200,
    ...     "durationMs": {"latestOffset": 4, "addBatch": 900, "triggerExecution": 1000}, "sources": []}''')
    ... # doctest: +ELLIPSIS
    Batch(number=7, start_s=1794952802.0, planned_s=1794952802.004, seconds=1.0, rows=200, ...)
    >>> parse_progress('{"batchId": 7}')
    Traceback (most recent call last):
    penstock.errors.InputError: progress of batch 7: must have a timestamp, as Spark writes it; got None
    """
    told = json.loads(progress) if isinstance(progress, str) else progress
    number, durations = told.get("batchId"), told.get("durationMs") or {}
    sources, states = told.get("sources") or (), told.get("stateOperators") or ()
    start_s = _time_s(number, told.get("timestamp"))
    return Batch(
        number=int(number or 0),
        start_s=start_s,
        planned_s=start_s + durations.get("latestOffset", 0) / 1000,
        seconds=durations.get("triggerExecution", 0) / 1000,
        rows=_rows(told, sources),
        waiting=waiting_rows(sources),
        offsets=offsets_between([one.get("startOffset") for one in sources], [one.get("endOffset") for one in sources]),
        state_partitions=min((_partitions(one) for one in states if _partitions(one) > 0), default=None),
        state_bytes=sum(max(0, int(one.get("memoryUsedBytes", 0))) for one in states),
    )


def _rows(told: Mapping[str, Any], sources: Sequence[Mapping[str, Any]]) -> int:
    """Of the whole query, or, in a Spark that does not add them up, of its sources."""
    found = told.get("numInputRows")
    return int(found if found is not None else sum(one.get("numInputRows") or 0 for one in sources))


def _partitions(state: Mapping[str, Any]) -> int:
    return int(state.get("numShufflePartitions") or 0)


def _time_s(number: object, stamp: object) -> float:
    try:
        return datetime.fromisoformat(str(stamp)).timestamp()
    except ValueError:
        rule = "must have a timestamp, as Spark writes it"
        raise InputError(f"progress of batch {number}: {rule}; got {stamp!r}") from None


def waiting_rows(sources: Sequence[Mapping[str, Any]]) -> float | None:
    """Rows that all sources together had beyond the batch; None if no source says.

        rows · (latest − end) / (end − start)      in the source's own offsets, whatever they count

    >>> waiting_rows([{"numInputRows": 50, "startOffset": {"t": {"0": 10}}, "endOffset": {"t": {"0": 60}},
    ...                "latestOffset": {"t": {"0": 90}}}])
    30.0
    >>> waiting_rows([{"numInputRows": 50, "startOffset": 1, "endOffset": 2, "latestOffset": None}]) is None
    True
    """
    known = [found for found in map(_waiting_at, sources) if found is not None]
    return math.fsum(known) if known else None


def offsets_between(start: Sequence[Any], end: Sequence[Any]) -> float | None:
    """How far all sources went on together; None where an offset is not made of numbers, or counts batches.

    >>> offsets_between([{"rows": 10}, None], ['{"rows": 60}', 7])
    57.0
    >>> offsets_between([{"logOffset": 3}], [{"logOffset": 4}]) is None
    True
    """
    before, after = [_counted(one) if one is not None else 0.0 for one in start], [_counted(one) for one in end]
    if None in before or None in after:
        return None
    return math.fsum(one for one in after if one is not None) - math.fsum(one for one in before if one is not None)


def _waiting_at(source: Mapping[str, Any]) -> float | None:
    first, last, latest = (_counted(source.get(f"{which}Offset")) for which in ("start", "end", "latest"))
    if latest is None or last is None:
        return None
    if latest <= last:
        return 0.0
    rows, taken = source.get("numInputRows") or 0, last - (first or 0.0)
    return rows * (latest - last) / taken if taken > 0 else None


def _counted(offset: Any) -> float | None:
    """The sum of all numbers in an offset; None where it is not made of them, or counts batches, as that of files."""
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:
            return None
    if isinstance(offset, Mapping):
        if _FILES in offset:
            return None
        parts = [_counted(one) for one in offset.values()]
        return None if not parts or None in parts else math.fsum(one for one in parts if one is not None)
    number = isinstance(offset, int | float) and not isinstance(offset, bool) and math.isfinite(offset)
    return float(offset) if number else None
