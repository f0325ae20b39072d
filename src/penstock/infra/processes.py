"""Processes that Penstock starts: they end with it unless they are to last, and are ended by their own id."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

Process = subprocess.Popen[bytes]

# What a process does before it becomes the one that is wanted: it asks the kernel for SIGTERM (15) when its parent ends
# (PR_SET_PDEATHSIG, 1), and looks whether that has happened already. In a process with threads nothing of ours may run
# between fork and exec, as `preexec_fn` would.
_END_WITH_PARENT = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 15)
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit(f"{sys.argv[2]}: {error.strerror}")
"""


def start_process(
    command: Sequence[str], environment: Mapping[str, str], log: Path, *, lasting: bool = False
) -> Process:
    """Start a process with its output in a file; it ends with this one, unless it is to last."""
    if not lasting:
        command = [sys.executable, "-I", "-S", "-c", _END_WITH_PARENT, str(os.getpid()), *command]

    def start() -> Process:
        with log.open("ab") as out:
            return subprocess.Popen(
                command,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,  # Ctrl-C is for this process, which ends them in order
            )

    return _starter().submit(start).result()


_starters: dict[int, ThreadPoolExecutor] = {}  # by process: one that was forked has none of its parent's threads
_starting = threading.Lock()


def _starter() -> ThreadPoolExecutor:
    """The thread that starts processes: for the kernel a parent is a thread, and this one is there until the end."""
    with _starting:
        if (pid := os.getpid()) not in _starters:
            _starters.clear()
            _starters[pid] = ThreadPoolExecutor(1, thread_name_prefix="process-starter")
        return _starters[pid]


def is_running(process: Process) -> bool:
    """Whether it has not ended."""
    return process.poll() is None


def end_process(process: Process, patience_s: float = 10.0) -> None:
    """Ask it to end; if it does not in time, end it and all that it started."""
    if not is_running(process):
        return
    process.terminate()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(patience_s)


def process_mark(pid: int) -> str | None:
    """What tells a process from a later one with the same id: when it began, and in which boot; None if it has ended.

    >>> import os
    >>> process_mark(os.getpid()) == process_mark(os.getpid()), process_mark(2**30)
    (True, None)
    """
    try:
        said = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    state, *fields = said.rpartition(")")[2].split()  # the name in brackets may hold anything
    return None if state in "ZX" else f"{fields[18]}@{boot}"


def end_marked(pid: int, mark: str, patience_s: float = 10.0) -> bool:
    """End the process with that id and mark as `end_process` does; False if it had ended before."""
    if process_mark(pid) != mark:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        if not _gone(pid, mark, patience_s):
            os.killpg(pid, signal.SIGKILL)
            _gone(pid, mark, patience_s)
    return True


def _gone(pid: int, mark: str, patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while process_mark(pid) == mark:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
