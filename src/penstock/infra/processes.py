"""Processes that Penstock starts: they end with it, and are ended by their own id."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def start_process(command: Sequence[str], environment: Mapping[str, str], log: Path, *, lasting: bool = False) -> int:
    """Start a process with its output in a file; its id. It ends with this one, unless it is to last."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,  # Ctrl-C is for this process, which ends them in order
            preexec_fn=None if lasting else _end_with_parent,
        )
    _children[process.pid] = process
    return process.pid


_children: dict[int, subprocess.Popen[bytes]] = {}


def _end_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def is_running(pid: int) -> bool:
    """Whether the process is there and has not ended."""
    child = _children.get(pid)
    if child is not None:
        return child.poll() is None
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return False


def end_process(pid: int, patience_s: float = 10.0) -> None:
    """Ask it to end; if it does not in time, end it and all that it started."""
    if not is_running(pid):
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    if not _ended(pid, patience_s):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        _ended(pid, patience_s)
    _children.pop(pid, None)


def _ended(pid: int, patience_s: float) -> bool:
    child = _children.get(pid)
    if child is not None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(patience_s)
        return child.poll() is not None
    deadline = time.monotonic() + patience_s
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not is_running(pid)


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
