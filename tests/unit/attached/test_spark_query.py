"""Which queries can be attached to; what is seen of them is tested on Spark."""

from __future__ import annotations

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
