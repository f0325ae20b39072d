"""The log of two real queries on Spark 4.3: what its batches took, and its executors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.advise.event_log import LoggedApplication, guessed_trigger_s, read_log
from penstock.attached.model.progress import Batch
from penstock.errors import InputError

LOG = Path(__file__).parent / "data" / "app-4.3"


def test_an_application_with_its_queries() -> None:
    found = read_log(LOG)
    assert (found.id, found.version, found.ended) == ("app-20261117221903-0000", "4.3.0", True)
    assert found.slots_each == 2
    queries = {one.name: one for one in found.queries.values()}
    assert {name: (one.trigger_s, len(one.batches)) for name, one in queries.items()} == {
        "slow": (2, 25),
        "counts": (0.0, 13),
    }
    last = queries["slow"].batches[-1]
    assert (last.number, last.rows, last.seconds, last.core_s, last.tasks, last.slots) == (24, 100, 1.167, 0.805, 4, 4)
    assert queries["counts"].batches[-1].state_partitions == 4


def test_work_is_that_of_all_tasks_of_a_batch() -> None:
    found = read_log(LOG)
    total_s = sum(one.core_s or 0.0 for query in found.queries.values() for one in query.batches)
    run_ms, stages = 0, set()
    lines = [json.loads(line) for line in LOG.read_text().splitlines()]
    ended = {(one.id, batch.number) for one in found.queries.values() for batch in one.batches if batch.rows}
    for told in lines:
        named = told.get("Properties", {})
        if (named.get("sql.streaming.queryId"), int(named.get("streaming.sql.batchId", -1))) in ended:
            stages.update(told["Stage IDs"])
    for told in lines:
        if told["Event"] == "SparkListenerTaskEnd" and told["Stage ID"] in stages:
            run_ms += told["Task Metrics"]["Executor Run Time"]
    assert total_s == pytest.approx(run_ms / 1000)


def test_executors_over_time() -> None:
    found = LoggedApplication(executors=[(10.0, "0", 4), (20.0, "1", 4), (50.0, "0", 0)])
    assert found.executor_times() == [(10.0, 1), (20.0, 2), (50.0, 1)]
    assert found.executor_seconds(0.0, 60.0) == 10 + 60 + 10
    assert found.executor_seconds(30.0, 40.0) == 20
    assert found.slots_between(21.0, 49.0) == 8
    assert found.slots_between(19.0, 21.0) is None
    assert found.slots_between(0.0, 5.0) is None


def test_lines_may_be_strange(tmp_path: Path) -> None:
    log = tmp_path / "app-4.3.inprogress"
    strange = ['{"Event":"SomethingNew"}', "not json", '{"Event":"SparkListenerExecutorRemoved"']
    log.write_text(LOG.read_text() + "\n".join(strange))
    assert read_log(log).queries.keys() == read_log(LOG).queries.keys()


EARLIER_ID = "8d268dc2-bc9c-4be8-97a9-b135d2943028"


def earlier(version: str, batches: int = 3) -> list[dict[str, Any]]:
    """What Spark 3.x writes, by the logs that its own tests have: settings are a mapping, as in 4.x.

    Its progress has no rows of the whole query, no latest offsets and no partitions of state, and names no query.
    """
    told: list[dict[str, Any]] = [
        {"Event": "SparkListenerLogStart", "Spark Version": version},
        {
            "Event": "SparkListenerExecutorAdded",
            "Timestamp": 1596020212090,
            "Executor ID": "0",
            "Executor Info": {"Host": "here", "Total Cores": 4, "Log Urls": {}, "Resource Profile Id": 0},
        },
        {
            "Event": "SparkListenerEnvironmentUpdate",
            "JVM Information": {"Java Version": "1.8.0_252 (Oracle Corporation)"},
            "Spark Properties": {"spark.task.cpus": "2", "spark.app.name": "StructuredKafkaWordCount"},
            "Classpath Entries": {},
        },
        {"Event": "SparkListenerApplicationStart", "App Name": "words", "App ID": "app-3", "Timestamp": 1596020211915},
    ]
    for number in range(batches):
        told += earlier_batch(number)
    return told


def earlier_batch(number: int) -> list[dict[str, Any]]:
    """A batch of 3 rows, on one task of half a second."""
    source = {
        "description": "KafkaV2[Subscribe[words]]",
        "startOffset": {"words": {"0": 3 * number}} if number else None,
        "endOffset": {"words": {"0": 3 * number + 3}},
        "numInputRows": 3,
        "inputRowsPerSecond": 0.6,
        "processedRowsPerSecond": 3.0,
    }
    progress = {
        "id": EARLIER_ID,
        "runId": "e225d92f-2545-48f8-87a2-9c0309580f8a",
        "name": None,
        "timestamp": f"2020-07-29T10:57:{5 * number:02}.000Z",
        "batchId": number,
        "batchDuration": 1000,
        "durationMs": {"triggerExecution": 1000, "latestOffset": 4, "addBatch": 900},
        "eventTime": {},
        "stateOperators": [{"numRowsTotal": 3, "numRowsUpdated": 3, "memoryUsedBytes": 1200, "customMetrics": {}}],
        "sources": [source],
        "sink": {"description": "ConsoleTable", "numOutputRows": -1},
        "observedMetrics": {},
    }
    of_it = {"sql.streaming.queryId": EARLIER_ID, "streaming.sql.batchId": str(number)}
    metrics = {"Executor Deserialize Time": 361, "Executor Run Time": 503, "Executor CPU Time": 466139164}
    return [
        {"Event": "SparkListenerJobStart", "Job ID": number, "Stage IDs": [number], "Properties": of_it},
        {"Event": "SparkListenerTaskEnd", "Stage ID": number, "Stage Attempt ID": 0, "Task Metrics": metrics},
        {"Event": "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent", "progress": progress},
    ]


@pytest.mark.parametrize("version", ["3.1.0", "3.4.1", "3.5.7"])
def test_a_log_of_an_earlier_spark(version: str, tmp_path: Path) -> None:
    """Its settings were said to be pairs, which no Spark writes."""
    log = tmp_path / "app-3"
    log.write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in earlier(version)))
    found = read_log(log)
    assert (found.version, found.id, found.slots_each) == (version, "app-3", 2)
    (query,) = found.queries.values()
    assert (query.name, [one.rows for one in query.batches]) == (EARLIER_ID[:8], [3, 3, 3])
    last = query.batches[-1]
    assert (last.seconds, last.core_s, last.tasks, last.offsets, last.waiting) == (1.0, 0.503, 1, 3.0, None)
    assert last.state_partitions is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("notes\n", "must begin as Spark's do; is it another file"),
        (
            '{"Event":"SparkListenerLogStart","Spark Version":"4.0.0"}\n',
            "must have a query with rows; it has 0 queries",
        ),
    ],
)
def test_a_file_that_helps_nobody(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(text)
    with pytest.raises(InputError, match=said):
        read_log(tmp_path / "log")


def batches(*starts_s: float, seconds: float = 0.5) -> list[Batch]:
    return [Batch(number=n, start_s=s, planned_s=s, seconds=seconds, rows=9) for n, s in enumerate(starts_s)]


def test_the_trigger_is_guessed_from_when_batches_begin() -> None:
    assert guessed_trigger_s(batches(*(10.0 * n for n in range(20)))) == 10
    assert guessed_trigger_s(batches(*(1000.003 + 2.0 * n for n in range(20)))) == 2
    assert guessed_trigger_s(batches(*(0.52 * n for n in range(20)))) == 0.0
    late = [*(5.0 * n for n in range(10)), 50.0, 62.3, 65.0, 70.0]  # one that was late began at once
    found = batches(*late)
    found[10] = Batch(number=10, start_s=50.0, planned_s=50.0, seconds=12.3, rows=9)
    assert guessed_trigger_s(found) == 5
    assert guessed_trigger_s([]) == 0.0
