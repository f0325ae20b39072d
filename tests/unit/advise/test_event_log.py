"""The log of two real queries on Spark 4.3: what its batches took, and its executors."""

from __future__ import annotations

import json
from pathlib import Path

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


def test_an_earlier_sparks_settings_are_pairs_and_lines_may_be_strange(tmp_path: Path) -> None:
    log = tmp_path / "app-3.4"
    lines = LOG.read_text().splitlines()
    lines[0] = '{"Event":"SparkListenerLogStart","Spark Version":"3.4.1"}'
    lines.insert(1, '{"Event":"SparkListenerEnvironmentUpdate","Spark Properties":[["spark.task.cpus","2"]]}')
    lines = [line for line in lines if '"Spark Properties":{' not in line]
    lines += ['{"Event":"SomethingNew"}', "not json", '{"Event":"SparkListenerExecutorRemoved"', ""]
    log.write_text("\n".join(lines[:-2]) + "\n")
    found = read_log(log)
    assert (found.version, found.slots_each) == ("3.4.1", 1)


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
