"""`penstock cluster`: what it prints, how it ends, and what is wrong in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.errors import InputError
from penstock.infra.lasting import ClusterState, LastingCluster, Member, Stopped
from penstock.infra.standalone import StandaloneOptions

WORKERS = [
    {"name": "worker-1", "pid": 11, "runs": True, "state": "ALIVE", "cores": 4, "cores_used": 3, "memory_mb": 1024},
    {"name": "worker-2", "pid": 12, "runs": False, "state": "UNKNOWN", "cores": 0, "cores_used": 0, "memory_mb": 0},
]
STATUS = {
    "url": "spark://127.0.0.1:7077",
    "web_url": "http://127.0.0.1:8080",
    "age_s": 150.0,
    "whole": False,
    "master": {"pid": 10, "runs": True, "answers": True},
    "workers": WORKERS,
    "applications": [{"id": "app-1", "name": "penstock", "cores": 3, "state": "RUNNING"}],
}


def penstock(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["cluster", *arguments])
    return result.exit_code, " ".join(result.output.split())


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "penstock" / "cluster"


def test_start_says_where_it_is_and_how_to_use_it(monkeypatch: pytest.MonkeyPatch, state_folder: Path) -> None:
    asked: list[tuple[Path, int, StandaloneOptions]] = []

    def start(self: LastingCluster, workers: int, options: StandaloneOptions) -> ClusterState:
        asked.append((self.folder, workers, options))
        members = (Member("master", 1, "1@b", 7077),)
        return ClusterState("spark://127.0.0.1:7077", "http://127.0.0.1:8080", 0.0, members, "/c/spark.conf")

    monkeypatch.setattr(LastingCluster, "start", start)
    code, said = penstock("start", "--workers", "3", "--cores", "8", "--memory-mb", "2048")
    assert code == 0
    assert asked == [(state_folder, 3, StandaloneOptions(cores=8, memory_mb=2048))]
    assert "spark://127.0.0.1:7077: 3 workers with 8 cores each; its page: http://127.0.0.1:8080" in said
    assert "use it with: penstock run … --cluster spark://127.0.0.1:7077 --properties-file /c/spark.conf" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workers", "0"], "cluster: workers must be at least 1; got 0"),
        (["--cores", "0"], "cluster: cores must be at least 1; got 0"),
        (["--memory-mb", "100"], "cluster: memory_mb must be at least 512 for an executor; got 100"),
    ],
)
def test_start_refuses_what_cannot_be(arguments: list[str], message: str, state_folder: Path) -> None:
    code, said = penstock("start", *arguments)
    assert (code, message in said) == (2, True)
    assert not state_folder.exists()


def test_start_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    code, said = penstock("start")
    assert (code, "Spark needs a Java runtime of version 17 or later" in said) == (2, True)


def test_status_shows_who_has_died(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LastingCluster, "status", lambda self: STATUS)
    code, said = penstock("status")
    assert code == 1
    assert "spark://127.0.0.1:7077: the Master runs (process 10), started 2 min ago" in said
    assert "12 has died" in said
    assert "3 of 4" in said
    assert "applications: penstock (app-1, 3 cores)" in said
    code, said = penstock("status", "--json", "-")
    assert json.loads(said) == STATUS


@pytest.mark.parametrize(
    ("master", "word"),
    [({"pid": 10, "runs": False, "answers": False}, "has died"), ({"pid": 10, "runs": True, "answers": False}, "does")],
)
def test_status_of_a_master_that_is_silent(
    monkeypatch: pytest.MonkeyPatch, master: dict[str, object], word: str
) -> None:
    found = STATUS | {"master": master, "workers": [], "applications": []}
    monkeypatch.setattr(LastingCluster, "status", lambda self: found)
    code, said = penstock("status")
    assert code == 1
    assert f"the Master {word}" in said
    assert "applications: none" in said


def test_nothing_runs() -> None:
    assert penstock("status") == (1, "no cluster runs")
    assert penstock("status", "--json", "-") == (1, "null")
    assert penstock("stop") == (0, "no cluster runs")


def test_stop_says_what_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LastingCluster, "stop", lambda self: Stopped(ended=2, before=("worker-1",)))
    assert penstock("stop") == (0, "2 processes stopped; had ended before: worker-1")
    monkeypatch.setattr(LastingCluster, "stop", lambda self: Stopped(ended=1, before=()))
    assert penstock("stop") == (0, "1 process stopped")


def test_mistakes_are_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(self: LastingCluster) -> None:
        raise InputError("cluster in 'x': another command starts or stops it now")

    monkeypatch.setattr(LastingCluster, "stop", wrong)
    assert penstock("stop") == (2, "error: cluster in 'x': another command starts or stops it now")
