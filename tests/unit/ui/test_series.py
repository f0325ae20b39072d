"""A long run in few points."""

from __future__ import annotations

from contextlib import closing

import msgspec

from penstock.metrics.store import Store
from penstock.ui.decided import Lately
from penstock.ui.operators import operator_series, replicas_over_time
from penstock.ui.series import POINTS, RunSeries
from tests.services.database import Database

from .conftest import RUN, Make


def test_many_intervals_become_few_points_with_mean_and_most(store: Store, make: Make) -> None:
    for number in range(4, 12):
        store.write(RUN, make(number))
    series = RunSeries(store, RUN)
    assert series.refresh() == 11
    found = series.overview(points=4)
    assert (found["width"], found["count"], found["first"]) == (3, 11, 1)
    assert found["numbers"] == [3, 6, 9, 11]
    assert found["mean"]["entered"] == [200.0, 500.0, 800.0, 1050.0]
    assert found["most"]["entered"] == [300.0, 600.0, 900.0, 1100.0]
    assert found["mean"]["p99_ms"] == [90.0, 90.0, 90.0, 90.0]  # the second interval has none


def test_only_what_is_new_is_read_and_given(store: Store, make: Make) -> None:
    series = RunSeries(store, RUN)
    series.refresh()
    assert series.since(3)["numbers"] == []
    store.write(RUN, make(5))  # the fourth was missed
    series.refresh()
    assert series.since(3)["numbers"] == [5]
    assert series.since(3)["mean"]["expected"] == [None]  # nobody forecast two steps ahead but the third, for the fifth
    assert series.since(3)["mean"]["expected_high"] == [320.0]
    assert series.since(None)["numbers"] == [1, 2, 3, 5]


def test_checkpoints_over_time(store: Store, make: Make) -> None:
    series = RunSeries(store, RUN)
    series.refresh()
    store.write(RUN, make(4))
    series.refresh()
    found = series.overview()["mean"]
    assert found["checkpoint_age_ms"] == [25_000.0, 50_000.0, 75_000.0, 100_000.0]
    assert found["checkpoint_ms"] == [None, 20.0, 40.0, 60.0]


def test_a_run_without_intervals_is_empty(store: Store) -> None:
    series = RunSeries(store, "none")
    assert series.refresh() is None
    assert series.overview()["numbers"] == []
    assert operator_series(store, "none", "count")["number"] == []
    assert replicas_over_time(store, "none") == {"numbers": [], "replicas": {}}


def test_operators_over_time_have_few_points_too(store: Store, make: Make) -> None:
    for number in range(4, 12):
        store.write(RUN, make(number))
    found = operator_series(store, RUN, "count", points=4)
    assert found["number"] == [3, 6, 9, 11]
    assert found["received"] == [51.0, 52.5, 54.0, 55.25]
    assert found["backlog"] == [30, 60, 90, 110]
    assert replicas_over_time(store, RUN, points=4)["numbers"] == [2, 5, 8, 11]


def test_what_waits_is_read_of_as_many_intervals_as_are_shown(store: Store, make: Make) -> None:
    """All of it would be most of the time of the first view; the newest is always among them."""
    for number in range(4, POINTS + 101):
        store.write(RUN, make(number))
    series = RunSeries(store, RUN)
    series.refresh()
    found = series.overview()
    assert found["width"] == 2
    assert None not in found["mean"]["booked"]
    assert found["mean"]["booked"][-1] == 2 * (POINTS + 100)


def test_of_postgresql_the_page_reads_the_same(store: Store, make: Make, database: Database) -> None:
    """Rows are read as the database has them, and each has its own kinds of numbers."""

    def page(of: Store) -> object:
        series, lately = RunSeries(of, RUN), Lately(of, RUN).at(3)
        series.refresh()
        shown = [series.overview(), operator_series(of, RUN, "count"), replicas_over_time(of, RUN), lately.refusals()]
        return msgspec.json.decode(msgspec.json.encode(shown))

    with closing(Store(database.url)) as other:
        other.start_run(store.run(RUN), store.promise(RUN))
        for number in (1, 2, 3):
            other.write(RUN, make(number))
        assert page(other) == page(store)
