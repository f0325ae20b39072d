"""Work shared out over processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from penstock.common.checks import whole

Task = TypeVar("Task")
Result = TypeVar("Result")


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


def done(work: Callable[[Task], Result], tasks: Sequence[Task], jobs: int = 1) -> Iterator[tuple[Task, Result]]:
    """Each task with what came of it, as they end; with one job in this process, in their order.

    With several, the first tasks begin first, so that long ones should come first. Task, work and result are pickled,
    and a program that is no module needs the usual `if __name__ == "__main__"`. Each process does linear algebra in one
    thread: the cores have enough to do, and threads that wait for each other in small matrices keep them busy.

    >>> list(done(abs, [-3, 2]))
    [(-3, 3), (2, 2)]
    """
    jobs = min(whole("simulation", "jobs", jobs), len(tasks))
    if jobs <= 1:
        for task in tasks:
            yield task, work(task)
        return
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_in_one_thread) as pool:
        begun = {pool.submit(work, task): task for task in tasks}
        try:
            for future in as_completed(begun):
                yield begun[future], future.result()
        finally:  # whoever stops listening, or fails, wants no more of it
            pool.shutdown(wait=False, cancel_futures=True)


def _in_one_thread() -> None:
    threadpool_limits(1)  # of numpy, which the package of this module has loaded


_MADE: dict[Hashable, Any] = {}


def made_once(key: Hashable, make: Callable[[], Result]) -> Result:
    """What several tasks of one process need: made for the first of them, and kept until there is another key."""
    if key not in _MADE:
        _MADE.clear()
        _MADE[key] = make()
    found: Result = _MADE[key]
    return found
