"""`penstock cluster` as a user types it: the workers outlive the command that starts them, and none is left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import psutil


def penstock(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "penstock.cli", "cluster", *arguments, "--folder", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_start_status_stop(tmp_path: Path) -> None:
    started = penstock(tmp_path, "start", "--workers", "2", "--cores", "3")
    try:
        assert started.returncode == 0, started.stderr
        again = penstock(tmp_path, "start")
        assert again.returncode == 2
        assert "one was started already" in again.stderr
        looked = penstock(tmp_path, "status", "--json", "-")
        assert looked.returncode == 0
        found = json.loads(looked.stdout)
        assert found["url"] in started.stderr
        assert [(one["state"], one["cores"], one["cores_used"]) for one in found["workers"]] == [("ALIVE", 3, 0)] * 2
        pids = [found["master"]["pid"], *(one["pid"] for one in found["workers"])]
        assert all(psutil.pid_exists(pid) for pid in pids)
    finally:
        stopped = penstock(tmp_path, "stop")
    assert stopped.stderr == "3 processes stopped\n"
    assert not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids)
    assert penstock(tmp_path, "status").stderr == "no cluster runs\n"
