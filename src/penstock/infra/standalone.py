"""Spark Standalone on this machine: a Master, and Workers that are started and stopped as processes."""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import EngineError, InputError
from penstock.infra.processes import Process, end_process, free_port, is_running, start_process
from penstock.infra.worker import WORKER_NAME, Worker, WorkerSize, WorkerState

REGION = "local"
DAEMON_MEMORY = "256m"
START_TIMEOUT_S = 60.0


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
    since_s: float
    state: WorkerState = WorkerState.STARTING


class StandaloneCluster:
    """A Master and Workers on the loopback interface. Use it as a context manager, or call `start` and `stop`.

    A Worker is available when the Master has it as alive. All processes end with this one.
    """

    def __init__(
        self, folder: Path, options: StandaloneOptions | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.folder = folder
        self.options = options or StandaloneOptions()
        self._now = now
        self._master: Process | None = None
        self._port, self._web_port = free_port(), free_port()
        self._workers: dict[str, _Started] = {}
        self._ended_s = 0.0
        self._count = 0

    @property
    def url(self) -> str:
        """What Spark takes as its master."""
        return f"spark://127.0.0.1:{self._port}"

    def start(self) -> StandaloneCluster:
        """Start the Master; returns when it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        arguments = ["--host", "127.0.0.1", "--port", str(self._port), "--webui-port", str(self._web_port)]
        self._master = self._launch("org.apache.spark.deploy.master.Master", arguments, "master", {})
        deadline = time.monotonic() + START_TIMEOUT_S
        while self._asked() is None:
            if not is_running(self._master) or time.monotonic() > deadline:
                self.stop()
                raise EngineError(f"the Master did not come up; its log: {self.folder / 'master.log'}")
            time.sleep(0.1)
        return self

    def stop(self) -> None:
        """Stop all Workers, then the Master."""
        for name in list(self._workers):
            self.remove(name)
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
        return self._ended_s + sum(self._now() - one.since_s for one in self._workers.values())

    def list(self) -> Sequence[Worker]:
        """The Workers whose processes run, the oldest first."""
        for name in [name for name, one in self._workers.items() if not is_running(one.process)]:
            self._forget(name)
        alive = self._alive() if any(one.state is WorkerState.STARTING for one in self._workers.values()) else set()
        for one in self._workers.values():
            if one.state is WorkerState.STARTING and one.port in alive:
                one.state = WorkerState.AVAILABLE
        capacity = self.options.capacity
        return [
            Worker(name=name, region=REGION, capacity=capacity, state=one.state) for name, one in self._workers.items()
        ]

    def sizes(self) -> Mapping[str, Sequence[WorkerSize]]:
        """One size, of this machine."""
        return {REGION: (WorkerSize(name="process", capacity=self.options.capacity),)}

    def add(self, region: str = REGION, size: WorkerSize | None = None) -> str:  # noqa: ARG002 - there is one of each
        """Start a Worker."""
        self._count += 1
        name, port = f"worker-{self._count}", free_port()
        arguments = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(free_port())]
        arguments += ["--cores", str(self.options.cores), "--memory", f"{self.options.memory_mb}M"]
        arguments += ["--work-dir", str(self.folder / name), self.url]
        process = self._launch("org.apache.spark.deploy.worker.Worker", arguments, name, {WORKER_NAME: name})
        self._workers[name] = _Started(process, port, self._now())
        return name

    def drain(self, name: str) -> None:
        """Put nothing more on it."""
        self._known(name).state = WorkerState.DRAINING

    def restore(self, name: str) -> None:
        """Make a draining Worker available again."""
        self._known(name).state = WorkerState.AVAILABLE

    def remove(self, name: str) -> None:
        """Stop it, and with it its executors."""
        end_process(self._known(name).process)
        self._forget(name)

    def pid(self, name: str) -> int:
        """The id of a Worker's process."""
        return self._known(name).process.pid

    def _launch(self, main: str, arguments: Sequence[str], name: str, environment: Mapping[str, str]) -> Process:
        import pyspark

        home = Path(pyspark.__file__).parent
        settings = {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": DAEMON_MEMORY,
            "PYSPARK_PYTHON": sys.executable,
        }
        command = [str(home / "bin" / "spark-class"), main, *arguments]
        return start_process(command, {**settings, **environment}, self.folder / f"{name}.log")

    def _forget(self, name: str) -> None:
        self._ended_s += self._now() - self._workers.pop(name).since_s

    def _known(self, name: str) -> _Started:
        if name not in self._workers:
            raise InputError(f"worker '{name}': is not running; known: {', '.join(self._workers) or 'none'}")
        return self._workers[name]

    def _alive(self) -> set[int]:
        """The ports of the Workers that the Master has as alive."""
        told = self._asked() or {}
        return {int(one["port"]) for one in told.get("workers", ()) if one["state"] == "ALIVE"}

    def _asked(self) -> dict[str, Any] | None:
        """What the Master says of itself; None while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._web_port}/json/", timeout=5) as answer:
                told: dict[str, Any] = json.loads(answer.read())
                return told
        except (OSError, ValueError):
            return None
