"""A folder that one process at a time holds: by a lock of the operating system, or by a lease where there is none.

A lease is a file with its owner's name and a number that grows every few seconds. Who finds one that stands still takes
it. Two who want it at the same moment both write it, look again after a moment, and the last one has it. File systems
without conditional writes know no more: so whoever is about to do what only the owner may asks once more (`check`).
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from penstock.common.filelock import hold
from penstock.common.files import private_folder
from penstock.common.storage import LocalStorage, Storage
from penstock.errors import EngineError

log = logging.getLogger(__name__)

FILE = "lock"
BEAT_S = 5.0
STALE_S = 30.0  # a lease that stands still for so long is nobody's
SETTLE_S = 1.0  # for another one's writing to show
LOOK_EVERY_S = 1.0


class Held:
    """What a process holds; by a lock nobody can take it away."""

    failure: EngineError | None = None  # why it is held no longer, if so

    def check(self) -> None:
        """Raise an EngineError if it is held no longer."""
        if self.failure is not None:
            raise self.failure


class _Owner(msgspec.Struct, frozen=True):
    owner: str
    where: str
    beat: int = 0


@contextmanager
def alone_in(storage: Storage) -> Iterator[Held]:
    """Keep other drivers out of the folder; it is free again when this one ends, however it ends."""
    if isinstance(storage, LocalStorage):
        private_folder(storage.path)
        with hold(storage.path / FILE) as held:
            if not held:
                told = "another driver is at work on this run; one that hangs must be stopped first"
                raise EngineError(f"{storage}: {told}")
            yield Held()
        return
    lease = _Lease(storage)
    lease.take()
    try:
        yield lease
    finally:
        lease.give_back()


class _Lease(Held):
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._mine = _Owner(secrets.token_hex(8), f"{socket.gethostname()}, process {os.getpid()}")
        self._stopped = threading.Event()
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._beat, name="penstock-lease", daemon=True)

    def take(self) -> None:
        """Take it, once it is known to be nobody's; an EngineError if it is somebody's."""
        found, since_s = self._read(), time.monotonic()
        if found is not None:
            log.warning("%s: held by a driver on %s; looking for %g s whether it lives", *self._about(found), STALE_S)
        while found is not None and time.monotonic() - since_s < STALE_S:
            time.sleep(LOOK_EVERY_S)
            if (now := self._read()) is not None and now != found:
                raise self._taken(now)
            found = now
        self._write()
        time.sleep(SETTLE_S)
        self.check()
        self._thread.start()

    def check(self) -> None:
        """Look whether it is still ours."""
        super().check()
        found = self._read()
        if found is None or found.owner != self._mine.owner:
            self.failure = self._taken(found)
            raise self.failure

    def give_back(self) -> None:
        """Let others take it at once."""
        self._stopped.set()
        with self._writing:
            try:
                self.check()
                self._storage.remove(FILE)
            except (EngineError, OSError) as error:
                log.warning("%s: the lease is not given back: %s", self._storage, error)

    def _beat(self) -> None:
        while self.failure is None and not self._stopped.wait(BEAT_S):
            with self._writing:
                if self._stopped.is_set():
                    return
                try:
                    self.check()
                    self._write()
                except EngineError as error:
                    log.error("%s", error)
                except OSError as error:  # nobody can take it meanwhile either
                    log.warning("%s: the lease cannot be renewed: %s", self._storage, error)

    def _read(self) -> _Owner | None:
        try:
            return msgspec.json.decode(self._storage.read(FILE), type=_Owner)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None

    def _write(self) -> None:
        self._mine = msgspec.structs.replace(self._mine, beat=self._mine.beat + 1)
        self._storage.write(FILE, msgspec.json.encode(self._mine))

    def _about(self, found: _Owner) -> tuple[Storage, str]:
        return self._storage, found.where

    def _taken(self, by: _Owner | None) -> EngineError:
        who = f"another driver, on {by.where}," if by is not None else "nobody"
        told = f"{who} holds this run; one driver at a time may be at work on it"
        return EngineError(f"{self._storage}: {told}")
