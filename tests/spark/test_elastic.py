"""`Elastic` around any run: a session of the user's own, a policy of the user's own, a run that was there before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.metrics.snapshot import Snapshot
from penstock.metrics.store import Store
from tests.waiting import LONG_S, until


def same(event: dict[str, int]) -> dict[str, int]:
    return event


def chain(folder: Path) -> penstock.Topology:
    topology = penstock.Topology("chain", pool=3)
    first = topology.operator("first", same, inputs=topology.source("numbers"))
    topology.operator("end", penstock.CollectSink(folder), inputs=first, pool=2)
    return topology


def numbers(count: int, rate: float) -> penstock.TraceSource:
    return penstock.TraceSource(penstock.constant(rate, count / rate), [{"n": n} for n in range(count)])


class Growing:
    """One replica more of `first` every interval."""

    def plan(self, snapshot: Snapshot, forecast: object = None) -> penstock.Plan:
        wanted = snapshot.operators["first"].replicas + 1
        return penstock.Plan({"first": penstock.Target(wanted, "always more")})


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """As a user makes it, in a program that does other things with Spark as well."""
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[14]").config(map=penstock.spark_settings())
    spark = builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR").getOrCreate()
    yield spark
    spark.stop()


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=LONG_S) as answer:
        return str(answer.read().decode())


def test_a_policy_of_ones_own_in_a_session_of_ones_own_is_shown_while_it_goes_on(
    session: SparkSession, tmp_path: Path
) -> None:
    run = penstock.Run(chain(tmp_path / "out"), numbers(100_000, rate=100), spark=session)
    store = tmp_path / "metrics.db"
    with penstock.Elastic(run, Growing(), td_s=0.5, warm_up_s=0.5, store=store, ui="0") as live:
        until(lambda: len(run.active["first"]) == 3)
        before = steps(live)
        until(lambda: steps(live) > before + 2)  # in which it wants a fourth
        check_shown(live)
        run.stop_sources()
        assert run.wait_drained(LONG_S)
        count = run.counters().sources["numbers"]
        assert f'penstock_events_processed_total{{operator="end"}} {float(count)}' in read(f"{live.ui_url}metrics")
    with pytest.raises(urllib.error.URLError):
        read(str(live.ui_url))
    assert session.range(5).count() == 5  # the session is still the user's
    summary = live.summary()
    assert (summary["events"], summary["processed"], summary["dropped"]) == (count, count, {})
    assert summary["operators"]["first"]["active"] == [0, 1, 2]  # the pool bounds it
    assert sorted(event["n"] for _, event in penstock.collected(tmp_path / "out")) == list(range(count))
    check_kept(store)


def steps(live: penstock.Elastic) -> int:
    """That the loop has made."""
    return live.loop_state.last.number if live.loop_state.last is not None else 0


def check_shown(live: penstock.Elastic) -> None:
    """To a browser, and to Prometheus."""
    shown = until(lambda: (one := json.loads(read(f"{live.ui_url}api/runs/{live.name}")))["series"]["numbers"] and one)
    assert {one["operator"] for one in shown["moment"]["operators"]} == {"first", "end"}
    told = read(f"{live.ui_url}metrics")
    assert f'penstock_run_info{{policy="Growing",run="{live.name}",topology="chain"}} 1.0' in told
    assert 'penstock_replicas{operator="first"} 3.0' in told


def check_kept(file: Path) -> None:
    store = Store(str(file), must_exist=True)
    (kept,) = store.runs()
    reasons = {row.reason for row in store.decisions(kept.run, "first")}
    store.close()
    assert kept.finished_at is not None
    assert any("always more" in reason for reason in reasons)


def test_a_run_that_was_there_before_goes_on_without_it(session: SparkSession, tmp_path: Path) -> None:
    run = penstock.Run(chain(tmp_path / "out"), numbers(100_000, rate=100), replicas={"end": 2}, spark=session)
    with run:
        with penstock.Elastic(run, "static:2", td_s=1.0, warm_up_s=0.5) as live:
            until(lambda: len(run.active["first"]) == 2)
        assert run.active == {"first": (0, 1), "end": (0, 1)}
        before = live.counters().operators["end"].total.processed
        assert live.summary()["operators"]["end"]["processed"] == before  # as it was when the loop ended
        until(lambda: run.counters().operators["end"].total.processed > before, lambda: "the run ended with the loop")
        run.stop_sources()
        assert run.wait_drained(LONG_S)


SUBMITTED = """
import penstock, sys
topology = penstock.Topology("mine", pool=2)
topology.operator("end", len, inputs=topology.source("numbers"))
source = penstock.TraceSource(penstock.constant(100, duration_s=1), [{"n": 1}])
with penstock.Run(topology, source) as run:
    assert run.wait(300)
    print("master", run.spark.sparkContext.master, "processed", run.counters().operators["end"].total.processed)
"""


def test_what_spark_submit_was_told_is_not_overridden(tmp_path: Path) -> None:
    """It was: a program that was submitted to a cluster ran on local[N], on the machine that submitted it."""
    import pyspark

    script = tmp_path / "app.py"
    script.write_text(SUBMITTED)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    here = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    paths = (str(Path(penstock.__file__).parents[1]), os.environ.get("PYTHONPATH"))
    here["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    command = [str(submit), "--master", "local[23]", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, env=here, timeout=300, check=False)
    assert "master local[23] processed 100" in done.stdout, done.stderr[-2000:]
