"""The keeper's thread: it outlives faults, and ends with the session or its queries."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.attached import keeper as module
from penstock.attached.keeper import Keeper
from penstock.attached.model.demand import Promise
from penstock.attached.model.need import Bounds
from penstock.attached.model.plant import SimulatedExecutors
from penstock.attached.model.progress import Batch
from penstock.attached.options import KeeperOptions
from penstock.errors import InputError
from penstock.metrics.store import Store
from tests.waiting import until


class Watched:
    """A query that says what a test wants."""

    name, trigger_s, restarts = "clicks", 0.0, 0

    def __init__(self) -> None:
        self.gone: str | None = None
        self.dies: BaseException | None = None
        self.asked = 0

    def batches(self) -> Sequence[Batch]:
        self.asked += 1
        if self.dies is not None:
            died, self.dies = self.dies, None
            raise died
        return ()

    def running(self) -> float | None:
        return None

    def absence(self) -> str | None:
        return self.gone


class Session(SimulatedExecutors):
    why: str | None = None

    def ended(self) -> str | None:
        return self.why


@pytest.fixture
def live(tmp_path: Path) -> tuple[Keeper, Watched, Session]:
    session, watched = Session(2, slots_each=2, join_s=1.0, now=time.monotonic), Watched()
    options = KeeperOptions(bounds=Bounds(1, 4), promise=Promise(10.0), forecaster=None, td_s=0.2)
    keeper = Keeper(session, options, tmp_path / "metrics.db")
    keeper.add(watched)
    return keeper, watched, session


def test_a_loop_that_dies_begins_again(
    live: tuple[Keeper, Watched, Session], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "AGAIN_S", 0.05)
    keeper, watched, _ = live
    with keeper.start():
        until(lambda: watched.asked > 1)
        watched.dies = SystemExit(1)  # not even that
        until(lambda: keeper.deaths == 1)
        asked = watched.asked
        until(lambda: watched.asked > asked + 1)
        assert keeper.alive
    assert keeper.reason == "it was stopped"
    assert "the keeper's loop died; it begins again" in caplog.text


def test_a_fault_of_the_session_is_one_interval(live: tuple[Keeper, Watched, Session]) -> None:
    keeper, _, session = live
    slots, session.slots = session.slots, lambda: 1 // 0  # type: ignore[method-assign]
    with keeper.start():
        until(lambda: keeper.state.failures.get("monitor", 0) > 0)
        session.slots = slots  # type: ignore[method-assign]
        until(lambda: keeper.state.last is not None and not keeper.state.last.failures)
        assert keeper.deaths == 0


def test_it_ends_with_the_session(live: tuple[Keeper, Watched, Session], tmp_path: Path) -> None:
    keeper, watched, session = live
    keeper.start()
    until(lambda: watched.asked > 1)
    session.why = "the Spark session has ended"
    until(lambda: not keeper._thread.is_alive())
    assert (keeper.alive, keeper.reason) == (False, "the Spark session has ended")
    store = Store(str(tmp_path / "metrics.db"), must_exist=True)
    assert store.run().finished_at is not None
    store.close()
    assert str(keeper).startswith("keeper of simulated: stopped, as the Spark session has ended")


def test_it_ends_when_its_queries_are_gone_for_long(
    live: tuple[Keeper, Watched, Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, watched, session = live
    watched.gone = "the query has ended: it was stopped"
    keeper.start()
    until(lambda: watched.asked > 2)
    assert keeper.alive  # it may be started again
    monkeypatch.setattr(module, "AWAY_S", 0.1)
    until(lambda: not keeper._thread.is_alive())
    assert keeper.reason == "no query is left: clicks ended"
    assert session.count() == 2  # as it was


def test_one_of_two_queries_that_is_gone_for_long_needs_nothing_any_more(
    live: tuple[Keeper, Watched, Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AWAY_S", 0.1)
    keeper, *_ = live
    other = Watched()
    other.name = "counts"
    keeper.add(other)
    with keeper.start():
        other.gone = "the query has ended: it was stopped"
        until(lambda: set(keeper.queries) == {"clicks"})
        assert set(keeper.monitor.states) == {"clicks"}
        assert keeper.alive


def test_nothing_of_it_is_left(live: tuple[Keeper, Watched, Session]) -> None:
    keeper, *_ = live
    keeper.start().stop()
    keeper.stop()
    assert "penstock-keeper" not in {one.name for one in threading.enumerate()}


def test_a_keeper_that_the_store_refuses_leaves_no_connection(live: tuple[Keeper, Watched, Session]) -> None:
    keeper, _, _ = live
    assert keeper.store is not None
    keeper.store.start_run(keeper._row())
    with pytest.raises(InputError, match="a run's name must be new"):
        keeper.start()
    assert keeper.store._engine.pool.checkedin() == 0  # type: ignore[attr-defined]


def test_a_store_that_cannot_be_told_of_the_end_is_closed(
    live: tuple[Keeper, Watched, Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, _, _ = live
    assert keeper.store is not None
    keeper._enter()
    monkeypatch.setattr(keeper.store, "finish_run", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        keeper._close()
    assert keeper.store._engine.pool.checkedin() == 0  # type: ignore[attr-defined]
