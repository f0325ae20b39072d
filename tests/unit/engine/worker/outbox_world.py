"""A chain of two operators, and the outbox of the first."""

from __future__ import annotations

from typing import Any

from penstock.engine.plan.program import Program
from penstock.engine.protocol.messages import OperatorRouting, Routing
from penstock.engine.worker.outbox import Outbox
from penstock.metrics.counters import ReplicaCounters
from penstock.topology import Topology


def same(event: object) -> object:
    return event


def chain(**receiver: Any) -> Topology:
    topology = Topology("chain", pool=8)
    first = topology.operator("first", same, inputs=topology.source("events"))
    topology.operator("second", same, inputs=first, **receiver)
    return topology


def routing_of(program: Program, **active: tuple[int, ...]) -> Routing:
    changed = {name: OperatorRouting(replicas) for name, replicas in active.items()}
    return Routing(1, dict(program.routing) | changed)


def outbox_of(program: Program, name: str = "first", replica: int = 0, level: int = 1) -> Outbox:
    return Outbox(program, level, name, replica, ReplicaCounters())
