"""`penstock run` as a user starts it, in a process of its own.

Loads go up and down until a test has seen what it wants, and ends the run: how fast the machine is decides nothing.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.waiting import LONG_S, until

OPERATORS = {"clean", "classify", "author", "store"}
SHORT = ["--service-ms", "clean=10,classify=20,author=15,store=10", "--pool", "clean=3,classify=5,author=4,store=3"]
LEFT = ["--json", "run.json", "--html", "run.html", "--store", "run.db"]
GUARDED = (
    "not to be trusted",
    "not scaled in",
    "scale-in waits",
    "the pool has",
    "at least 1",
)  # what keeps a plan from being done

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """`start(*arguments)`: a run in the test's folder, its output in a file; whatever happens, none is left."""
    runs: list[subprocess.Popen[bytes]] = []

    def started(*arguments: str, on_ctrl_c: Any = signal.SIG_DFL) -> subprocess.Popen[bytes]:
        """As from a terminal, or (SIG_IGN) as nohup does it; the tests themselves may run under either."""
        with (tmp_path / "output").open("wb") as output:
            runs.append(
                subprocess.Popen(
                    [sys.executable, "-m", "penstock.cli", "run", *arguments],
                    cwd=tmp_path,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    preexec_fn=lambda: signal.signal(signal.SIGINT, on_ctrl_c),
                )
            )
        return runs[-1]

    yield started
    for run in runs:
        run.kill()
        run.wait()


def finished(process: subprocess.Popen[bytes], folder: Path) -> dict[str, Any]:
    """Wait for its end; the summary that it wrote."""
    process.wait(LONG_S)
    assert process.returncode == 0, (folder / "output").read_text()
    found: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return found


def waves(folder: Path) -> Path:
    """20 events/s for 6 s, then 130 for 8 s, again and again for ten minutes."""
    rates = ([20] * 6 + [130] * 8) * 43
    file = folder / "waves.csv"
    file.write_text("time_s,rate\n" + "".join(f"{n},{rate}\n" for n, rate in enumerate(rates)))
    return file


def rows(folder: Path, query: str) -> list[Any]:
    """What the store of the run in this folder says; nothing before there is such a table."""
    with (
        suppress(sqlite3.OperationalError),
        closing(sqlite3.connect(f"file:{folder}/run.db?mode=ro", uri=True)) as store,
    ):
        return store.execute(query).fetchall()
    return []


def wait_for(process: subprocess.Popen[bytes], folder: Path, true: Callable[[], Any]) -> list[psutil.Process]:
    """Wait until the run has come that far; then all its processes."""

    def output() -> str:
        return (folder / "output").read_text(errors="replace")[-3000:]

    def there() -> Any:
        assert process.poll() is None, f"ended too early: {output()}"
        return true()

    until(there, output, look_every_s=0.2)  # a look at the store is work
    return psutil.Process(process.pid).children(recursive=True)


def changed(folder: Path, how: str) -> set[str]:
    """The operators with a decision of that kind."""
    return {row[0] for row in rows(folder, f"SELECT DISTINCT operator FROM decisions WHERE {how}")}


def entered(folder: Path) -> int:
    """Intervals in which events entered."""
    found = rows(folder, "SELECT count(*) FROM intervals WHERE entered > 0")
    return int(found[0][0]) if found else 0


