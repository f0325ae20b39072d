"""A batch of a DataFrame from its first line to its last: in flight, though no counter shows it yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from penstock.engine.binding import bind_sources
from penstock.engine.driver import microbatch
from penstock.engine.driver.microbatch import MicroBatches, MicroBatchQuery, SourcesStopped, next_batch
from penstock.engine.driver.routing import RoutingTable
from penstock.engine.options import RunOptions
from penstock.engine.plan.program import MicroBatch, Program
from penstock.engine.protocol.messages import StartQuery
from penstock.errors import EngineError, InputError
from penstock.sources import FileSource, TraceSource
from penstock.topology import Topology
from penstock.workload import constant

from ..made import Published


class Plan:
    """What Spark is given to do; the test looks on, or breaks it."""

    def __init__(self, query: MicroBatchQuery) -> None:
        self.query, self.error = query, None
        self.programs: list[Program] = []
        self.was_unfinished = False
        self.write = self

    def format(self, _: str) -> Plan:
        return self

    def mode(self, _: str) -> Plan:
        return self

    def save(self) -> None:
        self.was_unfinished = self.query.unfinished
        if self.error is not None:
            raise self.error


class Plant:
    """A micro-batch query over one DataFrame."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tools: Any) -> None:
        topology = Topology("t", pool=3)
        first = topology.operator("o", print, inputs=topology.source("s"))
        topology.operator("end", print, inputs=first, grouping="online_shuffle")
        self.table = RoutingTable(topology, {}, Published())
        self.seen: list[bool] = []  # whether a batch was in flight when it asked for the routing
        self.query = MicroBatchQuery(None, Path(), topology, self._routing)  # type: ignore[arg-type]
        self.plan = Plan(self.query)
        self.program = tools.program_of(topology, slots=2)
        monkeypatch.setattr(microbatch, "compile_program", self._compile)

    def _routing(self) -> Any:
        self.seen.append(self.query.unfinished)
        return self.table.current.operators, self.table.used

    def _compile(self, rows: Any, program: Program) -> Plan:
        self.plan.programs.append(program)
        return self.plan

    def run(self, batch: int) -> None:
        self.query._run_batch(self.program, None, batch)  # type: ignore[arg-type]


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch, tools: Any) -> Plant:
    return Plant(monkeypatch, tools)


def test_a_batch_is_in_flight_before_it_looks_whether_sources_are_stopped(plant: Plant) -> None:
    """A stop right after that look found no counter that moved, and the batch was killed while Spark planned it."""
    assert not plant.query.unfinished
    plant.run(0)
    assert plant.seen == [True]
    assert plant.plan.was_unfinished
    assert not plant.query.unfinished


def test_a_batch_that_died_is_in_flight_until_it_has_been_done_again(plant: Plant) -> None:
    plant.plan.error = RuntimeError("a worker is gone")
    with pytest.raises(RuntimeError):
        plant.run(0)
    assert plant.query.unfinished
    plant.plan.error = None
    plant.run(0)
    assert not plant.query.unfinished


def test_a_batch_that_sources_are_stopped_before_has_not_begun(plant: Plant) -> None:
    plant.query.finishing = True
    with pytest.raises(SourcesStopped):
        plant.run(0)
    assert not plant.query.unfinished
    assert plant.plan.programs == []


def test_a_batch_that_died_and_is_not_done_again_is_not_finished(plant: Plant) -> None:
    plant.plan.error = RuntimeError("a worker is gone")
    with pytest.raises(RuntimeError):
        plant.run(0)
    plant.query.finishing = True
    with pytest.raises(SourcesStopped):
        plant.run(0)
    assert plant.query.unfinished


def test_every_batch_is_laid_out_over_the_replicas_that_are_active_then(plant: Plant) -> None:
    plant.run(4)
    plant.table.activate("o", [2, 1])
    plant.run(5)
    before, after = plant.plan.programs
    assert [one.layout.replicas("o") for one in (before, after)] == [(0,), (2, 1)]
    assert after.routing["o"].active == (2, 1)
    assert (before.microbatch, after.microbatch) == (
        MicroBatch(4, "s", plant.table.used),
        MicroBatch(5, "s", plant.table.used),
    )
    assert (before.checkpoint, after.checkpoint) == (5, 6)  # what sinks are told: the batch after the last committed
    assert len(after.layout.stages[0]) == 2


