"""What the benchmark of overhead counts: CPU time by thread, as Linux has it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from attach_overhead import cpu_s, name_of, spent_s


def test_cpu_time_of_a_thread_grows_with_what_it_does() -> None:
    before = spent_s(os.getpid(), threading.get_native_id())
    sum(range(1_000_000))
    assert spent_s(os.getpid(), threading.get_native_id()) > before > 0


def test_threads_are_counted_by_their_names() -> None:
    stopped = threading.Event()
    thread = threading.Thread(target=stopped.wait, name="penstock-keeper")
    thread.start()
    try:
        assert cpu_s(os.getpid()).keys() >= {"penstock-keeper", "java"}
    finally:
        stopped.set()
        thread.join()


def test_a_thread_that_has_ended_has_no_name(tmp_path: Path) -> None:
    assert name_of(tmp_path) == ""