def left_of(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that do not end."""
    _, alive = psutil.wait_procs(processes, timeout=LONG_S)
    return [one for one in alive if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


def test_psps_sizes_the_twitter_app_by_itself_until_ctrl_c(tmp_path: Path, start: Start) -> None:
    """Jumps from 20 to 130 events/s: all operators grow and shrink again; stopped by hand, it loses nothing.

    It finishes what is in flight, and leaves no process behind.
    """
    arguments = ["--trace", str(waves(tmp_path)), "--policy", "psps", "--td", "2", "--forecaster", "last_value"]
    process = start("twitter", *arguments, "--grouping", "load_balancing", *LEFT, *SHORT)

    def sized() -> bool:
        peak = dict(rows(tmp_path, "SELECT operator, max(replicas) FROM operators GROUP BY operator"))
        high = peak.get("classify", 0) >= 3 and peak.get("clean", 0) >= 2
        return high and changed(tmp_path, "after > before") == changed(tmp_path, "after < before") == OPERATORS

    below = wait_for(process, tmp_path, sized)
    assert len(below) > 10
    os.kill(process.pid, signal.SIGINT)
    found = finished(process, tmp_path)
    assert 0 < found["events"] == found["processed"]
    assert found["dropped"] == {}
    assert found["processed_ratio"] == 1.0
    assert found["saved_resources"] < 1
    assert found["throughput_degradation"] >= 0
    assert set(found["latency_ms"]) == {"mean", "p50", "p90", "p99"}
    reasons = [row[0] for row in rows(tmp_path, "SELECT reason FROM decisions WHERE after > before")]
    assert all("replicas" in reason for reason in reasons)
    assert "data:image/png;base64" in (tmp_path / "run.html").read_text()
    assert "saved resources" in (tmp_path / "output").read_text()
    assert left_of(below) == []


def test_cba_plans_ahead_over_forecasts_of_every_operator_until_terminated(tmp_path: Path, start: Start) -> None:
    """BGElasor's way: a predictor for each operator's input, a timetable, and its first step carried out.

    Under nohup, where SIGINT is ignored and stays so, SIGTERM ends it. The tests hung here when a runner had started
    them in the background: what is started then inherits that.
    """
    arguments = ["--trace", str(waves(tmp_path)), "--policy", "cba:horizon=4", "--td", "2"]
    process = start("twitter", *arguments, *LEFT, *SHORT, on_ctrl_c=signal.SIG_IGN)

    def planned() -> bool:
        series = {row[0] for row in rows(tmp_path, "SELECT DISTINCT series FROM forecasts")}
        intervals = rows(tmp_path, "SELECT count(DISTINCT number) FROM timetables")
        return series == {"tweets", *OPERATORS} and intervals > [(2,)]

    below = wait_for(process, tmp_path, planned)
    os.kill(process.pid, signal.SIGINT)
    before = entered(tmp_path)
    wait_for(process, tmp_path, lambda: entered(tmp_path) > before + 1)  # it goes on
    os.kill(process.pid, signal.SIGTERM)
    found = finished(process, tmp_path)
    assert 0 < found["events"] == found["processed"]
    assert [row[0] for row in rows(tmp_path, "SELECT DISTINCT step FROM timetables ORDER BY step")] == [1, 2, 3, 4]
    of_first = "FROM timetables t JOIN decisions d USING (run, number, operator) WHERE t.step = 1"
    plans = rows(tmp_path, f"SELECT t.replicas, d.after, d.reason {of_first}")
    (count,) = rows(tmp_path, "SELECT count(*) FROM timetables WHERE step = 1")
    assert len(plans) == count[0]
    done = [after == first for first, after, _ in plans]
    assert any(done)
    assert all(one or any(word in why for word in GUARDED) for one, (_, _, why) in zip(done, plans, strict=True)), plans
    assert "The policy planned" in (tmp_path / "run.html").read_text()
    assert left_of(below) == []


def test_a_users_own_topology(tmp_path: Path, start: Start) -> None:
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
    arguments = ["--rate", "100", "--duration", "2", "--events", "words.jsonl"]
    found = finished(start("mine:topology", *arguments, "--json", "run.json"), tmp_path)
    assert found["operators"]["end"]["processed"] == 200
    lines = [line for file in (tmp_path / "collected").iterdir() for line in file.read_text().splitlines()]
    assert len(lines) == 200
    assert {json.loads(line)[1]["word"] for line in lines} == {"STORM", "SPARK"}


def test_a_killed_driver_leaves_nothing_behind(tmp_path: Path, start: Start) -> None:
    arguments = ["--rate", "40", "--duration", "900", "--td", "1", "--warm-up", "1", "--store", "run.db"]
    process = start("twitter", *arguments, *SHORT)
    below = wait_for(process, tmp_path, lambda: entered(tmp_path))
    assert len(below) > 10
    process.kill()
    process.wait()
    assert left_of(below) == []
