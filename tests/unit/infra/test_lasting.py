from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from penstock.errors import EngineError, InputError
from penstock.infra import lasting
from penstock.infra.lasting import STATE_FILE, LastingCluster, Member, Stopped, default_folder, described
from penstock.infra.processes import end_process, process_mark, start_process
from penstock.infra.standalone import StandaloneOptions
from penstock.infra.worker import Worker, WorkerState

OPTIONS = StandaloneOptions(cores=4)


class FakeCluster:
    """Sleeping processes instead of Spark's."""

    url, web_url = "spark://127.0.0.1:7077", "http://127.0.0.1:8080"
    workers_come = True
    made: list[FakeCluster] = []  # noqa: RUF012 - all that a test has made

    def __init__(self, folder, options, *, lasting):
        assert lasting
        self.folder = folder
        self.running = {}
        FakeCluster.made.append(self)

    def launch(self):
        self._begin("master")

    def await_master(self):
        assert (self.folder / STATE_FILE).is_file()  # written before anything is waited for

    def add(self):
        self._begin(f"worker-{len(self.running)}")

    def list(self):
        state = WorkerState.AVAILABLE
        names = [name for name in self.running if name != "master" and self.workers_come]
        return [Worker(name=name, region="local", capacity=1, state=state) for name in names]

    def processes(self):
        return {name: (process.pid, 7000 + n) for n, (name, process) in enumerate(self.running.items())}

    def stop(self):
        for process in self.running.values():
            end_process(process)

    def _begin(self, name):
        self.running[name] = start_process(["sleep", "60"], {}, self.folder / f"{name}.log")


def told(**more):
    """What a Master says of the fake cluster's two Workers."""
    workers = [
        {"port": 7001, "state": "ALIVE", "cores": 4, "coresused": 3, "memory": 1024},
        {"port": 7002, "state": "ALIVE", "cores": 4, "coresused": 0, "memory": 1024},
        {"port": 6999, "state": "DEAD", "cores": 4, "coresused": 0, "memory": 1024},
    ]
    apps = [{"id": "app-1", "name": "penstock", "cores": 3, "state": "RUNNING", "user": "me"}]
    return {"url": FakeCluster.url, "workers": workers, "activeapps": apps} | more


@pytest.fixture(autouse=True)
def processes(monkeypatch):
    monkeypatch.setattr(lasting, "StandaloneCluster", FakeCluster)
    monkeypatch.setattr(lasting, "asked_master", lambda web_url, url: told())
    monkeypatch.setattr(FakeCluster, "made", [])
    monkeypatch.setattr(FakeCluster, "workers_come", True)
    yield
    for cluster in FakeCluster.made:
        cluster.stop()


@pytest.fixture
def cluster(tmp_path: Path):
    return LastingCluster(tmp_path / "state" / "cluster", now=lambda: 1000.0)


def test_start_look_and_stop(cluster):
    state = cluster.start(2, OPTIONS)
    assert [one.name for one in state.members] == ["master", "worker-1", "worker-2"]
    assert cluster.state() == state
    assert len(state.running) == 3
    found = LastingCluster(cluster.folder, now=lambda: 1042.0).status()
    assert (found["url"], found["age_s"], found["whole"]) == ("spark://127.0.0.1:7077", 42.0, True)
    assert found["master"] == {"pid": state.members[0].pid, "runs": True, "answers": True}
    used = {one["name"]: (one["state"], one["cores_used"], one["cores"]) for one in found["workers"]}
    assert used == {"worker-1": ("ALIVE", 3, 4), "worker-2": ("ALIVE", 0, 4)}
    assert found["applications"] == [{"id": "app-1", "name": "penstock", "cores": 3, "state": "RUNNING"}]
    assert cluster.stop() == Stopped(ended=3, before=())
    assert not any(process_mark(one.pid) for one in state.members)
    assert (cluster.state(), cluster.status(), cluster.stop()) == (None, None, None)


def test_nothing_to_stop_leaves_no_folder(cluster):
    assert cluster.stop() is None
    assert not cluster.folder.exists()


def test_starting_twice(cluster):
    cluster.start(1, OPTIONS)
    with pytest.raises(InputError, match=r"one was started already, spark://127.0.0.1:7077, and 2 of its 2 processes"):
        cluster.start(1, OPTIONS)
    assert len(FakeCluster.made) == 1


def test_a_process_that_has_died_is_told_and_the_others_are_stopped(cluster):
    cluster.start(2, OPTIONS)
    end_process(FakeCluster.made[0].running["worker-1"])
    found = cluster.status()
    assert [one["runs"] for one in found["workers"]] == [False, True]
    assert found["whole"] is False
    with pytest.raises(InputError, match="2 of its 3 processes run"):
        cluster.start(2, OPTIONS)
    assert cluster.stop() == Stopped(ended=2, before=("worker-1",))


def test_a_state_file_of_processes_that_have_ended_is_replaced(cluster):
    cluster.start(1, OPTIONS)
    FakeCluster.made[0].stop()
    assert cluster.start(1, OPTIONS).running
    assert len(FakeCluster.made) == 2


def test_a_process_that_got_the_id_of_one_that_is_gone_is_left_alone(cluster):
    state = cluster.start(1, OPTIONS)
    master, worker = state.members
    text = (cluster.folder / STATE_FILE).read_text()
    (cluster.folder / STATE_FILE).write_text(text.replace(worker.mark, "1" + worker.mark, 1))
    done = cluster.stop()
    assert done in (Stopped(ended=1, before=("worker-1",)), Stopped(ended=1, before=("master",)))
    assert sum(process_mark(pid) is not None for pid in (master.pid, worker.pid)) == 1


def test_if_not_all_come_up_none_is_left(cluster, monkeypatch):
    monkeypatch.setattr(FakeCluster, "workers_come", False)
    with pytest.raises(EngineError, match="2 workers did not come up; their logs are in"):
        cluster.start(2, OPTIONS)
    assert cluster.state() is None
    assert all(process.poll() is not None for process in FakeCluster.made[0].running.values())


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"folder '.*file/in': cannot be written; Not a directory"):
        LastingCluster(tmp_path / "file" / "in").start(1, OPTIONS)


def test_a_state_file_that_is_none(cluster):
    cluster.folder.mkdir(parents=True)
    (cluster.folder / STATE_FILE).write_text("{")
    for use in (cluster.status, cluster.stop, lambda: cluster.start(1, OPTIONS)):
        with pytest.raises(InputError, match=r"cluster.json': cannot be read as the state of a cluster"):
            use()


def test_one_command_at_a_time(cluster):
    cluster.folder.mkdir(parents=True)
    with (cluster.folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another command starts or stops it now"):
            cluster.start(1, OPTIONS)
    assert cluster.start(1, OPTIONS).running


def test_too_few_workers(cluster):
    with pytest.raises(InputError, match="cluster: workers must be at least 1; got 0"):
        cluster.start(0, OPTIONS)


def test_a_master_that_does_not_answer_and_a_worker_it_does_not_know(cluster):
    state = cluster.start(1, OPTIONS)
    silent = described(state, None, 1000.0)
    assert silent["master"]["answers"] is False
    assert silent["workers"][0]["state"] == "UNKNOWN"
    assert silent["applications"] == []
    assert described(state, told(workers=[]), 1000.0)["workers"][0]["state"] == "UNKNOWN"
    assert not Member("worker-1", 2**30, "1@x", 7001).runs


def test_the_folder_is_the_users(monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/var/me")
    assert default_folder() == Path("/var/me/penstock/cluster")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert default_folder() == Path("/home/me/.local/state/penstock/cluster")
