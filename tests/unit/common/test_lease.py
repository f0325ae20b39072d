"""One driver at a time, by a lock or by a lease."""

from __future__ import annotations

import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.common import lease
from penstock.common.lease import alone_in
from penstock.common.storage import Storage, storage_at
from penstock.errors import EngineError
from tests.services.hdfs import Hdfs
from tests.waiting import LONG_S, until


@pytest.fixture
def away() -> Storage:
    """A folder where the operating system has no locks."""
    pytest.importorskip("fsspec")
    return storage_at(f"fsspec+memory://{uuid.uuid4().hex}/run")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("BEAT_S", 0.05), ("STALE_S", 1.0), ("SETTLE_S", 0.1), ("LOOK_EVERY_S", 0.02)):
        monkeypatch.setattr(lease, name, value)


def test_one_driver_at_a_time_works_in_a_folder(tmp_path: Path) -> None:
    """A service manager started a second one beside one that hung; both wrote segments and records."""
    storage = storage_at(tmp_path / "run")
    busy = pytest.raises(EngineError, match=r"another driver is at work on this run")
    with alone_in(storage) as held, busy, alone_in(storage):
        pass
    with alone_in(storage):
        held.check()


def test_one_driver_at_a_time_holds_the_lease(away: Storage) -> None:
    busy = pytest.raises(EngineError, match=r"run: another driver, on .*, process \d+, holds this run; one driver at")
    with alone_in(away) as held:
        with busy, alone_in(away):
            pass
        held.check()


def test_a_lease_that_was_given_back_is_free_at_once(away: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    with alone_in(away):
        assert away.names() == ["lock"]
    assert away.names() == []
    monkeypatch.setattr(lease, "STALE_S", 100.0)
    with alone_in(away) as held:
        held.check()


def test_a_lease_that_stands_still_is_nobodys(away: Storage) -> None:
    """Its driver was killed."""
    away.write("lock", b'{"owner": "x", "where": "there", "beat": 7}')
    begun_s = time.monotonic()
    with alone_in(away) as held:
        assert time.monotonic() - begun_s >= 1.0
        held.check()


def test_a_lease_that_is_renewed_is_somebodys(away: Storage) -> None:
    with alone_in(away) as held:
        before = away.read("lock")
        until(lambda: away.read("lock") != before)
        held.check()


def test_who_was_taken_for_dead_may_do_nothing_any_more(away: Storage) -> None:
    """A driver that was stopped for a minute went on as if it were alone."""
    with alone_in(away) as held:
        away.write("lock", b'{"owner": "other", "where": "there, process 8"}')
        with pytest.raises(EngineError, match="another driver, on there, process 8, holds this run"):
            held.check()
        until(lambda: held.failure is not None)
        with pytest.raises(EngineError, match="another driver"):
            held.check()
    assert b"other" in away.read("lock")  # it is not taken back, nor given back


def test_who_notices_that_it_was_replaced_says_so_without_being_asked(away: Storage) -> None:
    with alone_in(away) as held:
        away.write("lock", b'{"owner": "other", "where": "there, process 8"}')
        until(lambda: held.failure is not None)
    assert b"other" in away.read("lock")


def test_of_two_at_the_same_moment_one_has_it(away: Storage) -> None:
    """Each writes it, and looks again after a moment."""
    held, refused = [], []
    together, over = threading.Barrier(2), threading.Event()

    def want() -> None:
        together.wait()
        try:
            with alone_in(away):
                held.append(1)
                over.wait(LONG_S)
        except EngineError as error:
            refused.append(error)

    threads = [threading.Thread(target=want) for _ in range(2)]
    for one in threads:
        one.start()
    until(lambda: len(held) + len(refused) == 2)
    over.set()
    for one in threads:
        one.join(LONG_S)
    assert (len(held), len(refused)) == (1, 1)


def test_a_lease_that_cannot_be_renewed_for_a_while_stays_ours(away: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    with alone_in(away) as held:
        with monkeypatch.context() as patch:
            broken = []
            patch.setattr(type(away), "read", lambda *_: broken.append(1) or (_ for _ in ()).throw(OSError("away")))
            until(lambda: len(broken) > 2)
        before = away.read("lock")
        until(lambda: away.read("lock") != before)
        held.check()


def test_an_hdfs_is_held_by_a_lease(hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "STALE_S", 100.0)
    away = storage_at(hdfs.uri(f"runs/{uuid.uuid4().hex}"))
    with alone_in(away) as held:
        with pytest.raises(EngineError, match=r"another driver, on .*, holds this run"), alone_in(away):
            pass
        held.check()
    assert away.names() == []
    with alone_in(away) as held:
        with suppress(EngineError):
            while True:  # the owner may be about to renew it
                away.write("lock", b'{"owner": "other", "where": "there, process 8"}')
                held.check()
        until(lambda: held.failure is not None)
