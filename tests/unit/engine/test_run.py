"""A run before it is started: what it knows already, and what it cannot say or do yet."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from penstock.engine import run as engine_run
from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.errors import AwayError, EngineError, InputError
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


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: Run) -> None:
        raise InterruptedError("as far as Spark")

    monkeypatch.setattr(Run, "_open_spark", nothing)
    monkeypatch.setattr(engine_run, "check_java", lambda: None)


@pytest.mark.usefixtures("no_spark")
def test_the_folder_is_read_once_no_other_driver_is_at_work_in_it(tmp_path: Path) -> None:
    """`run.json` was read before the lock: a driver that had waited went on under a generation already used."""
    topology = Topology("t", pool=2)
    topology.operator("o", print, inputs=topology.source("s"))

    def made() -> Run:
        source = TraceSource(constant(10, duration_s=1), [1])
        return Run(topology, source, options=RunOptions(folder=tmp_path / "run"))

    stranger = made()
    first = made()
    (tmp_path / "run").mkdir()
    first._home.file.write(tmp_path / "run")
    second = made()
    msgspec.structs.replace(first._home.file, generation=6).write(tmp_path / "run")
    with pytest.raises(InterruptedError):
        second.start()
    assert (second.id, second._home.file.generation, second.carried_on) == (first.id, 6, 7)
    with pytest.raises(EngineError, match=f"another driver has begun run {first.id} here; make a new Run"):
        stranger.start()


@pytest.mark.usefixtures("no_spark")
def test_the_folder_of_a_run_is_private(tmp_path: Path) -> None:
    topology = Topology("t", pool=2)
    topology.operator("o", print, inputs=topology.source("s"))
    run = Run(topology, TraceSource(constant(10, duration_s=1), [1]), options=RunOptions(folder=tmp_path / "a" / "run"))
    with pytest.raises(InterruptedError):
        run.start()
    assert stat.S_IMODE((tmp_path / "a" / "run").stat().st_mode) == 0o700


def failed(run: Run, ended: list[str]) -> EngineError:
    """Have the run at work, and failed."""
    failure = EngineError("the query died 6 times in a row without progress; the last time: x")
    work = SimpleNamespace(failure=failure, restarts=5, layout=run._layout)
    run._driver = SimpleNamespace(  # type: ignore[assignment]
        work=work, stop_sources=lambda: ended.append("sources"), end=lambda: ended.append("work")
    )
    return failure


def test_stopping_a_run_that_has_failed_says_so_once_all_is_ended(run: Run) -> None:
    """It said False, and leaving the block nothing at all, though the guide said that both raise."""
    ended: list[str] = []
    failure = failed(run, ended)
    with pytest.raises(EngineError) as raised:
        run.stop()
    assert (raised.value, ended, run.stopped()) == (failure, ["sources", "work"], True)
    assert run.stop()  # it has been ended, and has said why


def test_leaving_the_block_of_a_run_that_has_failed_raises(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "start", lambda: run)
    failure = failed(run, [])
    with pytest.raises(EngineError) as raised, run:
        pass
    assert raised.value is failure


def test_what_the_block_raised_is_not_hidden_by_the_runs_failure(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "start", lambda: run)
    failed(run, [])
    with pytest.raises(ZeroDivisionError), run:
        raise ZeroDivisionError


def test_a_committed_sink_needs_a_folder_that_lasts(tmp_path: Path) -> None:
    """What waits for its checkpoint was in a temporary folder: a new driver would not have found it."""
    topology = Topology("mine")
    sink = DatabaseSink(f"sqlite:///{tmp_path}/out.db", level="committed")
    topology.operator("store", sink, inputs=topology.source("numbers"))
    source = TraceSource(constant(1.0, 1.0), [{}])
    with pytest.raises(InputError, match=r"operator 'store' \(.*\): level committed needs a folder .*; got none"):
        Run(topology, source).check()
    Run(topology, source, options=RunOptions(folder=tmp_path / "run")).check()


class Flaky:
    """A sink that is away as often as it is told."""

    def __init__(self, away: int) -> None:
        self.away, self.tried = away, 0

    def process(self, event: object) -> None: ...

    def check(self) -> None:
        self.tried += 1
        if self.tried <= self.away:
            raise AwayError("table 'x': cannot be used; connection refused")


@pytest.mark.parametrize("carried_on", [False, True])
def test_only_a_run_that_is_carried_on_waits_for_what_is_away(tmp_path: Path, carried_on: bool) -> None:
    """A driver that was started again while its broker was away gave up after ten seconds."""
    sink, topology = Flaky(away=2), Topology("mine")
    topology.operator("store", sink, inputs=topology.source("numbers"))

    def made() -> Run:
        source = TraceSource(constant(1.0, 1.0), [{}])
        return Run(topology, source, options=RunOptions(folder=tmp_path))

    if carried_on:
        msgspec.structs.replace(made()._home.file, generation=0).write(tmp_path)
        made().check()
        assert sink.tried == 3
    else:
        with pytest.raises(AwayError, match="table 'x': cannot be used"):
            made().check()
        assert sink.tried == 1
