"""Which queries can be attached to; what is seen of them is tested on Spark."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.attached.spark_query import SparkQuery, trigger_s
from penstock.attached.spark_session import executor_settings
from penstock.errors import InputError
from penstock.infra.executors import SETTINGS

LISTED: list[Any] = []  # the queries that Spark has as active
SESSION = SimpleNamespace(sparkContext=lambda: None, streams=lambda: SimpleNamespace(active=lambda: LISTED))


def java(
    trigger: str, interval_ms: int = 0, *, active: bool = True, name: str | None = "clicks", run: str = "first"
) -> Any:
    """Java's side of a query, as far as it is asked here."""
    kind = SimpleNamespace(getSimpleName=lambda: trigger)
    made = SimpleNamespace(getClass=lambda: kind, intervalMs=lambda: interval_ms)
    return SimpleNamespace(
        isActive=lambda: active,
        name=lambda: name,
        id=lambda: SimpleNamespace(toString=lambda: "14ba9a6b-8188-421e-9e61-fffee195ff0d"),
        runId=lambda: SimpleNamespace(toString=lambda: run),
        exception=lambda: SimpleNamespace(isDefined=lambda: False),
        sparkSession=lambda: SESSION,
        streamingQuery=lambda: SimpleNamespace(trigger=lambda: made),
    )


def test_triggers_that_go_on() -> None:
    assert trigger_s(java("ProcessingTimeTrigger", 2000)) == 2.0
    assert trigger_s(java("ProcessingTimeTrigger")) == 0.0


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("OneTimeTrigger$", "once"),
        ("AvailableNowTrigger$", "availableNow"),
        ("ContinuousTrigger", "continuous"),
        ("RealTimeTrigger", "realTime"),
        ("NewTrigger", "NewTrigger"),
    ],
)
def test_triggers_that_do_not(kind: str, said: str) -> None:
    with pytest.raises(InputError, match=f"^query 'clicks': its trigger must be processingTime, or none; got {said}$"):
        trigger_s(java(kind))


def test_a_query_that_was_started_again_is_followed_once() -> None:
    """One that is just ending is not active, and listed as active still: it was taken for its own successor."""
    first, second = java("ProcessingTimeTrigger"), java("ProcessingTimeTrigger", run="second")
    query = SparkQuery(SimpleNamespace(_jsq=first))
    first.isActive = lambda: False
    LISTED[:] = [first]
    assert query.absence() == "the query has ended: it was stopped"
    assert (query.run_id, query.restarts) == ("first", 0)
    LISTED[:] = [first, second]
    assert query.absence() is None
    assert (query.run_id, query.restarts) == ("second", 1)
    assert query.absence() is None
    assert query.restarts == 1


def test_a_query_that_has_ended() -> None:
    with pytest.raises(InputError, match=r"^query '14ba9a6b': must be running; it has ended$"):
        SparkQuery(SimpleNamespace(_jsq=java("ProcessingTimeTrigger", active=False, name=None)))


def test_something_else_than_a_query() -> None:
    """Spark Connect's queries have their driver elsewhere."""
    with pytest.raises(InputError, match=r"must be given a query whose driver is this process; got builtins\.str"):
        SparkQuery("clicks")


def test_the_settings_that_are_asked_for_have_those_of_executors() -> None:
    assert executor_settings().items() >= SETTINGS.items()


class Jobs(list[int]):
    """An array of Java's, which counts how often it is read."""

    def __init__(self, jobs: list[int]) -> None:
        super().__init__(jobs)
        self.read = 0

    def __getitem__(self, place: Any) -> Any:
        self.read += 1
        return super().__getitem__(place)

    def __iter__(self) -> Any:
        for place in range(len(self)):
            yield self[place]


class Status:
    """Spark's status store: a job for each batch, of one stage that took a second, the newest first."""

    def __init__(self) -> None:
        self.jobs = Jobs([])
        self.batch_of: dict[int, int | None] = {}
        self.asked: list[int] = []

    def getJobIdsForGroup(self, _: str) -> Jobs:  # noqa: N802 - Spark's name
        return self.jobs

    def add(self, *batches: int | None) -> None:
        for batch in batches:
            self.batch_of[len(self.batch_of)] = batch
        self.jobs = Jobs(sorted(self.batch_of, reverse=True))

    def job(self, number: int) -> Any:
        self.asked.append(number)
        batch, stages = self.batch_of[number], SimpleNamespace(size=lambda: 1, apply=lambda _: number)
        told = SimpleNamespace(isDefined=lambda: True, get=lambda: "own" if batch is None else f"q\nbatch = {batch}")
        return SimpleNamespace(description=lambda: told, stageIds=lambda: stages)

    def lastStageAttempt(self, _: int) -> Any:  # noqa: N802 - Spark's name
        return SimpleNamespace(executorRunTime=lambda: 1000, numTasks=lambda: 4)


def progress(batch: int) -> Any:
    stamp = f"2026-11-18T10:{batch // 60:02}:{batch % 60:02}.000Z"
    told = {"batchId": batch, "timestamp": stamp, "numInputRows": 10, "durationMs": {"triggerExecution": 900}}
    return SimpleNamespace(timestamp=lambda: stamp, json=lambda: json.dumps(told))


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> tuple[SparkQuery, Status, list[Any]]:
    """A query, what Spark's status store has of it, and its progress."""
    status, told = Status(), list[Any]()
    context = SimpleNamespace(statusStore=lambda: status, statusTracker=lambda: status)
    monkeypatch.setattr(SESSION, "sparkContext", lambda: context)
    first = java("ProcessingTimeTrigger", 1000)
    first.recentProgress = lambda: told
    return SparkQuery(SimpleNamespace(_jsq=first)), status, told


def test_a_look_reads_no_more_of_the_jobs_than_are_new(watched: tuple[SparkQuery, Status, list[Any]]) -> None:
    """All were read at each look, a call into Java for each: with the thousand that Spark keeps, percents of a core."""
    query, status, told = watched
    status.add(*range(900))
    told += [progress(batch) for batch in range(800, 900)]
    assert [one.core_s for one in query.batches()][-20:] == [1.0] * 20
    status.add(900, 901)  # the second still runs
    told.append(progress(900))
    assert [(one.core_s, one.tasks) for one in query.batches()] == [(1.0, 4)]
    assert status.jobs.read < 10
    told.append(progress(901))
    assert [one.core_s for one in query.batches()] == [1.0]


def test_jobs_that_say_no_batch_are_looked_at_once(watched: tuple[SparkQuery, Status, list[Any]]) -> None:
    """A function that writes batches may describe jobs itself: all of these were looked at again and again."""
    query, status, told = watched
    status.add(*[None] * 300)
    told.append(progress(0))
    assert [one.core_s for one in query.batches()] == [None]
    status.asked.clear()
    status.add(1, None, 2, None)
    told.append(progress(1))
    assert [one.core_s for one in query.batches()] == [1.0]
    told.append(progress(2))
    assert [one.core_s for one in query.batches()] == [1.0]
    assert len(status.asked) < 10
