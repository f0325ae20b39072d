"""`penstock cluster` and `penstock run --cluster spark://…` as a user types them: it is used, it stays, and it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil

from tests.waiting import until

POOLS = ["--pool", "split=2,counter=2,consumer=2"]
CORES = 16


def penstock(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "penstock.cli", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_cluster_that_outlives_commands_and_a_run_on_its_executors(tmp_path: Path) -> None:
    """Started by one command, looked at by others, used by a run as someone else's, and stopped by a last one."""
    where = ["--folder", str(tmp_path / "cluster")]

    def status() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(penstock(tmp_path, "cluster", "status", "--json", "-", *where).stdout)
        return found

    def idle() -> dict[str, Any] | None:
        """What the Master says, once it answers and knows of both workers, of which nobody uses anything."""
        found = status()
        free = [(one["state"], one["cores"], one["cores_used"]) for one in found["workers"]] == [
            ("ALIVE", CORES, 0)
        ] * 2
        return found if found["whole"] and free and found["applications"] == [] else None

    started = penstock(tmp_path, "cluster", "start", "--workers", "2", "--cores", str(CORES), *where)
    try:
        assert started.returncode == 0, started.stderr
        again = penstock(tmp_path, "cluster", "start", *where)
        assert again.returncode == 2
        assert "one was started already" in again.stderr
        found = until(idle, status)
        assert found["url"] in started.stderr
        pids = [found["master"]["pid"], *(one["pid"] for one in found["workers"])]
        assert all(psutil.pid_exists(pid) for pid in pids)

        load = ["--rate", "40", "--duration", "5", "--td", "2", "--policy", "psps"]
        settings = ["--properties-file", str(tmp_path / "cluster" / "spark.conf")]
        cluster = ["--cluster", found["url"], *settings, "--workers", "1..2", "--json", "run.json"]
        ran = penstock(tmp_path, "run", "wordcount", *load, *POOLS, *cluster)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        came = json.loads((tmp_path / "run.json").read_text())
        assert came["events"] == came["processed"] == 200
        assert came["repeated"] == 0
        assert came["workers"]["worker_seconds"] > 0
        after = until(idle, status)
        assert [after["master"]["pid"], *(one["pid"] for one in after["workers"])] == pids
    finally:
        stopped = penstock(tmp_path, "cluster", "stop", *where)
    assert stopped.stderr == "3 processes stopped\n"
    assert not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids)
    assert penstock(tmp_path, "cluster", "status", *where).stderr == "no cluster runs\n"
