"""`attach` as far as it needs no Spark: names in its options are those of queries."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.attached import attach as module
from penstock.attached.attach import attach
from penstock.attached.model.plant import SimulatedExecutors
from penstock.errors import InputError


@pytest.fixture(autouse=True)
def on_paper(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A session of two executors of four slots, and queries that are named by a text."""

    def query(name: str) -> Any:
        return SimpleNamespace(
            name=name, trigger_s=5.0, restarts=0, batches=lambda: (), running=lambda: None, absence=lambda: None
        )

    def application(spark: Any, *, acting: bool) -> SimulatedExecutors:
        return SimulatedExecutors(2, slots_each=4, join_s=1.0, now=time.monotonic)

    monkeypatch.setattr(module, "SparkQuery", query)
    monkeypatch.setattr(module, "SparkApplication", application)
    monkeypatch.setattr(module, "_session", lambda: None)
    yield
    for keeper in list(module._KEEPERS.values()):
        keeper.stop()
    module._KEEPERS.clear()


def test_a_lag_is_of_a_query_that_is_given() -> None:
    """One under a name that there is not was left out in silence."""
    with pytest.raises(InputError, match=r"^attach: lag, query: no such name 'click'.*did you mean 'clicks'\?$"):
        attach("clicks", lag={"click": lambda: 1.0})
    keeper = attach(["clicks", "counts"], lag={"clicks": lambda: 1.0}, forecaster=None)
    assert set(keeper.monitor.lags) == {"clicks"}


def test_an_event_of_a_query_that_is_not_there_is_said(caplog: pytest.LogCaptureFixture) -> None:
    calendar = "freeze daily 22:00-06:00; least clicks=8,counts=4 mon-fri 08:00-10:00"
    keeper = attach("clicks", forecaster=None, calendar=calendar)
    assert "no query 'counts' is attached" in caplog.text
    caplog.clear()
    assert attach("counts", forecaster=None, calendar=calendar) is keeper
    assert "is attached" not in caplog.text
    with pytest.raises(InputError, match="must be attached with the same options"):
        attach("others", forecaster=None)


def test_an_event_that_asks_for_more_than_there_may_be_is_refused() -> None:
    with pytest.raises(InputError, match="query 'clicks': 8 executors have 32 slots; got 33"):
        attach("clicks", calendar="least clicks=33 daily 08:00-10:00")
