"""Whether a worker sees what the run keeps: a file that the driver has left there is to be found."""

from __future__ import annotations

import os
import socket
import time

from penstock.common.storage import LocalStorage
from penstock.engine.plan.program import Program
from penstock.errors import EngineError
from penstock.infra.worker import WORKER_NAME, executor_here

PATIENCE_S = 5.0  # a folder of another machine may show a new file a little later
LOOK_EVERY_S = 0.2

_seen: set[str] = set()  # by this process


def check_sight(program: Program) -> None:
    """Raise an EngineError if this process does not find the driver's token; a run that keeps nothing has none."""
    if not program.token or program.token in _seen:
        return
    deadline_s = time.monotonic() + PATIENCE_S
    while not _sees(program):
        if time.monotonic() >= deadline_s:
            raise EngineError(_told(program))
        time.sleep(LOOK_EVERY_S)
    _seen.add(program.token)


def _sees(program: Program) -> bool:
    try:
        program.storage.read(program.token)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return False
    return True


def _told(program: Program) -> str:
    worker = os.environ.get(WORKER_NAME) or executor_here()
    where = f"{worker} on {socket.gethostname()}" if worker else socket.gethostname()
    way_out = "share it with all workers, or have checkpoints elsewhere: RunOptions(checkpoints='s3://bucket/run')"
    kind = "the folder " if isinstance(program.storage, LocalStorage) else ""
    return f"worker {where} does not see what the run keeps in {kind}{program.storage}: {way_out}"
