"""A Spark Standalone cluster on this machine that outlives the command that starts it: start, look, stop."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from penstock.common.filelock import hold
from penstock.common.files import private_folder, write_whole
from penstock.errors import EngineError, InputError
from penstock.infra.processes import end_marked, process_mark
from penstock.infra.standalone import SETTINGS_FILE, StandaloneCluster, StandaloneOptions, asked_master

STATE_FILE = "cluster.json"
WORKERS_TIMEOUT_S = 90.0


class Member(msgspec.Struct, frozen=True):
    """A process of the cluster; the mark tells it from a later one with the same id."""

    name: str
    pid: int
    mark: str
    port: int

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return process_mark(self.pid) == self.mark


class ClusterState(msgspec.Struct, frozen=True):
    """What is kept of a cluster between two commands."""

    url: str
    web_url: str
    started_at: float  # seconds since 1970
    members: tuple[Member, ...]
    settings_file: str = ""  # what Spark must be told to use it, with a secret that only its user may read

    @property
    def running(self) -> tuple[Member, ...]:
        """The processes that have not ended."""
        return tuple(one for one in self.members if one.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """What `stop` did: how many processes it ended, and which had ended by themselves."""

    ended: int
    before: tuple[str, ...]


def default_folder() -> Path:
    """Where the user's state belongs: in XDG_STATE_HOME, or ~/.local/state."""
    root = os.environ.get("XDG_STATE_HOME")
    return (Path(root) if root else Path.home() / ".local" / "state") / "penstock" / "cluster"


class LastingCluster:
    """One cluster a folder: its state file, logs and the Workers' folders are there.

    Only processes that this class has started are ended, and never one that has the id of one that is gone.
    """

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self.folder = folder.absolute()
        self._file = self.folder / STATE_FILE
        self._now = now

    def start(self, workers: int, options: StandaloneOptions) -> ClusterState:
        """Start a Master and so many Workers; returns when all are up. If not all come up, none is left."""
        if workers < 1:
            raise InputError(f"cluster: workers must be at least 1; got {workers}")
        with self._alone():
            self._check_none_runs()
            cluster = StandaloneCluster(self.folder, options, lasting=True)
            started_at = self._now()
            try:
                cluster.launch()
                self._keep(cluster, started_at)
                cluster.await_master()
                for _ in range(workers):
                    cluster.add()
                    state = self._keep(cluster, started_at)
                self._await(cluster, workers)
            except BaseException:
                cluster.stop()
                self._file.unlink(missing_ok=True)
                raise
            return state

    def state(self) -> ClusterState | None:
        """What was started; None if nothing was, or it has been stopped."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=ClusterState)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise InputError(f"file '{self._file}': cannot be read as the state of a cluster; {error}") from error

    def status(self) -> dict[str, Any] | None:
        """The cluster as it is now, for programs; None if none was started."""
        state = self.state()
        return None if state is None else described(state, asked_master(state.web_url, state.url), self._now())

    def stop(self, patience_s: float = 10.0) -> Stopped | None:
        """End the Workers, then the Master; None if none was started."""
        if self.state() is None:
            return None
        with self._alone():
            state = self.state()
            if state is None:
                return None
            ended = [one.name for one in reversed(state.members) if end_marked(one.pid, one.mark, patience_s)]
            self._check_gone(state)
            (self.folder / SETTINGS_FILE).unlink(missing_ok=True)
            self._file.unlink()
            return Stopped(ended=len(ended), before=tuple(m.name for m in state.members if m.name not in ended))

    def _check_none_runs(self) -> None:
        state = self.state()
        if state is None:
            return
        if state.running:
            runs = f"{len(state.running)} of its {len(state.members)} processes run"
            raise InputError(
                f"cluster in '{self.folder}': one was started already, {state.url}, and {runs}; stop it first"
            )
        self._file.unlink()  # all have ended, as after a restart of the machine

    def _check_gone(self, state: ClusterState) -> None:
        if state.running:
            left = ", ".join(f"{one.name} (process {one.pid})" for one in state.running)
            raise EngineError(f"cluster in '{self.folder}': {left} did not end")

    def _keep(self, cluster: StandaloneCluster, started_at: float) -> ClusterState:
        """Write down what runs, before anything is waited for."""
        members = tuple(
            Member(name, pid, process_mark(pid) or "", port) for name, (pid, port) in cluster.processes().items()
        )
        state = ClusterState(cluster.url, cluster.web_url, started_at, members, str(self.folder / SETTINGS_FILE))
        write_whole(self._file, msgspec.json.format(msgspec.json.encode(state), indent=2) + b"\n")
        return state

    def _await(self, cluster: StandaloneCluster, workers: int) -> None:
        deadline = time.monotonic() + WORKERS_TIMEOUT_S
        while True:
            listed = cluster.list()
            if sum(one.available for one in listed) == workers:
                return
            if len(listed) < workers or time.monotonic() > deadline:
                raise EngineError(f"{workers} workers did not come up; their logs are in {self.folder}")
            time.sleep(0.1)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One command at a time starts or stops; what a command held is free again when it ends, however it ends."""
        try:
            private_folder(self.folder)
            (self.folder / "lock").touch()
        except OSError as error:
            raise InputError(f"folder '{self.folder}': cannot be written; {error.strerror or error}") from error
        with hold(self.folder / "lock") as held:
            if not held:
                raise InputError(f"cluster in '{self.folder}': another command starts or stops it now")
            yield


def described(state: ClusterState, told: dict[str, Any] | None, now: float) -> dict[str, Any]:
    """Processes as they are, and what the Master says; a Worker that it does not have is unknown to it."""
    by_port = {int(one["port"]): one for one in (told or {}).get("workers", ()) if one["state"] == "ALIVE"}
    master, *workers = state.members
    return {
        "url": state.url,
        "web_url": state.web_url,
        "age_s": round(now - state.started_at, 1),
        "whole": all(one.runs for one in state.members) and told is not None,
        "master": {"pid": master.pid, "runs": master.runs, "answers": told is not None},
        "workers": [_worker(one, by_port.get(one.port)) for one in workers],
        "applications": [
            {"id": one["id"], "name": one["name"], "cores": one["cores"], "state": one["state"]}
            for one in (told or {}).get("activeapps", ())
        ],
    }


def _worker(member: Member, told: dict[str, Any] | None) -> dict[str, Any]:
    known = told or {}
    return {
        "name": member.name,
        "pid": member.pid,
        "runs": member.runs,
        "state": known.get("state", "UNKNOWN"),
        "cores": known.get("cores", 0),
        "cores_used": known.get("coresused", 0),
        "memory_mb": known.get("memory", 0),
    }
