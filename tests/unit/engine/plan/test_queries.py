"""A micro-batch from its first line to its last: in flight, though no counter shows it yet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.driver.positions import Positions
from penstock.engine.driver.routing import RoutingTable
from penstock.engine.plan import queries
from penstock.engine.plan.queries import MicroBatchQuery, SourcesStopped
from penstock.topology import Topology


class Plan:
    """What Spark is given to do; the test looks on, or breaks it."""

    def __init__(self, query: MicroBatchQuery, error: Exception | None) -> None:
        self.query, self.error = query, error
        self.was_unfinished = False
        self.write = self
        self.range = lambda *_: SimpleNamespace(toDF=lambda _: None)

    def format(self, _: str) -> Plan:
        return self

    def mode(self, _: str) -> Plan:
        return self

    def save(self) -> None:
        self.was_unfinished = self.query.unfinished
        if self.error is not None:
            raise self.error


class Plant:
    """A micro-batch query over one source of 10 events, all due."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, tools: Any) -> None:
        topology = Topology("t", pool=1)
        topology.operator("o", print, inputs=topology.source("s"))
        self.table = RoutingTable(topology, {})
        self.stopping = False
        self.seen: list[bool] = []  # whether a batch was in flight when it looked whether sources are stopped
        source: Any = SimpleNamespace(due=lambda _: 10)
        positions = Positions(folder / "positions.json")
        self.query = MicroBatchQuery(None, folder, topology, {"s": source}, positions, self._routing)  # type: ignore[arg-type]
        self.plan = Plan(self.query, None)
        self.query.spark = self.plan  # type: ignore[assignment]
        self.program = tools.program_of(topology, realtime=False)
        monkeypatch.setattr(queries, "compile_program", lambda frame, program: self.plan)

    def _routing(self) -> Any:
        self.seen.append(self.query.unfinished)
        return self.table.current.operators, 0.0, self.stopping

    def run(self, batch: int, **changes: Any) -> None:
        self.program = replace(self.program, **changes)
        self.query._run_batch(self.program, None, batch)  # type: ignore[arg-type]


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tools: Any) -> Plant:
    return Plant(tmp_path, monkeypatch, tools)


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
    plant.stopping, plant.plan.error = True, None
    plant.run(0)
    assert plant.plan.was_unfinished  # the same events again, though sources are stopped
    assert not plant.query.unfinished


def test_a_batch_with_nothing_to_send_is_done(plant: Plant) -> None:
    plant.stopping = True
    plant.run(0)
    assert plant.seen == [True]
    assert not plant.plan.was_unfinished
    assert not plant.query.unfinished


def test_a_batch_of_a_data_frame_that_sources_are_stopped_before_has_not_begun(plant: Plant) -> None:
    plant.stopping = True
    with pytest.raises(SourcesStopped):
        plant.run(0, frame_source="s")
    assert not plant.query.unfinished


def test_a_batch_of_a_data_frame_that_died_and_is_not_done_again_is_not_finished(plant: Plant) -> None:
    plant.plan.error = RuntimeError("a worker is gone")
    with pytest.raises(RuntimeError):
        plant.run(0, frame_source="s")
    plant.stopping = True
    with pytest.raises(SourcesStopped):
        plant.run(0)
    assert plant.query.unfinished
