"""Whether a worker sees what the run keeps."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.worker import sight
from penstock.engine.worker.sight import check_sight
from penstock.errors import EngineError
from penstock.infra.worker import WORKER_NAME
from penstock.topology import Topology

Tools = Any


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sight, "PATIENCE_S", 0.1)
    monkeypatch.setattr(sight, "_seen", set())


@pytest.fixture
def program(tools: Tools, tmp_path: Path) -> Any:
    """`program(token)`: of a run that keeps what it has in the test's folder."""
    topology = Topology("t")
    topology.operator("o", len, inputs=topology.source("s"))
    return lambda token: tools.program_of(topology, storage_uri=tmp_path.as_uri(), token=token)


def test_a_worker_that_sees_the_token_goes_on(program: Any, tmp_path: Path) -> None:
    (tmp_path / "seen-1").write_bytes(b"run")
    check_sight(program("seen-1"))
    (tmp_path / "seen-1").unlink()
    check_sight(program("seen-1"))  # it looks once
    with pytest.raises(EngineError):
        check_sight(program("seen-2"))


def test_a_run_that_keeps_nothing_has_no_token(program: Any) -> None:
    check_sight(program(""))


def test_a_worker_that_does_not_see_it_is_named_with_the_folder_and_the_way_out(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that was not shared gave empty state, and nobody was told."""
    monkeypatch.setenv(WORKER_NAME, "home-2")
    with pytest.raises(EngineError) as raised:
        check_sight(program("seen-1"))
    told = str(raised.value)
    assert told.startswith("worker home-2 on ")
    assert f"does not see what the run keeps in the folder {tmp_path}: share it with all workers" in told
    assert "RunOptions(checkpoints='s3://bucket/run')" in told


def test_a_token_may_show_a_little_later(program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sight, "PATIENCE_S", 30.0)
    threading.Timer(0.3, (tmp_path / "seen-1").write_bytes, [b"run"]).start()
    check_sight(program("seen-1"))
