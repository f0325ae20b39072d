from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from penstock.infra.processes import end_marked, end_process, process_mark, start_process
from tests.waiting import LONG_S, until

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
PARENT = """
import sys
from pathlib import Path
from penstock.infra.processes import start_process
process = start_process(["sleep", "60"], {}, Path(sys.argv[1]), lasting=sys.argv[2] == "lasting")
print(process.pid, flush=True)
"""


def test_a_process_is_ended_by_id_and_mark(tmp_path: Path):
    process = start_process(["sleep", "60"], {}, tmp_path / "log", lasting=True)
    mark = process_mark(process.pid)
    assert mark is not None
    assert end_marked(process.pid, mark)
    assert process_mark(process.pid) is None  # nor is it counted while nobody has waited for it
    assert process.wait() == -15
    assert not end_marked(process.pid, mark)


def test_a_process_with_the_same_id_and_another_beginning_is_left_alone(tmp_path: Path):
    process = start_process(["sleep", "60"], {}, tmp_path / "log")
    ticks, _, boot = str(process_mark(process.pid)).partition("@")
    try:
        assert not end_marked(process.pid, f"{int(ticks) - 1}@{boot}")
        assert not end_marked(process.pid, f"{ticks}@another")
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_one_that_does_not_listen_is_killed(tmp_path: Path):
    log = tmp_path / "log"
    process = start_process([sys.executable, "-c", STUBBORN], {}, log)
    until(lambda: log.read_text() == "up\n")
    assert end_marked(process.pid, str(process_mark(process.pid)), patience_s=0.2)
    assert process.wait() == -9


def test_a_process_outlives_the_thread_that_had_it_started(tmp_path: Path):
    """To the kernel a parent is a thread: workers that a loop's thread had added ended when that thread did."""
    started = []
    thread = threading.Thread(target=lambda: started.append(start_process(["sleep", "60"], {}, tmp_path / "log")))
    thread.start()
    thread.join()
    (process,) = started
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.0)
    finally:
        end_process(process)
    assert process.returncode == -signal.SIGTERM


def test_a_program_that_is_not_there_is_said_in_the_log(tmp_path: Path):
    process = start_process(["/none/such"], {}, tmp_path / "log")
    assert process.wait(LONG_S) == 1
    assert (tmp_path / "log").read_text() == "/none/such: No such file or directory\n"


@pytest.mark.parametrize(("kind", "lives"), [("lasting", True), ("not", False)])
def test_only_what_is_to_last_outlives_who_started_it(tmp_path: Path, kind: str, lives: bool):
    command = [sys.executable, "-c", PARENT, str(tmp_path / "log"), kind]
    pid = int(subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ)).stdout)
    if lives:
        time.sleep(0.3)
        mark = process_mark(pid)
        assert mark is not None
        assert end_marked(pid, mark)
    until(lambda: process_mark(pid) is None)
