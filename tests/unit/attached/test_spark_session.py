"""Which sessions may be acted on, and how large their executors are; what is asked of Spark is tested on Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.attached import spark_session
from penstock.attached.spark_session import SparkApplication, executor_settings
from penstock.errors import InputError


class Listed(list[Any]):
    """A sequence of Scala's."""

    def size(self) -> int:
        return len(self)

    def apply(self, place: int) -> Any:
        return self[place]


class Conf:
    def __init__(self, told: dict[str, str]) -> None:
        self.told = told

    def getAll(self) -> list[tuple[str, str]]:  # noqa: N802 - Spark's
        return list(self.told.items())

    def get(self, key: str, otherwise: str) -> str:
        return self.told.get(key, otherwise)


class Ids:
    """Executors that Spark names, with their cores; some are leaving."""

    def __init__(self, cores: dict[str, int], leaving: frozenset[str] = frozenset()) -> None:
        self.cores = cores
        self.gone = leaving

    def ids(self) -> tuple[str, ...]:
        return tuple(self.cores)

    def leaving(self) -> frozenset[str]:
        return self.gone


def session(
    settings: dict[str, str], master: str = "spark://m:7077", ids: Ids | None = None, *, stopped: bool = False
) -> Any:
    there = ids or Ids({})
    executors = [
        SimpleNamespace(
            id=lambda name=name: name,
            totalCores=lambda cores=cores: cores,
            activeTasks=lambda cores=cores: cores - 1,
            memoryUsed=lambda: 0,
            diskUsed=lambda: 0,
        )
        for name, cores in {"driver": 9, **there.cores}.items()
    ]
    status = SimpleNamespace(executorList=lambda active: Listed(executors))
    backend = SimpleNamespace(getExecutorIds=lambda: Listed(there.ids()))
    java = SimpleNamespace(statusStore=lambda: status, schedulerBackend=lambda: backend, isStopped=lambda: stopped)
    context = SimpleNamespace(
        applicationId="app-1",
        master=master,
        defaultParallelism=6,
        getConf=lambda: Conf(settings),
        _jsc=SimpleNamespace(sc=lambda: java),
    )
    return SimpleNamespace(sparkContext=context)


@pytest.fixture
def acting(monkeypatch: pytest.MonkeyPatch) -> Ids:
    """What the scheduler says of its executors: two of four cores, and one that leaves."""
    found = Ids({"1": 4, "2": 4, "3": 4}, frozenset({"2"}))
    monkeypatch.setattr(spark_session, "Executors", lambda spark: found)
    return found


@pytest.mark.parametrize("on", ["true", "TRUE"])
def test_two_cannot_size_the_same_executors(on: str) -> None:
    told = {**executor_settings(), "spark.dynamicAllocation.enabled": on}
    with pytest.raises(
        InputError,
        match=r"^attach: spark.dynamicAllocation.enabled must be false, as two cannot size the same executors; got t",
    ):
        SparkApplication(session(told), acting=True)
    assert SparkApplication(session(told, ids=Ids({"1": 2})), acting=False).count() == 1


@pytest.mark.parametrize("master", ["local", "local[4]", "local[*]"])
def test_a_session_without_a_cluster_has_no_executors_to_change(master: str) -> None:
    with pytest.raises(InputError, match=r"the session must run on a cluster.*its master is local"):
        SparkApplication(session(executor_settings(), master), acting=True)


def test_in_a_local_session_one_executor_has_all_slots() -> None:
    """It was taken to have one, and advice wanted several of one slot where one of six was there."""
    found = SparkApplication(session({}, "local[6]"), acting=False)
    assert (found.ids(), found.count(), found.slots(), found.slots_each) == (["driver"], 1, 6, 6)
    told = SparkApplication(session({"spark.executor.cores": "2"}, "local[6]"), acting=False)
    assert told.slots_each == 2  # of the executors that it is to have


def test_every_setting_that_is_missing_is_named() -> None:
    told = executor_settings()
    del told["spark.decommission.enabled"]
    told["spark.storage.decommission.enabled"] = "false"
    with pytest.raises(InputError) as caught:
        SparkApplication(session(told), acting=True)
    assert str(caught.value).startswith(
        "attach: the session lacks spark.decommission.enabled=true, spark.storage.decommission.enabled=true: "
        "make it with penstock.executor_settings()"
    )


def test_the_size_of_executors_must_be_known_before_the_first_is_there(acting: Ids) -> None:
    acting.cores = {}
    with pytest.raises(InputError, match=r"spark.executor.cores must be set, as no executor is there yet"):
        SparkApplication(session(executor_settings()), acting=True)
    told = {**executor_settings(), "spark.executor.cores": "4", "spark.task.cpus": "2"}
    assert SparkApplication(session(told), acting=True).slots_each == 2


def test_executors_that_leave_have_no_slots(acting: Ids) -> None:
    found = SparkApplication(session(executor_settings(), ids=acting), acting=True)
    assert (found.ids(), found.count(), found.slots_each, found.slots()) == (["1", "3"], 2, 4, 8)
    assert found.idle_first(["1", "3"]) == ["3", "1"]
    assert found.ended() is None


def test_a_session_that_has_ended() -> None:
    gone = session({}, "local[2]", stopped=True)
    assert SparkApplication(gone, acting=False).ended() == "the Spark session has ended"
    found = SparkApplication(session({}, "local[2]"), acting=False)
    found._context._jsc.sc = lambda: 1 / 0
    assert found.ended() == "the Spark session does not answer: ZeroDivisionError"
