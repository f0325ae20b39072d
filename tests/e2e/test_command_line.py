"""`penstock run` as a user starts it, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

SHORT = ["--service-ms", "clean=10,classify=20,author=15,store=10", "--pool", "clean=3,classify=5,author=4,store=3"]


def start(folder: Path, *arguments: str, on_ctrl_c: Any = signal.SIG_DFL) -> subprocess.Popen[bytes]:
    """As from a terminal, or (SIG_IGN) as nohup does it; the tests themselves may run under either."""
    command = [sys.executable, "-m", "penstock.cli", "run", *arguments]
    return subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, on_ctrl_c),
    )


def finished(process: subprocess.Popen[bytes], timeout_s: float = 200) -> str:
    output, _ = process.communicate(timeout=timeout_s)
    return output.decode()


def summary(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def step_trace(folder: Path, quiet_s: int = 8) -> Path:
    """20 events/s for 8 s, then 130 for 8 s, then 20 again."""
    rates = [20] * 8 + [130] * 8 + [20] * quiet_s
    file = folder / "step.csv"
    file.write_text("time_s,rate\n" + "".join(f"{n},{rate}\n" for n, rate in enumerate(rates)))
    return file


def test_psps_sizes_the_twitter_app_by_itself(tmp_path: Path) -> None:
    """A jump from 20 to 130 events/s: all operators grow in one step and shrink again; nothing is lost.

    The metrics are means over intervals: a long quiet part keeps the one that works a backlog off from deciding them.
    """
    trace = step_trace(tmp_path, quiet_s=30)
    arguments = ["--trace", str(trace), "--policy", "psps", "--td", "2", "--forecaster", "last_value"]
    arguments += ["--grouping", "load_balancing", "--json", "run.json", "--html", "run.html", "--store", "run.db"]
    process = start(tmp_path, "twitter", *arguments, *SHORT)
    output = finished(process)
    assert process.returncode == 0, output
    found = summary(tmp_path / "run.json")
    assert found["events"] == found["processed"] == 1800
    assert found["dropped"] == {}
    assert found["processed_ratio"] == 1.0
    assert 0.2 < found["saved_resources"] < 1
    assert found["throughput_degradation"] < 0.4
    assert set(found["latency_ms"]) == {"mean", "p50", "p90", "p99"}
    with sqlite3.connect(tmp_path / "run.db") as store:
        rows = store.execute("SELECT operator, after, reason FROM decisions WHERE after > before").fetchall()
        peak = dict(store.execute("SELECT operator, max(replicas) FROM operators GROUP BY operator").fetchall())
    assert {row[0] for row in rows} == {"clean", "classify", "author", "store"}
    assert all("replicas" in row[2] for row in rows)
    assert peak["classify"] >= 3
    assert peak["clean"] >= 2
    assert "data:image/png;base64" in (tmp_path / "run.html").read_text()
    assert "saved resources" in output


def test_cba_plans_ahead_over_forecasts_of_every_operator(tmp_path: Path) -> None:
    """BGElasor's way: a predictor for each operator's input, a timetable, and its first step carried out."""
    arguments = ["--trace", str(step_trace(tmp_path)), "--policy", "cba:horizon=4", "--td", "2"]
    process = start(
        tmp_path, "twitter", *arguments, "--json", "run.json", "--html", "run.html", "--store", "run.db", *SHORT
    )
    output = finished(process)
    assert process.returncode == 0, output
    found = summary(tmp_path / "run.json")
    assert found["events"] == found["processed"] == 1360
    with sqlite3.connect(tmp_path / "run.db") as store:
        series = {row[0] for row in store.execute("SELECT DISTINCT series FROM forecasts")}
        steps = [row[0] for row in store.execute("SELECT DISTINCT step FROM timetables ORDER BY step")]
        first = store.execute(
            "SELECT count(*) FROM timetables t JOIN decisions d USING (run, number, operator)"
            " WHERE t.step = 1 AND t.replicas = d.after"
        ).fetchone()[0]
        plans = store.execute("SELECT count(*) FROM timetables WHERE step = 1").fetchone()[0]
    assert series == {"tweets", "clean", "classify", "author", "store"}
    assert steps == [1, 2, 3, 4]
    assert first == plans > 4  # of more than one interval, however busy the machine is
    assert "The policy planned" in (tmp_path / "run.html").read_text()


def test_a_users_own_topology(tmp_path: Path) -> None:
    """module:topology from the current folder, its events from a file."""
    (tmp_path / "mine.py").write_text(
        "from penstock.sinks import CollectSink\n"
        "from penstock.topology import Topology\n"
        "def shout(event):\n"
        "    return {'word': event['word'].upper()}\n"
        "topology = Topology('shout', pool=2)\n"
        "loud = topology.operator('loud', shout, inputs=topology.source('words'))\n"
        "topology.operator('end', CollectSink('collected'), inputs=loud)\n"
    )
    (tmp_path / "words.jsonl").write_text('{"word": "storm"}\n{"word": "spark"}\n')
    arguments = ["--rate", "50", "--duration", "4", "--events", "words.jsonl"]
    process = start(tmp_path, "mine:topology", *arguments, "--json", "run.json")
    output = finished(process)
    assert process.returncode == 0, output
    assert summary(tmp_path / "run.json")["operators"]["end"]["processed"] == 200
    lines = [line for file in (tmp_path / "collected").iterdir() for line in file.read_text().splitlines()]
    assert len(lines) == 200
    assert {json.loads(line)[1]["word"] for line in lines} == {"STORM", "SPARK"}


def descendants(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def wait_for_workers(process: subprocess.Popen[bytes], store: Path) -> list[psutil.Process]:
    """Wait until the first interval is in the store, so events flow; then all processes of the run."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"ended too early: {finished(process)}")
        if store.exists():
            with sqlite3.connect(store) as connection:
                tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
                if "intervals" in tables and connection.execute("SELECT count(*) FROM intervals").fetchone()[0]:
                    return descendants(process)
        time.sleep(0.2)
    process.terminate()  # or else it is there for as long as the tests that come after
    pytest.fail(f"no interval was recorded within 300 s: {finished(process)}")


