"""Rows of a trace as a streaming source, and a function that waits: what executors import, so little else is here."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

PARTS = 12  # of a batch, so that more slots help


class TraceRows(DataSource):
    """Rows with their number and when they are due: `file` has the times, in seconds after `begins`."""

    @classmethod
    def name(cls) -> str:
        """As which it is registered."""
        return "trace_rows"

    def schema(self) -> str:
        """The columns."""
        return "number long, due timestamp"

    def streamReader(self, schema: Any) -> TraceRowsReader:  # noqa: N802, ARG002 - Spark's name
        """What reads it."""
        return TraceRowsReader(self.options)


class TraceRowsReader(DataSourceStreamReader):
    """An offset is a number of rows; those that are due are there."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._times_s = np.load(options["file"])
        self._begins_s = float(options["begins"])

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """None yet."""
        return {"rows": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802, ARG002
        """What is due by now."""
        return {"rows": max(start["rows"], due(self._times_s, time.time() - self._begins_s))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """The rows in turn."""
        first, last = start["rows"], end["rows"]
        return [InputPartition((first + n, last, PARTS)) for n in range(min(PARTS, last - first))]

    def read(self, partition: InputPartition) -> Iterator[tuple[int, Any]]:
        """Some of the rows."""
        for number in range(*partition.value):
            yield number, datetime.fromtimestamp(self._begins_s + float(self._times_s[number]), UTC)


def due(times_s: np.ndarray[Any, Any], passed_s: float) -> int:
    """How many rows have come."""
    return int(np.searchsorted(times_s, passed_s + 1e-6, side="right"))


def waits(row_s: float) -> Any:
    """A function for `mapInArrow` that waits for each row."""

    def waited(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(row_s * batch.num_rows)
            yield batch

    return waited
