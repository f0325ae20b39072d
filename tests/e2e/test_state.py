"""Exact counts, whatever happens: replicas change all the time, a Python worker is killed, then the driver itself."""

from __future__ import annotations

import math
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
from tests.waiting import LONG_S, until

DRIVER = Path(__file__).with_name("words_driver.py")


class Driver:
    """A driver in a process of its own, and what it has said; it does not wait for anybody to read that."""

    def __init__(self, log: Path, *arguments: object) -> None:
        self._log = log
        with log.open("wb") as out:
            command = [sys.executable, str(DRIVER), *map(str, arguments)]
            self.process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)

    @property
    def said(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def epoch_s(self) -> float:
        """When the run's source began, which the driver has said by now."""
        return float(next(line for line in self.said.splitlines() if line.startswith("began ")).split()[1])

    def wait_for(self, true: Callable[[], Any]) -> None:
        """Wait until it has come so far; it may not end before."""

        def there() -> Any:
            assert self.process.poll() is None, self.said
            return true()

        until(there, lambda: self.said, look_every_s=0.1)  # a look is work

    def finish(self) -> None:
        """Wait for its end."""
        self.process.wait(2 * LONG_S)
        assert self.process.returncode == 0, self.said

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


Start = Callable[[int, int, str], Driver]


@pytest.fixture
def words_driver(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DRIVER.parent))
    import words_driver

    return words_driver


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """`start(events, rate, mode)`: a driver on the test's folder; whatever happens, none is left."""
    drivers: list[Driver] = []

    def started(events: int, rate: int, mode: str) -> Driver:
        log = tmp_path / f"driver-{len(drivers)}.log"
        drivers.append(Driver(log, tmp_path / "run", tmp_path / "sink", events, rate, mode))
        return drivers[-1]

    yield started
    for driver in drivers:
        driver.kill()


def stored(folder: Path) -> int:
    """Events at the sink; some may be there twice."""
    return sum(file.read_bytes().count(b"\n") for file in (folder / "sink").glob("*.jsonl"))


def kill_a_worker(driver: Driver) -> None:
    """One of the processes that were forked from Spark's Python daemon."""
    children = psutil.Process(driver.process.pid).children(recursive=True)
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


def test_thousands_of_events(tmp_path: Path, start: Start, words_driver: ModuleType) -> None:
    """The first driver would go on for minutes; the second ends with the last event that the first can have sent."""
    rate = 1_000
    first = start(150 * rate, rate, "realtime")
    first.wait_for(lambda: stored(tmp_path) >= 4_000)
    kill_a_worker(first)
    first.wait_for(lambda: stored(tmp_path) >= 9_000 and first.said.count("changed") >= 6)
    below = psutil.Process(first.process.pid).children(recursive=True)
    first.kill()
    _, alive = psutil.wait_procs(below, timeout=LONG_S)  # they send, too
    assert [one for one in alive if one.is_running() and one.status() != psutil.STATUS_ZOMBIE] == []
    events = math.ceil((time.time() - first.epoch_s) * rate)
    second = start(events, rate, "realtime")
    second.finish()
    check_counts(tmp_path, words_driver.zipf_words(events))


def test_micro_batches(tmp_path: Path, start: Start, words_driver: ModuleType) -> None:
    """The driver is killed in the middle; changes of replicas take effect with the next batch."""
    events, rate = 6_000, 600
    first = start(events, rate, "microbatch")  # the rows of a DataFrame
    first.wait_for(lambda: stored(tmp_path) >= 1_200)
    first.kill()
    second = start(events, rate, "microbatch")
    second.finish()
    check_counts(tmp_path, words_driver.zipf_words(events))