def all_gone(processes: list[psutil.Process], timeout_s: float) -> list[psutil.Process]:
    _, alive = psutil.wait_procs(processes, timeout=timeout_s)
    return [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminate"])
def test_stopped_by_hand_it_finishes_what_is_in_flight_and_leaves_nothing_behind(
    how: signal.Signals, tmp_path: Path
) -> None:
    """Under nohup, where SIGINT is ignored and stays so, SIGTERM does it.

    The tests hung here when a runner had started them in the background: what is started then inherits that.
    """
    nohup = how is signal.SIGTERM
    arguments = ["--rate", "40", "--duration", "600", "--td", "1", "--warm-up", "1", "--store", "run.db"]
    ignoring = signal.SIG_IGN if nohup else signal.SIG_DFL
    process = start(tmp_path, "twitter", *arguments, "--json", "run.json", *SHORT, on_ctrl_c=ignoring)
    below = wait_for_workers(process, tmp_path / "run.db")
    assert len(below) > 10
    if nohup:
        os.kill(process.pid, signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2)
    os.kill(process.pid, how)
    output = finished(process, 90)
    assert process.returncode == 0, output
    found = summary(tmp_path / "run.json")
    assert 0 < found["events"] == found["processed"]
    assert all_gone(below, 30) == []


def test_a_killed_driver_leaves_nothing_behind(tmp_path: Path) -> None:
    arguments = ["--rate", "40", "--duration", "600", "--td", "1", "--warm-up", "1", "--store", "run.db"]
    process = start(tmp_path, "twitter", *arguments, *SHORT)
    below = wait_for_workers(process, tmp_path / "run.db")
    process.kill()
    process.communicate()
    assert all_gone(below, 30) == []
