"""Workers of a cluster of our own, used by two threads at once: the loop's, and the one that changes workers."""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.session import read_settings
from penstock.errors import InputError
from penstock.infra import standalone
from penstock.infra.standalone import StandaloneCluster
from penstock.infra.worker import WorkerState
from tests.waiting import LONG_S


class Sleeping:
    """A process that runs until it is ended."""

    pid, runs = 1, True


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandaloneCluster]:
    """Without Spark: processes are not started, and the Master says that all ports are alive."""

    def ended(process: Any) -> None:
        process.runs = False

    now_s = iter(range(1000))
    monkeypatch.setattr(standalone, "start_process", lambda *_, **__: Sleeping())
    monkeypatch.setattr(standalone, "end_process", ended)
    monkeypatch.setattr(standalone, "is_running", lambda process: process.runs)
    one = StandaloneCluster(tmp_path, now=lambda: float(next(now_s)))
    monkeypatch.setattr(one, "_alive", lambda: {started.port for started in list(one._workers.values())})
    yield one
    monkeypatch.setattr(standalone, "end_process", ended)
    one.stop()


def test_the_secret_is_in_a_file_of_our_own_and_on_no_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark Standalone ran without authentication: whoever was on the machine could run code as its user."""
    commands: list[tuple[list[str], dict[str, str]]] = []

    def started(command: list[str], environment: dict[str, str], *_: Any, **__: Any) -> Sleeping:
        commands.append((command, environment))
        return Sleeping()

    monkeypatch.setattr(standalone, "start_process", started)
    cluster = StandaloneCluster(tmp_path / "cluster")
    cluster.launch()
    cluster.add()
    secret = cluster.settings["spark.authenticate.secret"]
    file = tmp_path / "cluster" / "spark.conf"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    told = read_settings(file)
    assert (told["spark.authenticate"], told["spark.authenticate.secret"]) == ("true", secret)
    assert len(secret) >= 32
    assert len(commands) == 2
    for command, environment in commands:
        assert command[command.index("--properties-file") + 1] == str(file)
        assert secret not in " ".join([*command, *environment.values()])
    assert StandaloneCluster(tmp_path).settings["spark.authenticate.secret"] != secret


class Meanwhile:
    """Runs something in another thread; `done` is what came of it."""

    def __init__(self, what: Any, *arguments: Any) -> None:
        self.done: Any = None
        self._what, self._arguments = what, arguments
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self.done = self._what(*self._arguments) or True
        except Exception as error:
            self.done = error

    def given(self, seconds: float) -> Any:
        """What came of it within so many seconds; None if it still waits."""
        if self._thread.ident is None:
            self._thread.start()
        self._thread.join(seconds)
        return self.done


def test_workers_are_listed_while_another_is_added(cluster: StandaloneCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.add()
    adding = Meanwhile(cluster.add)

    def looked_at(process: Any) -> bool:
        adding.given(0.2)
        return bool(process.runs)

    monkeypatch.setattr(standalone, "is_running", looked_at)
    assert cluster.list()[0].name == "worker-1"
    assert adding.given(LONG_S) == "worker-2"
    assert [worker.name for worker in cluster.list()] == ["worker-1", "worker-2"]


def test_worker_seconds_are_counted_while_workers_come(
    cluster: StandaloneCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.add()
    adding = Meanwhile(cluster.add)

    def slowly() -> float:
        if threading.current_thread() is threading.main_thread():
            adding.given(0.2)
        return 100.0

    monkeypatch.setattr(cluster, "_now", slowly)
    assert cluster.seconds == 100.0
    assert adding.given(LONG_S) == "worker-2"


def test_two_threads_that_remove_the_same_worker_count_it_once(
    cluster: StandaloneCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second waits for the process as the first does, and finds nothing to forget."""
    name = cluster.add()
    both = threading.Barrier(2)

    def ended(process: Any) -> None:
        both.wait(LONG_S)
        process.runs = False

    monkeypatch.setattr(standalone, "end_process", ended)
    removing = [Meanwhile(cluster.remove, name), Meanwhile(cluster.remove, name)]
    for one in removing:
        one.given(0.01)
    assert [one.given(LONG_S) for one in removing] == [True, True]
    assert cluster.list() == []
    assert cluster.seconds == 1.0  # from when it was added to when it was forgotten


def test_all_are_stopped_while_another_thread_adds_and_removes(
    cluster: StandaloneCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that changes workers may still be at it when the run ends."""
    cluster.add()
    cluster.add()
    others = [Meanwhile(cluster.remove, "worker-2"), Meanwhile(cluster.add)]
    first = threading.Event()

    def ended(process: Any) -> None:
        if not first.is_set():
            first.set()
            assert [one.given(LONG_S) for one in others] == [True, "worker-3"]  # nobody waits for the process but us
        process.runs = False

    monkeypatch.setattr(standalone, "end_process", ended)
    cluster.stop()
    assert cluster.list() == []


def test_a_worker_drains_although_the_master_has_just_called_it_alive(
    cluster: StandaloneCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = cluster.add()
    (port,) = (one.port for one in cluster._workers.values())

    def asked() -> set[int]:
        assert Meanwhile(cluster.drain, name).given(LONG_S) is True  # nobody waits for the Master but us
        return {port}

    monkeypatch.setattr(cluster, "_alive", asked)
    assert [worker.state for worker in cluster.list()] == [WorkerState.DRAINING]


def test_a_worker_that_is_not_there_is_named(cluster: StandaloneCluster) -> None:
    cluster.add()
    with pytest.raises(InputError, match="worker 'worker-9': is not running; known: worker-1"):
        cluster.remove("worker-9")
