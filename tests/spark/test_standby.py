"""A run with a standby: its processes wait beside those at work, go on at once after a fault, and make room."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.errors import EngineError
from penstock.sinks import CollectSink, DatabaseSink
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant
from tests.sequences import is_whole, sequences
from tests.waiting import LONG_S, until


def counted(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    state["seen"] = state.get("seen", 0) + 1
    return {"key": event["n"] % 7, "seen": state["seen"]}


def stands_by(run: Run) -> bool:
    """Whether all processes of another attempt are there, as the driver sees it."""
    driver = run._at_work
    at_work = driver.work.current.supervisor.generation  # type: ignore[attr-defined]
    return run._server.known(at_work + 1) == driver.work.layout.tasks


def test_the_standby_goes_on_and_makes_room_and_counts_stay_exact(tmp_path: Path) -> None:
    topology, url = Topology("standby", pool=2), f"sqlite:///{tmp_path}/counts.db"
    by_key = topology.operator("count", counted, inputs=topology.source("numbers"), key="key", key_groups=16)
    topology.operator("end", DatabaseSink(url, "counts", level="latest"), inputs=by_key)
    numbers = [{"n": n, "key": n % 7} for n in range(10_000)]
    options = RunOptions(folder=tmp_path / "run", checkpoint_every_s=2, standby=True)
    with Run(topology, TraceSource(constant(50.0, 900.0), numbers), options=options) as run:
        for kill in range(2):
            until(lambda: stands_by(run))
            waiting = {at.pid for at in run.places().values()}
            os.kill(run.places()["count", 0].pid, signal.SIGKILL)
            until(lambda kill=kill: len(run.faults()) > kill and run.faults()[-1].seconds)
            assert waiting.isdisjoint(at.pid for at in run.places().values())
        until(lambda: stands_by(run))
        run.lay_out_anew({"count": (0,), "end": (0, 1)})  # in the slots that the standby had
        until(lambda: stands_by(run))
        os.kill(run.places()["count", 0].pid, signal.SIGKILL)
        until(lambda: len(run.faults()) > 2 and run.faults()[-1].seconds)
        print("stood still for", [one.seconds and round(one.seconds, 2) for one in run.faults()], "s")
        assert run.stop(LONG_S)
        sent = run.counters().sources["numbers"]
    seen = sequences(tmp_path / "counts.db")
    assert sum(map(len, seen.values())) == sent
    assert all(map(is_whole, seen.values()))


def test_an_operators_error_is_not_taken_for_a_process_that_was_ended(tmp_path: Path, collected_in: Path) -> None:
    """Its process ends, too, and Spark, who knows why, is heard later."""
    flag = tmp_path / "flag"

    def refuse(event: dict[str, Any]) -> dict[str, Any]:
        if flag.exists():
            raise ValueError("no such number")
        return event

    topology = Topology("failing", pool=2)
    first = topology.operator("first", refuse, inputs=topology.source("numbers"))
    topology.operator("end", CollectSink(collected_in), inputs=first)
    options = RunOptions(retries=0, standby=True)
    run = Run(topology, TraceSource(constant(50.0, 900.0), [{}]), options=options).start()
    until(lambda: stands_by(run))
    flag.touch()
    until(lambda: run.failure)
    with pytest.raises(EngineError, match=r"the query died: operator 'first'.*ValueError: no such number"):
        run.stop()
