"""`penstock ui`: what it says where it cannot show anything."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.metrics.store import Store
from tests.waiting import LONG_S


def penstock(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def told(done: Result) -> str:
    return " ".join(done.output.split())


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def runs() -> str:
    with closing(Store("runs.db")):
        return "runs.db"


def test_what_is_no_store_is_said(tmp_path: Path) -> None:
    missing = penstock("ui", "none.db")
    assert (missing.exit_code, told(missing)) == (2, "error: store 'none.db': no such file")
    (tmp_path / "text.db").write_text("this is no database, though it is a file of some length" * 20)
    assert "error: store 'text.db': cannot be opened" in told(penstock("ui", "text.db"))


def test_a_port_that_is_taken_is_said(runs: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = penstock("ui", runs, "--listen", str(taken.getsockname()[1]))
    assert done.exit_code == 2
    assert "Address already in use" in told(done)


def test_other_machines_are_not_let_in_by_mistake(runs: str) -> None:
    done = penstock("ui", runs, "--listen", "0.0.0.0:0")
    assert done.exit_code == 2
    assert "give --cert and --key, or --insecure-listen if that is meant" in told(done)


def test_what_belongs_to_the_dashboard_needs_one() -> None:
    done = penstock("run", "twitter", "--rate", "1", "--insecure-listen")
    assert done.exit_code == 2
    assert "--cert, --key and --insecure-listen are for --ui [HOST:]PORT" in told(done)
    assert "--ui: must be [HOST:]PORT; got 'x'" in told(penstock("run", "twitter", "--rate", "1", "--ui", "x"))


def test_it_serves_until_it_is_told_to_stop(runs: str) -> None:
    command = [sys.executable, "-m", "penstock.cli", "ui", runs, "--listen", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as serving:
        assert serving.stderr is not None
        url = serving.stderr.readline().removeprefix("dashboard: ").strip()
        with urllib.request.urlopen(f"{url}api/runs", timeout=LONG_S) as answer:
            assert answer.read() == b'{"store":"\'runs.db\'","runs":[]}'
        serving.send_signal(signal.SIGINT)
        assert serving.wait(LONG_S) in (0, 130)
        assert "Traceback" not in serving.stderr.read()
