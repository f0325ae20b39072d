"""What a keeper has left in its store can be played again."""

from __future__ import annotations

import math
import time
from contextlib import closing
from pathlib import Path

import pytest

from penstock.advise.kept_run import is_store, kept_load
from penstock.advise.replay import Rules, replay
from penstock.attached.model.demand import Promise
from penstock.attached.model.need import Bounds
from penstock.errors import InputError
from penstock.metrics import schema
from penstock.metrics.rows import RunRow
from penstock.metrics.store import Store
from tests.unit.attached.stores import kept_store


@pytest.fixture
def place(tmp_path: Path) -> str:
    """The store of a keeper of a query with 60 rows a second, on paper."""
    return kept_store(tmp_path / "metrics.db", came=lambda s: int(60 * s), until_s=600.0)


def test_the_load_of_a_keeper(place: str) -> None:
    store = Store(place, must_exist=True)
    load = kept_load(store, Promise(10.0))
    store.close()
    (query,) = load.queries
    assert (query.name, query.trigger_s, load.slots_each) == ("clicks", 5.0, 2)
    assert query.rows == pytest.approx(60 * 590, rel=0.05)
    assert load.seconds == 595.0
    assert load.was.executor_seconds == pytest.approx(load.was.executors[-1][1] * 600, rel=0.2)
    again = replay(load, "psps", Rules(promise=Promise(10.0), bounds=Bounds(1, 8)))
    assert again.executor_seconds == pytest.approx(load.was.executor_seconds, rel=0.25)
    assert again.late_ratio < 0.05


def test_advice_costs_what_its_executors_cost(tmp_path: Path) -> None:
    """Nothing of them was in the store, and what had been was taken for free."""
    place = kept_store(tmp_path / "advice.db", mode="advise", first=6, until_s=200.0)
    with closing(Store(place, must_exist=True)) as store:
        load = kept_load(store, Promise(10.0))
    assert load.was.executor_seconds == 6 * 195.0
    assert {number for _, number in load.was.executors} == {6}


def test_executors_that_are_not_in_the_store_are_not_known(place: str) -> None:
    with closing(Store(place, must_exist=True)) as store:
        run, all_of_it = store.run().run, kept_load(store, Promise(10.0)).was
        some = schema.workers.delete().where(schema.workers.c.number.between(10, 19))
        with store._engine.begin() as connection:
            connection.execute(some)
        was = kept_load(store, Promise(10.0), run).was
        assert was.executor_seconds == pytest.approx(all_of_it.executor_seconds, rel=0.05)  # as in the one before
        with store._engine.begin() as connection:
            connection.execute(schema.workers.delete())
        was = kept_load(store, Promise(10.0), run).was
        assert (math.isnan(was.executor_seconds), was.executors, was.changes) == (True, (), 0)


def test_what_is_no_keepers(tmp_path: Path, place: str) -> None:
    store = Store(str(tmp_path / "other.db"))
    store.start_run(RunRow(run="r1", topology="twitter", policy="psps", td_s=5, started_at=f"{time.time()}"))
    with pytest.raises(InputError, match="run 'r1': must be of a keeper; it is a run of twitter"):
        kept_load(store, Promise(10.0))
    store.close()
    (tmp_path / "notes").write_text("notes")
    assert (is_store(Path(place)), is_store(tmp_path / "notes")) == (True, False)
