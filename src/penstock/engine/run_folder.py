"""Where a run keeps its log, and what a restart needs: a lasting or a temporary folder, for one driver at a time."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from penstock.common.files import private_folder
from penstock.common.lease import Held, alone_in
from penstock.common.storage import LocalStorage, Place, storage_at
from penstock.engine.options import RunOptions
from penstock.engine.run_file import run_file
from penstock.errors import EngineError
from penstock.topology import Topology


class RunFolder:
    """The folder of a run, and the storage elsewhere, if there is one; first looked at, then made and entered."""

    def __init__(self, topology: Topology, options: RunOptions) -> None:
        self._topology, self._options = topology, options
        self.elsewhere = None if options.checkpoints is None else storage_at(options.checkpoints)
        self.file = run_file(self.lasting, topology, options, secrets.token_hex(6))
        self.kept = options.folder is not None  # when the run is over
        self._path: Path | None = None
        self._lock, self._held = contextlib.ExitStack(), Held()

    @property
    def lasting(self) -> Place | None:
        """Where what a restart needs is, if that is to outlast the run."""
        return self.elsewhere or self._options.folder

    @property
    def carried_on(self) -> int:
        """Starts of the query under earlier drivers; 0 for a new run."""
        return self.file.generation + 1

    @property
    def failure(self) -> EngineError | None:
        """Why this driver may not go on: another has taken the run."""
        return self._held.failure

    @property
    def check_alone(self) -> Callable[[], None]:
        """Raises if another driver has taken the run."""
        return self._held.check

    def make(self) -> Path:
        """Have it, for nobody else to read."""
        self._path = self._options.folder or Path(tempfile.mkdtemp(prefix="penstock-"))
        private_folder(self._path)
        return self._path

    def enter(self) -> None:
        """Keep other drivers out, and read the run's file again: one may have been at work since the first look."""
        assert self._path is not None
        storage = self.elsewhere or LocalStorage(self._path)
        self._held = self._lock.enter_context(alone_in(storage))
        storage.tidy()
        held = run_file(self.lasting, self._topology, self._options, self.file.id)
        if held.id != self.file.id:
            raise EngineError(
                f"{self.lasting}: another driver has begun run {held.id} here; make a new Run to carry it on"
            )
        self.file = held

    def leave(self, *, keep: bool) -> None:
        """Let others in; a temporary one goes, unless it is to be kept."""
        self._lock.close()
        if self._path is not None and not (keep or self.kept):
            shutil.rmtree(self._path, ignore_errors=True)
