"""Processes that Penstock starts: they end with it, and are ended by their own id."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

Process = subprocess.Popen[bytes]

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def start_process(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Process:
    """Start a process with its output in a file; it ends with this one."""
    with log.open("ab") as out:
        return subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,  # Ctrl-C is for this process, which ends them in order
            preexec_fn=_end_with_parent,
        )


def _end_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


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


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
