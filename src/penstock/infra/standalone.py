"""Spark Standalone on this machine: a Master, and Workers that are started and stopped as processes."""

from __future__ import annotations

import json
import os
import secrets
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.common.files import private_folder, write_whole
from penstock.errors import EngineError, InputError
from penstock.infra.processes import Process, end_process, free_port, is_running, start_process
from penstock.infra.worker import WORKER_NAME, Worker, WorkerSize, WorkerState

REGION = "local"
DAEMON_MEMORY = "256m"
JVM_OPTIONS = ("SPARK_DAEMON_JAVA_OPTS", "SPARK_LAUNCHER_OPTS")  # of Master and Workers, and of what starts them
LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # they do little, so that optimising them takes more than it gives
START_TIMEOUT_S = 60.0
SETTINGS_FILE = "spark.conf"
CLOSED = {  # of Master and Workers: nobody submits or ends anything without the secret
    "spark.master.rest.enabled": "false",
    "spark.ui.killEnabled": "false",
}
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy between us and this machine


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneOptions:
    """What each Worker offers: `capacity` active replicas, and `cores` for Spark, which counts inactive ones too."""

    capacity: int = 2
    cores: int = 16
    memory_mb: int = 1024

    def __post_init__(self) -> None:
        for name in ("capacity", "cores"):
            if getattr(self, name) < 1:
                raise InputError(f"cluster: {name} must be at least 1; got {getattr(self, name)}")
        if self.memory_mb < 512:
            raise InputError(f"cluster: memory_mb must be at least 512 for an executor; got {self.memory_mb}")


@dataclass(slots=True)
class _Started:
    process: Process
    port: int
    web_port: int
    since_s: float
    state: WorkerState = WorkerState.STARTING


