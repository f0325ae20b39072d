"""`penstock run --cluster spark://…` on a cluster that is there already: it is used, and it stays."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

POOLS = ["--pool", "split=2,counter=2,consumer=2"]


def penstock(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "penstock.cli", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_run_on_executors_of_someone_elses_cluster(tmp_path: Path) -> None:
    where = ["--folder", str(tmp_path / "cluster")]
    started = penstock(tmp_path, "cluster", "start", "--workers", "2", "--cores", "16", *where)
    try:
        assert started.returncode == 0, started.stderr
        url = json.loads(penstock(tmp_path, "cluster", "status", "--json", "-", *where).stdout)["url"]
        load = ["--rate", "20", "--duration", "12", "--td", "3", "--policy", "psps"]
        settings = ["--properties-file", str(tmp_path / "cluster" / "spark.conf")]
        cluster = ["--cluster", url, *settings, "--workers", "1..2", "--json", "run.json"]
        ran = penstock(tmp_path, "run", "wordcount", *load, *POOLS, *cluster)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        found = json.loads((tmp_path / "run.json").read_text())
        assert found["events"] == found["processed"] == 240
        assert found["repeated"] == 0
        assert found["workers"]["worker_seconds"] > 0
        after = json.loads(penstock(tmp_path, "cluster", "status", "--json", "-", *where).stdout)
        assert after["whole"]
        assert after["applications"] == []
    finally:
        stopped = penstock(tmp_path, "cluster", "stop", *where)
    assert stopped.stderr == "3 processes stopped\n"
