"""What a keeper leaves in its store is enough for the report, the dashboard and `penstock advise`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.metrics.rows import PromiseRow
from penstock.metrics.store import Store
from penstock.ui.moment import moment
from penstock.ui.operators import operator_series, replicas_over_time
from penstock.ui.series import RunSeries
from tests.unit.attached.stores import kept_store


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    return kept_store(tmp_path_factory.mktemp("kept") / "metrics.db")


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    with closing(Store(place, must_exist=True)) as opened:
        yield opened


def test_it_has_the_promise_and_how_many_rows_were_late(store: Store) -> None:
    """Neither was there, and the dashboard's tiles of it were empty."""
    run = store.run().run
    assert store.promise(run) == PromiseRow(late=0.01, target_ms=10_000.0)
    late = {row.number: row.late for row in store.lateness(run)}
    assert late.keys() == {row.number for row in store.intervals(run)}
    assert late[10] == 0
    assert max(late.values()) > 300  # after the jump, until executors have come
    assert sum(late.values()) < sum(row.latency_count for row in store.intervals(run))


def test_the_dashboard_shows_it(store: Store) -> None:
    run = store.run()
    series = RunSeries(store, run.run)
    series.refresh()
    times_s, columns = series.columns()
    assert len(times_s) == 60
    assert np.nanmax(columns["late_percent"]) > 50
    shown = moment(store, run, 40, 0.0)
    assert shown is not None
    assert shown["promise"]["late"] == 0.01
    assert 0 < shown["promise"]["so_far"] < 0.5
    assert len(shown["workers"]) >= 3
    assert [one["operator"] for one in shown["operators"]] == ["clicks"]
    assert len(operator_series(store, run.run, "clicks")["replicas"]) == 60
    assert replicas_over_time(store, run.run)


def test_the_report_draws_it(place: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["report", place, "--html", str(page)])
    assert done.exit_code == 0, done.output
    assert "intervals of clicks under psps" in done.output
    drawn = page.read_text(encoding="utf-8")
    assert drawn.count("data:image") >= 4
    assert ">clicks<" in drawn


def test_advice_has_its_executors_in_the_store(tmp_path: Path) -> None:
    """There were none, and `penstock advise` took what had been for nothing."""
    place = kept_store(tmp_path / "advice.db", mode="advise", first=6, until_s=100.0)
    with closing(Store(place, must_exist=True)) as store:
        run = store.run().run
        found = store.workers(run)
        assert {row.worker for row in found} == {f"executor-{number}" for number in range(6)}
        assert {(row.state, row.capacity) for row in found} == {("available", 2)}
        last = [row for row in found if row.number == store.intervals(run)[-1].number]
        assert len(last) == 6
        assert 0 < sum(row.hosted for row in last) < 12  # what the plan needs of it