class StandaloneCluster:
    """A Master and Workers on the loopback interface. Use it as a context manager, or call `start` and `stop`.

    A Worker is available when the Master has it as alive. All processes end with this one, unless they are to last.
    Only who has its secret can use it: others on this machine could run code as us. It is in a file that only we can
    read, never on a command line.
    Several threads may use it: one that waits for a process to end, or for an answer, keeps no other waiting.
    """

    def __init__(
        self,
        folder: Path,
        options: StandaloneOptions | None = None,
        now: Callable[[], float] = time.monotonic,
        *,
        lasting: bool = False,
    ) -> None:
        self.folder = folder
        self.options = options or StandaloneOptions()
        self.settings = {  # of a session that uses it
            "spark.authenticate": "true",
            "spark.authenticate.secret": secrets.token_hex(32),
            "spark.network.crypto.enabled": "true",
        }
        self._lasting = lasting
        self._now = now
        self._master: Process | None = None
        self._port, self._web_port = free_port(), free_port()
        self._workers: dict[str, _Started] = {}
        self._ended_s = 0.0
        self._count = 0
        self._lock = threading.Lock()  # over all that is known of the Workers

    @property
    def url(self) -> str:
        """What Spark takes as its master."""
        return f"spark://127.0.0.1:{self._port}"

    @property
    def web_url(self) -> str:
        """The Master's page."""
        return f"http://127.0.0.1:{self._web_port}"

    def start(self) -> StandaloneCluster:
        """Start the Master; returns when it answers."""
        self.launch()
        self.await_master()
        return self

    def launch(self) -> None:
        """Start the Master, and do not wait for it."""
        private_folder(self.folder)
        lines = [f"{name} {value}" for name, value in (self.settings | CLOSED).items()]
        write_whole(self.folder / SETTINGS_FILE, "\n".join([*lines, ""]).encode())
        arguments = ["--host", "127.0.0.1", "--port", str(self._port), "--webui-port", str(self._web_port)]
        self._master = self._launch("org.apache.spark.deploy.master.Master", arguments, "master", {})

    def await_master(self) -> None:
        """Return when the Master answers; if it does not, stop it and say so."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while self._asked() is None:
            if self._master is None or not is_running(self._master) or time.monotonic() > deadline:
                self.stop()
                raise EngineError(f"the Master did not come up; its log: {self.folder / 'master.log'}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop all Workers, then the Master."""
        while self._workers:  # others may come and go meanwhile
            for name, one in self._now_known():
                self._end(name, one)
        if self._master is not None:
            end_process(self._master)
            self._master = None

    def __enter__(self) -> StandaloneCluster:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def seconds(self) -> float:
        """Worker-seconds so far."""
        with self._lock:
            return self._ended_s + sum(self._now() - one.since_s for one in self._workers.values())

    def list(self) -> Sequence[Worker]:
        """The Workers whose processes run, the oldest first."""
        known = self._now_known()
        for name in [name for name, one in known if not is_running(one.process)]:
            self._forget(name)
        alive = self._alive() if any(one.state is WorkerState.STARTING for _, one in known) else set()
        capacity = self.options.capacity
        with self._lock:
            for one in self._workers.values():
                if one.state is WorkerState.STARTING and one.port in alive:
                    one.state = WorkerState.AVAILABLE
            return [
                Worker(name=name, region=REGION, capacity=capacity, state=one.state)
                for name, one in self._workers.items()
            ]

    def sizes(self) -> Mapping[str, Sequence[WorkerSize]]:
        """One size, of this machine."""
        return {REGION: (WorkerSize(name="process", capacity=self.options.capacity),)}

    def add(self, region: str = REGION, size: WorkerSize | None = None) -> str:  # noqa: ARG002 - there is one of each
        """Start a Worker."""
        with self._lock:
            self._count += 1
            name = f"worker-{self._count}"
        port, web_port = free_port(), free_port()
        arguments = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web_port)]
        arguments += ["--cores", str(self.options.cores), "--memory", f"{self.options.memory_mb}M"]
        arguments += ["--work-dir", str(self.folder / name), self.url]
        told = {} if self._lasting else {WORKER_NAME: name}  # others look at executors, and do not know our names
        with self._lock:  # `stop` sees every process that has been started
            process = self._launch("org.apache.spark.deploy.worker.Worker", arguments, name, told)
            self._workers[name] = _Started(process, port, web_port, self._now())
        return name

    def drain(self, name: str) -> None:
        """Put nothing more on it."""
        self._turn(name, WorkerState.DRAINING)

    def restore(self, name: str) -> None:
        """Make a draining Worker available again."""
        self._turn(name, WorkerState.AVAILABLE)

    def remove(self, name: str) -> None:
        """Stop it, and with it its executors."""
        self._end(name, self._known(name))

    def executors(self, name: str) -> tuple[str, ...]:
        """The executors that run on a Worker, by their numbers in the application; for one application at a time."""
        told = _told(f"http://127.0.0.1:{self._known(name).web_port}") or {}
        return tuple(str(one["id"]) for one in told.get("executors", ()))

    def named(self, host: str) -> str | None:
        """The Worker that a process which reports this name sits on."""
        return host if host in self._workers else None

    def pid(self, name: str) -> int:
        """The id of a Worker's process."""
        return self._known(name).process.pid

    def processes(self) -> dict[str, tuple[int, int]]:
        """Process id and port of the Master and of every Worker, by name."""
        master = {"master": (self._master.pid, self._port)} if self._master else {}
        return master | {name: (one.process.pid, one.port) for name, one in self._now_known()}

    def _launch(self, main: str, arguments: Sequence[str], name: str, environment: Mapping[str, str]) -> Process:
        import pyspark

        home = Path(pyspark.__file__).parent
        settings = {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": DAEMON_MEMORY,
            **{name: f"{LIGHT} {os.environ.get(name, '')}".strip() for name in JVM_OPTIONS},
            "PYSPARK_PYTHON": sys.executable,
        }
        told = ["--properties-file", str(self.folder / SETTINGS_FILE)]
        command = [str(home / "bin" / "spark-class"), main, *told, *arguments]
        return start_process(command, {**settings, **environment}, self.folder / f"{name}.log", lasting=self._lasting)

    def _end(self, name: str, one: _Started) -> None:
        end_process(one.process)
        self._forget(name)

    def _forget(self, name: str) -> None:
        """Another thread may have found out first that it has ended."""
        with self._lock:
            one = self._workers.pop(name, None)
            if one is not None:
                self._ended_s += self._now() - one.since_s

    def _turn(self, name: str, state: WorkerState) -> None:
        one = self._known(name)
        with self._lock:
            one.state = state

    def _now_known(self) -> Sequence[tuple[str, _Started]]:
        with self._lock:
            return tuple(self._workers.items())

    def _known(self, name: str) -> _Started:
        known = dict(self._now_known())
        if name not in known:
            raise InputError(f"worker '{name}': is not running; known: {', '.join(known) or 'none'}")
        return known[name]

    def _alive(self) -> set[int]:
        """The ports of the Workers that the Master has as alive."""
        told = self._asked() or {}
        return {int(one["port"]) for one in told.get("workers", ()) if one["state"] == "ALIVE"}

    def _asked(self) -> dict[str, Any] | None:
        """What the Master says of itself; None while it does not answer."""
        return asked_master(self.web_url, self.url)


def asked_master(web_url: str, url: str) -> dict[str, Any] | None:
    """What the Master of that URL says on its page; None if it is not there, or somebody else is."""
    told = _told(web_url)
    return told if told is not None and told.get("url") == url else None


def _told(web_url: str) -> dict[str, Any] | None:
    """What a Master or Worker says on its page; None while it does not answer."""
    try:
        with _DIRECT.open(f"{web_url}/json/", timeout=5) as answer:
            told = json.loads(answer.read())
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) else None
