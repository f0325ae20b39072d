"""Micro-batches in the workers: rows as events, and an agent that says nothing new."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from penstock.engine.plan.program import MicroBatch
from penstock.engine.protocol.messages import OperatorRouting, Routing, TablesQuery
from penstock.engine.worker.agent import agent_for
from penstock.engine.worker.microbatch import agent_of, send_rows
from penstock.topology import Topology

Driver = Any
Tools = SimpleNamespace


def app() -> Topology:
    topology = Topology("app")
    topology.operator("end", len, inputs=topology.source("events"))
    return topology


def test_rows_of_a_data_frame_are_numbered_by_batch_partition_and_row(driver: Driver, tools: Tools) -> None:
    program = driver.program(app(), microbatch=MicroBatch(12, "events"))
    batches = [pa.RecordBatch.from_pylist([{"v": 1}, {"v": 2}]), pa.RecordBatch.from_pylist([{"v": 3}])]
    before = time.time()
    left = tools.left(*send_rows(program, 5, 12, batches))
    assert left.ids == ["12-5-0", "12-5-1", "12-5-2"]
    assert left.events == [{"v": 1}, {"v": 2}, {"v": 3}]
    assert all(before <= born <= time.time() for row in left.bundles for born in row.born)
    tools.until(lambda: (one := driver.latest("events", 5)) and one.processed == 3)


def test_what_the_driver_says_meanwhile_is_for_the_next_batch(driver: Driver, tools: Tools) -> None:
    topology = Topology("words")
    count: Any = lambda event, state: None  # noqa: E731
    topology.operator("count", count, inputs=topology.source("words"), key="word", key_groups=4)
    program = driver.program(topology, microbatch=MicroBatch(0, "words"))
    agent = agent_of(program)
    driver.server.publish(Routing(7, {"count": OperatorRouting((1,))}))
    tools.until(lambda: agent_for(program).routing.version == 7)
    assert agent.wait_for_routing(0.0)
    assert agent.routing.operators == program.routing
    tables = {"count": program.routing["count"].table}
    assert agent.ask_tables(TablesQuery(0)) == tables


def test_in_real_time_it_is_the_agent_itself(driver: Driver) -> None:
    program = driver.program(app())
    assert agent_of(program) is agent_for(program)
