"""What a keeper has left in its store can be played again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from penstock.advise.kept_run import is_store, kept_load
from penstock.advise.replay import Rules, replay
from penstock.attached.keeper import Keeper
from penstock.attached.model.cost import Cost
from penstock.attached.model.demand import Promise
from penstock.attached.model.need import Bounds
from penstock.attached.model.plant import SimulatedExecutors, SimulatedQuery
from penstock.attached.options import KeeperOptions
from penstock.errors import InputError
from penstock.metrics.rows import RunRow
from penstock.metrics.store import Store

COST = Cost(by_row_s=0.04, by_batch_s=0.2, fixed_s=0.5)


@pytest.fixture
def place(tmp_path: Path) -> str:
    """The store of a keeper of a query with 60 rows a second, on paper."""
    now, file = [0.0], str(tmp_path / "metrics.db")
    executors = SimulatedExecutors(1, slots_each=2, join_s=10.0, now=lambda: now[0])
    options = KeeperOptions(bounds=Bounds(1, 8), promise=Promise(10.0), policy="psps", forecaster=None)
    keeper = Keeper(executors, options, file)
    query = SimulatedQuery("clicks", 5.0, COST, lambda s: int(60 * s))
    keeper.add(query)
    assert keeper.store is not None
    keeper.store.start_run(keeper._row())
    while now[0] < 600.0:
        now[0] += 0.5
        query.advance(now[0], executors.slots())
        if now[0] % 5 == 0:
            keeper.step(now[0])
    keeper._close()
    return file


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


def test_what_is_no_keepers(tmp_path: Path, place: str) -> None:
    store = Store(str(tmp_path / "other.db"))
    store.start_run(RunRow(run="r1", topology="twitter", policy="psps", td_s=5, started_at=f"{time.time()}"))
    with pytest.raises(InputError, match="run 'r1': must be of a keeper; it is a run of twitter"):
        kept_load(store, Promise(10.0))
    store.close()
    (tmp_path / "notes").write_text("notes")
    assert (is_store(Path(place)), is_store(tmp_path / "notes")) == (True, False)
