"""Exact counts, whatever happens: replicas change all the time, a Python worker is killed, then the driver itself."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest

from penstock.sinks import collected

Start = Callable[[int, int, str], "subprocess.Popen[bytes]"]
DRIVER = Path(__file__).with_name("words_driver.py")


@pytest.fixture
def words_driver(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DRIVER.parent))
    import words_driver

    return words_driver


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """`start(events, rate, mode)`: a driver on the test's folder; whatever happens, none is left."""
    drivers: list[subprocess.Popen[bytes]] = []

    def started(events: int, rate: int, mode: str) -> subprocess.Popen[bytes]:
        arguments = [str(tmp_path / "run"), str(tmp_path / "sink"), str(events), str(rate), mode]
        command = [sys.executable, str(DRIVER), *arguments]
        drivers.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        return drivers[-1]

    yield started
    for driver in drivers:
        driver.kill()
        driver.wait()
        if driver.stdout is not None:
            driver.stdout.close()


def await_stored(folder: Path, wanted: int, driver: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 300
    while sum(1 for _ in collected(folder / "sink")) < wanted:
        assert driver.poll() is None, driver.communicate()[0].decode()
        assert time.monotonic() < deadline, f"fewer than {wanted} events were stored in time"
        time.sleep(0.3)


def kill_a_worker(driver: subprocess.Popen[bytes]) -> None:
    """One of the processes that were forked from Spark's Python daemon."""
    children = psutil.Process(driver.pid).children(recursive=True)
    daemons = [child for child in children if "penstock.engine.worker.daemon" in command_of(child)]
    forked = {daemon.pid for daemon in daemons}
    workers = [daemon for daemon in daemons if parent_of(daemon) in forked]
    workers[len(workers) // 2].kill()


def command_of(process: psutil.Process) -> list[str]:
    """Nothing of one that has just ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def parent_of(process: psutil.Process) -> int | None:
    """None of one that has just ended."""
    try:
        return process.ppid()
    except psutil.Error:
        return None


def check_counts(folder: Path, words: list[str]) -> None:
    """Every event is there, and the highest count of each word is how often it came."""
    stored: dict[str, Any] = dict(collected(folder / "sink"))
    assert len(stored) == len(words)
    highest: dict[str, int] = {}
    for event in (event for _, event in collected(folder / "sink")):
        highest[event["word"]] = max(highest.get(event["word"], 0), event["count"])
    assert highest == Counter(words)


def test_fifty_thousand_events(tmp_path: Path, start: Start, words_driver: ModuleType) -> None:
    events, rate = 50_000, 1_500
    first = start(events, rate, "realtime")
    await_stored(tmp_path, 8_000, first)
    kill_a_worker(first)
    await_stored(tmp_path, 25_000, first)
    first.kill()
    said = first.communicate()[0].decode()
    second = start(events, rate, "realtime")
    said += second.communicate(timeout=300)[0].decode()
    assert second.returncode == 0, said
    check_counts(tmp_path, words_driver.zipf_words(events))
    print(f"{said.count('changed')} changes of replicas; {said.splitlines()[-1]}")
    assert said.count("changed") >= 15, said


def test_micro_batches(tmp_path: Path, start: Start, words_driver: ModuleType) -> None:
    """The driver is killed in the middle; changes of replicas take effect with the next batch."""
    events, rate = 8_000, 600
    first = start(events, rate, "microbatch")  # the rows of a DataFrame
    await_stored(tmp_path, 2_000, first)
    first.kill()
    first.communicate()
    second = start(events, rate, "microbatch")
    said = second.communicate(timeout=300)[0].decode()
    assert second.returncode == 0, said
    check_counts(tmp_path, words_driver.zipf_words(events))
