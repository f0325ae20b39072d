"""Destinations that are away: waited for, and no longer than the run lasts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.errors import EngineError
from penstock.sinks import waiting as module
from penstock.sinks.waiting import Waiting, giving_up
from tests.waiting import LONG_S


@pytest.fixture(autouse=True)
def long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 10 * LONG_S)


def ends_soon(wait: Callable[[], None], ending: threading.Event) -> None:
    begun_s = time.monotonic()
    threading.Timer(0.1, ending.set).start()
    with pytest.raises(EngineError, match="table 'x': no longer waited for, as the run ends; it is refused"):
        wait()
    assert time.monotonic() - begun_s < LONG_S


def test_nobody_waits_longer_than_the_run_lasts() -> None:
    """A run that was stopped while its database was away ended after a quarter of an hour."""
    ending, waiting = threading.Event(), Waiting("table 'x'")
    with giving_up(ending):
        ends_soon(lambda: waiting.pause("it is refused"), ending)


def test_what_another_thread_waits_for_is_given_up_too() -> None:
    ending = threading.Event()
    with giving_up(ending), ThreadPoolExecutor() as pool:
        ends_soon(lambda: pool.submit(Waiting("table 'x'").pause, "it is refused").result(), ending)


def test_who_waits_elsewhere_waits_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.05)
    ending = threading.Event()
    ending.set()
    with giving_up(ending):
        pass
    Waiting("table 'x'").pause("it is refused")