def test_the_online_shuffle_is_a_round_robin(plant: Plant) -> None:
    """All senders of a batch are done before the first replica begins: nothing is heard in time."""
    plant.run(0)
    (edge,) = plant.plan.programs[0].edges["o"]
    assert (edge.grouping, edge.online) == ("shuffle", None)


# ── in the place of shifts ──────────────────────────────────────────────────────────────────────────────────────────


class Watched:
    """A supervisor whose query is in the test's hands."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.failure, self.restarts = EngineError("it died"), 3

    def start(self) -> None:
        self.said.append("start")

    def stop(self) -> None:
        self.said.append("stop")


def test_one_query_under_one_supervisor(plant: Plant) -> None:
    watched = Watched()
    work = MicroBatches(plant.query, lambda layout: watched)  # type: ignore[arg-type,return-value]
    work.open(plant.program.layout)
    work.await_ready()
    assert (work.layout, str(work.failure), work.restarts) == (plant.program.layout, "it died", 3)
    assert work.all_sent()
    assert work.wait_settled(0.0)
    assert work.checkpoint_now(0.0)  # every batch is one
    assert not work.all_read()
    assert not work.is_starting(0)
    work.stop_sources()
    assert plant.query.finishing
    work.stop()
    assert watched.said == ["start", "stop"]


def test_what_only_shifts_can_do_is_refused(plant: Plant) -> None:
    work = MicroBatches(plant.query, lambda layout: Watched())  # type: ignore[arg-type,return-value]
    with pytest.raises(InputError, match="in micro-batch mode every batch is laid out anew over the active replicas"):
        work.take_over(plant.program.layout)
    with pytest.raises(EngineError, match="a replica asked in micro-batch mode"):
        work.start_of(StartQuery(0, "s", 0))


# ── which sources ───────────────────────────────────────────────────────────────────────────────────────────────────


def declared(*sources: str) -> Topology:
    topology = Topology("t")
    topology.operator("o", print, inputs=[topology.source(name) for name in sources])
    return topology


class Own:
    """A source of the user's own."""

    total = 0


def given(kind: str, folder: Path) -> Any:
    if kind == "TraceSource":
        return TraceSource(constant(1.0, 1.0), ["x"])
    (folder / "events.jsonl").write_text('{"x": 1}\n')
    return FileSource(folder / "events.jsonl") if kind == "FileSource" else Own()


@pytest.mark.parametrize("kind", ["TraceSource", "FileSource", "Own"])
def test_micro_batch_mode_is_for_a_data_frame_only(kind: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        bind_sources(declared("s"), given(kind, tmp_path), RunOptions(mode="microbatch"))
    assert str(caught.value) == f"source 's': mode 'microbatch' is for a DataFrame only; got a {kind}"


def test_a_data_frame_must_be_the_only_source_and_in_micro_batch_mode() -> None:
    frame = object.__new__(DataFrame)
    for sources, mode in ((("s",), "realtime"), (("s", "t"), "microbatch")):
        with pytest.raises(InputError, match="a DataFrame must be the only source, in mode 'microbatch'"):
            bind_sources(declared(*sources), dict.fromkeys(sources, frame), RunOptions(mode=mode))
    bound = bind_sources(declared("s"), frame, RunOptions(mode="microbatch"))
    assert bound.keys() == {"s"}
    assert bound["s"] is frame


# ── where it goes on ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_next_batch_is_the_one_after_the_last_that_spark_has_committed(tmp_path: Path) -> None:
    assert next_batch(tmp_path) == 0
    commits = tmp_path / "commits"
    commits.mkdir()
    for name in ("3", "12", ".12.crc", "metadata"):
        (commits / name).touch()
    assert next_batch(tmp_path) == 13
