"""Two runs side by side: what they came to is what the store has, and time is since each one's start."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.metrics.rows import RunRow
from penstock.metrics.store import Store
from penstock.ui.compare import placed, side_by_side, totals_of
from penstock.ui.series import RunSeries

from .conftest import RUN, TD_S, Make
from .test_app import read


def test_totals_are_those_of_the_rows(store: Store) -> None:
    rows = store.intervals(RUN)
    found = totals_of(store, RUN)
    assert found["intervals"] == 3
    assert found["seconds"] == 6.0
    assert found["events"] == sum(row.entered for row in rows)
    assert found["replica_seconds"] == sum(row.replicas * row.interval_s for row in rows)
    assert (found["most_replicas"], found["most_backlog"]) == (6, 60)
    assert found["mean_ms"] == pytest.approx((12.5 * 1 + 25.0 * 2 + 37.5 * 3) / 6)
    assert found["late_percent"] == pytest.approx(100 / 6)
    assert (found["promised_percent"], found["target_ms"]) == (1.0, 80.0)
    assert (found["changes"], found["orders"], found["faults"], found["stood_still_s"]) == (6, 0, 1, 1.5)


def test_of_a_run_that_promised_nothing_lateness_is_not_known(store: Store, make: Make) -> None:
    store.start_run(RunRow(run="plain", topology="t", policy="p", td_s=1, started_at="2026-01-01T00:00:00Z"))
    store.write("plain", replace(make(1), lateness=()))
    assert totals_of(store, "plain")["late_percent"] is None
    assert totals_of(store, "nobody")["seconds"] is None


def test_both_begin_at_nothing_and_the_shorter_ends_first(store: Store, make: Make) -> None:
    store.start_run(RunRow(run="later", topology="t", policy="p", td_s=TD_S, started_at="2026-01-01T00:00:00Z"))
    for number in (1, 2):
        one = make(number)
        store.write("later", replace(one, interval=replace(one.interval, time_s=one.interval.time_s + 500)))
    series = [RunSeries(store, name) for name in (RUN, "later")]
    for one in series:
        one.refresh()
    found = side_by_side(*series, points=3)
    assert found["times_s"] == [2.0, 4.0, 6.0]
    assert [side["replicas"] for side in found["sides"]] == [[2, 4, 6], [2, 4, None]]
    assert found["sides"][0]["late_percent"] == [0.0, 0.0, 33.33]


def test_runs_without_intervals_have_no_time(store: Store) -> None:
    store.start_run(RunRow(run="new", topology="t", policy="p", td_s=1, started_at="2026-01-01T00:00:00Z"))
    one = RunSeries(store, "new")
    one.refresh()
    assert side_by_side(one, one)["times_s"] == []


@given(
    st.lists(st.tuples(st.floats(0.1, 5), st.none() | st.floats(0, 1e6)), min_size=1, max_size=40),
    st.integers(1, 50),
)
def test_on_any_grid_values_stay_within_what_they_were(
    intervals: list[tuple[float, float | None]], points: int
) -> None:
    times_s = np.cumsum([length_s for length_s, _ in intervals])
    values = np.array([np.nan if value is None else value for _, value in intervals])
    grid_s = np.linspace(times_s[-1] / points, times_s[-1], points)
    found = placed(times_s, values, grid_s)
    known, seen = values[~np.isnan(values)], found[~np.isnan(found)]
    assert len(seen) == 0 or (known.min() - 1e-6 <= seen.min() and seen.max() <= known.max() + 1e-6)
    assert bool(len(seen)) == bool(len(known))


def test_the_page_asks_for_two_runs(url: str, store: Store) -> None:
    found = read(f"{url}api/compare?a={RUN}&b={RUN}")
    assert [one["run"] for one in found["runs"]] == [RUN, RUN]
    assert found["totals"][0] == found["totals"][1] == totals_of(store, RUN)
    assert found["sides"][0] == found["sides"][1]
