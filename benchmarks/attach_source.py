"""Rows of a trace in the driver's memory, and functions that wait for each of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

PARTS = 8  # of a batch, so that more slots help
_MEMORY = "org.apache.spark.sql.execution.streaming.runtime.MemoryStream"


class FedRows(threading.Thread):
    """Rows with their number and when they are due, in seconds after the beginning; they are there from then on.

    Nothing of it runs on executors, where a source in Python would take more than the queries. Offsets are rows.
    """

    def __init__(self, spark: SparkSession, times_s: Any) -> None:
        super().__init__(daemon=True)
        jvm: Any = spark._jvm
        strings = getattr(jvm, "org.apache.spark.sql.Encoders").STRING()
        self._stream = getattr(jvm, _MEMORY).apply(spark._jsparkSession, PARTS, strings)
        self._to_seq = getattr(jvm, "org.apache.spark.api.python.PythonUtils").toSeq
        self._times_s = times_s
        self._stopped = threading.Event()
        self.begins_s = 0.0
        number, due = (sql.split("value", " ")[place] for place in range(2))
        due = due.cast("double").cast("timestamp")
        self.frame = DataFrame(self._stream.toDF(), spark).select(number.cast("long").alias("number"), due.alias("due"))

    def run(self) -> None:
        """Add rows, each when it is due."""
        for number, time_s in enumerate(self._times_s.tolist()):
            due_s = self.begins_s + time_s
            if self._stopped.wait(max(0.0, due_s - time.time())):
                return
            self._stream.addData(self._to_seq([f"{number} {due_s}"]))

    def stop(self) -> None:
        """Add no more."""
        self._stopped.set()
        self.join()


def rows_between(source: dict[str, Any]) -> tuple[int, int]:
    """The first row of a batch, and the first after it, from what its progress says of the source.

    >>> rows_between({"startOffset": None, "endOffset": 4}), rows_between({"startOffset": "4", "endOffset": "9"})
    ((0, 5), (5, 10))
    """
    first, last = (-1 if source[which] is None else int(source[which]) for which in ("startOffset", "endOffset"))
    return first + 1, last + 1


def waits(row_s: float) -> Any:
    """A function for `mapInArrow` that waits for each row."""

    def waited(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(row_s * batch.num_rows)
            yield batch

    return waited


def waited_in_java(frame: DataFrame, row_s: float) -> DataFrame:
    """The rows, each of which waits without a Python worker."""
    return frame.where(f"reflect('java.lang.Thread', 'sleep', {round(1000 * row_s)}L) = 'null'")
