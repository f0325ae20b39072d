"""A run before it is started: what it knows already, and what it cannot say or do yet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.errors import EngineError, InputError
from penstock.sinks import DatabaseSink
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant


@pytest.fixture
def run() -> Run:
    topology = Topology("t", pool=2)
    topology.operator("o", print, inputs=topology.source("s"), pool=3)
    return Run(topology, TraceSource(constant(10, duration_s=1), [1]), replicas={"o": 2})


def test_pools_and_active_replicas_are_known(run: Run) -> None:
    assert (run.pools, run.active) == ({"o": (0, 1, 2)}, {"o": (0, 1)})
    run.set_replicas("o", [2])
    assert run.active == {"o": (2,)}


def test_nothing_has_happened(run: Run) -> None:
    counters = run.counters()
    assert (counters.sources, counters.restarts) == ({"s": 0}, 0)
    assert (run.epoch_s, run.failure, run.carried_on, run.online_states()) == (None, None, 0, {})
    assert (run.places(), run.hosts()) == ({}, {})


def test_to_stop_it_or_to_wait_for_earlier_shifts_is_no_fault(run: Run) -> None:
    assert run.stop()
    assert run.wait_settled(0.0)


@pytest.mark.parametrize(
    "ask",
    [
        lambda run: run.spark,
        Run.fresh_counters,
        lambda run: run.lay_out_anew({"o": [0, 1]}),
        lambda run: run.cut_channel(True),
        lambda run: run.wait_drained(1.0),
        lambda run: run.wait(1.0),
    ],
)
def test_what_needs_replicas_at_work_is_refused(run: Run, ask: Callable[[Run], object]) -> None:
    with pytest.raises(EngineError, match="the run has not been started"):
        ask(run)


@pytest.mark.parametrize("all_sent", [True, False])
def test_nothing_is_drained_before_all_has_been_sent(run: Run, all_sent: bool) -> None:
    """A query that has just been started again has counters of zero, and all of its batch still to send."""
    work = SimpleNamespace(failure=None, restarts=0, all_sent=lambda: all_sent)
    driver = SimpleNamespace(work=work, ask_all=lambda _: True)
    run._driver = driver  # type: ignore[assignment]
    assert run.wait_drained(0.3) is all_sent


def test_a_committed_sink_needs_a_folder_that_lasts(tmp_path: Path) -> None:
    """What waits for its checkpoint was in a temporary folder: a new driver would not have found it."""
    topology = Topology("mine")
    sink = DatabaseSink(f"sqlite:///{tmp_path}/out.db", level="committed")
    topology.operator("store", sink, inputs=topology.source("numbers"))
    source = TraceSource(constant(1.0, 1.0), [{}])
    with pytest.raises(InputError, match=r"operator 'store' \(.*\): level committed needs a folder .*; got none"):
        Run(topology, source).check()
    Run(topology, source, options=RunOptions(folder=tmp_path / "run")).check()
