"""Progress of real queries of Spark 4.3, as it was recorded: 50 rows a second, two executors of two cores."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.attached.model.demand import Promise
from penstock.attached.model.progress import Batch, offsets_between, parse_progress, waiting_rows
from penstock.attached.model.query import QueryState
from penstock.errors import InputError

DATA = Path(__file__).parent / "data"


def recorded(name: str) -> list[str]:
    return (DATA / f"{name}_4.3.jsonl").read_text().splitlines()


def seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def test_a_query_without_state() -> None:
    """A Python function, `processingTime="2 seconds"`."""
    found = [parse_progress(line) for line in recorded("stateless")]
    start_s = seconds("2026-11-17T22:20:50.002Z")
    assert [one.number for one in found] == [0, 20, 21, 22, 23]
    assert [one.rows for one in found] == [0, 100, 100, 50, 100]
    assert [one.seconds for one in found] == [12.837, 2.093, 1.353, 1.793, 1.058]
    assert [one.offsets for one in found] == [0, 2, 2, 1, 2]  # seconds, of 50 rows each
    assert {one.waiting for one in found} == {0.0}
    assert found[-1] == Batch(
        number=23, start_s=start_s, planned_s=start_s, seconds=1.058, rows=100, waiting=0.0, offsets=2.0
    )


def test_a_query_with_state() -> None:
    """Counts by window, as fast as it goes: the state has four partitions."""
    found = [parse_progress(line) for line in recorded("windowed")]
    assert [one.rows for one in found] == [0, 1150, 250, 200, 150]
    assert {one.state_partitions for one in found} == {4}
    assert found[-1].state_bytes == 8328


def test_delays_are_those_that_the_rows_own_times_tell() -> None:
    """The rate source stamps its rows, and Spark gives the least and the most stamp of a batch; offsets are seconds."""
    query = QueryState("counts", 0.0, Promise(10.0))
    lines = recorded("windowed")[-3:]
    for line in lines:
        query.learn(parse_progress(line))
    rows, total_s = 0, 0.0
    for line in lines[1:]:
        told = json.loads(line)
        end_s = seconds(told["timestamp"]) + told["durationMs"]["triggerExecution"] / 1000
        rows += told["numInputRows"]
        total_s += told["numInputRows"] * (end_s - seconds(told["eventTime"]["avg"]))
    assert query.delays.rows == rows
    assert query.delays.histogram.mean_ms == pytest.approx(1000 * total_s / rows, abs=500)
    assert query.rate(6.0) == pytest.approx(50.0, rel=0.05)


KAFKA = {
    "description": "KafkaV2[Subscribe[clicks]]",
    "startOffset": {"clicks": {"0": 100, "1": 200}},
    "endOffset": {"clicks": {"0": 150, "1": 250}},
    "latestOffset": {"clicks": {"0": 175, "1": 300}},
    "numInputRows": 90,  # the other ten were markers of transactions
}


def test_what_waits_at_a_source_is_in_its_own_offsets() -> None:
    assert waiting_rows([KAFKA]) == pytest.approx(75 * 0.9)
    assert waiting_rows([KAFKA, KAFKA]) == pytest.approx(150 * 0.9)
    assert waiting_rows([KAFKA | {"latestOffset": KAFKA["endOffset"]}]) == 0.0


@pytest.mark.parametrize(
    "source",
    [
        {},
        {"startOffset": {"logOffset": 3}, "endOffset": {"logOffset": 4}, "latestOffset": None, "numInputRows": 9},
        KAFKA | {"latestOffset": "the end"},
        KAFKA | {"startOffset": KAFKA["endOffset"]},
        KAFKA | {"latestOffset": {}},
        KAFKA | {"latestOffset": True},
    ],
)
def test_a_source_that_does_not_say_says_nothing(source: dict[str, Any]) -> None:
    assert waiting_rows([source]) is None


def test_offsets_that_are_no_numbers() -> None:
    assert offsets_between([None], ["somewhere"]) is None
    assert offsets_between([], []) == 0.0


def test_rows_are_added_up_where_spark_has_not_done_so() -> None:
    told = json.loads(recorded("stateless")[-1])
    del told["numInputRows"]
    assert parse_progress(told).rows == 100


@given(st.sampled_from(["timestamp", "batchId", "durationMs", "stateOperators", "sources", "numInputRows"]))
def test_what_is_missing_is_borne_but_for_the_time(key: str) -> None:
    told = json.loads(recorded("windowed")[-1])
    del told[key]
    if key == "timestamp":
        with pytest.raises(InputError, match="progress of batch 12: must have a timestamp"):
            parse_progress(told)
    else:
        assert parse_progress(told).start_s == seconds("2026-11-17T22:20:49.793Z")
