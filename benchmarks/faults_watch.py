"""Looks at a round from outside while it runs: when results came, which processes there were, how large they are."""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import psutil
from history_stage import Driver, python_workers

LOOK_S = 0.25
MEMORY_EVERY = 8  # looks
YOUNG_S = 60.0  # memory grows while a driver starts, and Java compiles
OLD_S = 300.0  # a slope over less says nothing
GONE_WITHIN_S = 60.0  # of a machine that is busy with other work
TOGETHER_S = 3.0  # a checkpoint, and what is shown with it


class Memory(NamedTuple):
    """What the processes of a run take, in MB; `jvm` is all that is Java."""

    at_s: float
    driver_pid: int
    driver: float
    jvm: float
    workers: float
    processes: int


class Watch:
    """A thread that looks until it is ended."""

    def __init__(
        self,
        progress: Callable[[], object],
        driver: Callable[[], Driver],
        family: Callable[[], list[psutil.Process]],
    ) -> None:
        self._progress, self._driver, self._family = progress, driver, family
        self.came_s: list[float] = []  # when there were other results than before
        self.memory: list[Memory] = []
        self.seen: dict[int, psutil.Process] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Look no more."""
        self._ended.set()
        self._thread.join(30)

    def left_behind(self) -> list[str]:
        """Processes of the round that are still there though all drivers have ended."""
        deadline = time.monotonic() + GONE_WITHIN_S
        while (left := [one for one in self.seen.values() if _alive(one)]) and time.monotonic() < deadline:
            time.sleep(0.2)
        return [_named(one) for one in left]

    def _watch(self) -> None:
        last: object = None
        looks = 0
        while not self._ended.wait(LOOK_S):
            try:
                now = self._progress()
            except Exception:  # the database or the broker is away: nothing has come
                now = last
            if now != last:
                self.came_s.append(time.time())
                last = now
            if looks % MEMORY_EVERY == 0:
                self._look_at_processes()
            looks += 1

    def _look_at_processes(self) -> None:
        driver = self._driver()
        try:
            family = self._family()
        except psutil.Error:  # one has ended meanwhile
            return
        for one in family:
            self.seen.setdefault(one.pid, one)
        daemons, workers = python_workers(family)
        jvms = [one for one in family if _name(one) == "java"]
        if psutil.pid_exists(driver.process.pid):
            own = _rss_mb([psutil.Process(driver.process.pid)])
            sizes = (own, _rss_mb(jvms), _rss_mb([*daemons, *workers]))
            self.memory.append(Memory(time.time(), driver.process.pid, *sizes, len(family)))


def stood_still_s(came_s: Sequence[float], struck_s: Sequence[float]) -> list[float | None]:
    """For each fault the longest time without a result that began with it; None amid what another one began.

    Results of a checkpoint come together, so that the time may begin a little before the fault.

    >>> stood_still_s([0.0, 9.0, 10.0, 30.0, 31.0, 32.0], [10.5, 15.0, 31.5])
    [20.0, None, 1.0]
    """
    gaps = list(pairwise(sorted(came_s)))
    found: list[float | None] = []
    for at_s in struck_s:
        end_s = min((other for other in struck_s if other > at_s + TOGETHER_S), default=math.inf) - TOGETHER_S
        amid = any(before < at_s - TOGETHER_S and after > at_s for before, after in gaps)
        own = [after - before for before, after in gaps if at_s - TOGETHER_S <= before < end_s and after > at_s]
        found.append(None if amid else round(max(own, default=0.0), 2))
    return found


def slopes_mb_per_hour(memory: Iterable[Memory]) -> dict[str, float]:
    """How memory grew in the longest life of a driver, but for its beginning; nothing if none lived long enough."""
    lives: dict[int, list[Memory]] = {}
    for one in memory:
        lives.setdefault(one.driver_pid, []).append(one)
    for life in lives.values():
        life[:] = [one for one in life if one.at_s >= life[0].at_s + YOUNG_S]
    longest = max((life for life in lives.values() if life), key=lambda life: life[-1].at_s - life[0].at_s, default=[])
    if not longest or longest[-1].at_s - longest[0].at_s < OLD_S:
        return {}
    times = [one.at_s / 3600 for one in longest]
    found = {"over_s": longest[-1].at_s - longest[0].at_s}
    for what in ("driver", "jvm", "workers"):
        found[what] = statistics.linear_regression(times, [getattr(one, what) for one in longest]).slope
    return {name: round(value, 1) for name, value in found.items()}


def _alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _name(process: psutil.Process) -> str:
    try:
        return str(process.name())
    except psutil.Error:
        return ""


def _named(process: psutil.Process) -> str:
    try:
        return f"{process.pid} {' '.join(process.cmdline())[:120]}"
    except psutil.Error:
        return str(process.pid)


def _rss_mb(processes: Iterable[psutil.Process]) -> float:
    total = 0
    for one in processes:
        try:
            total += one.memory_info().rss
        except psutil.Error:
            continue
    return total / 2**20
