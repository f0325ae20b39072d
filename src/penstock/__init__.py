"""Predictive elasticity for stream processing on Apache Spark.

What a program needs is here; nothing is loaded before it is used, so that importing this needs neither Spark nor Java.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.attached.attach import attach
    from penstock.attached.keeper import Keeper
    from penstock.attached.prometheus_query import PrometheusQuery
    from penstock.attached.spark_session import executor_settings
    from penstock.control.orders import (
        Freeze,
        Hold,
        Limit,
        Release,
        SetTd,
        Stop,
        Unfreeze,
        UseCanary,
        UseForecaster,
        UsePolicy,
        UseShadow,
    )
    from penstock.elastic import Elastic, ElasticWorkers
    from penstock.engine.options import RunOptions
    from penstock.engine.run import Run
    from penstock.engine.session import spark_settings
    from penstock.errors import EngineError, InputError, PenstockError, TopologyError
    from penstock.forecast.registry import make_forecaster
    from penstock.infra.executors import Executors
    from penstock.metrics.store import Store
    from penstock.operators import Distinct, RunningAverage
    from penstock.policy.base import Plan, Policy, Target
    from penstock.policy.guards import Canary, Shadow
    from penstock.policy.registry import make_policy
    from penstock.simulator import Scenario, Sweep, compare, simulate
    from penstock.sinks import CollectSink, DatabaseSink, KafkaSink, QueueSink, collected, published
    from penstock.sinks.base import Recovery
    from penstock.sources import (
        Avro,
        FileSource,
        KafkaRecord,
        KafkaSource,
        Polled,
        Protobuf,
        Reader,
        Slot,
        Source,
        TraceSource,
        Undecoded,
    )
    from penstock.topology import Context, To, Topology
    from penstock.ui.listen import Listen
    from penstock.workload import Trace, constant, load_trace, made_trace

_PLACES = {
    "attached.attach": ("attach",),
    "attached.keeper": ("Keeper",),
    "attached.prometheus_query": ("PrometheusQuery",),
    "attached.spark_session": ("executor_settings",),
    "control.orders": (
        "Freeze",
        "Hold",
        "Limit",
        "Release",
        "SetTd",
        "Stop",
        "Unfreeze",
        "UseCanary",
        "UseForecaster",
        "UsePolicy",
        "UseShadow",
    ),
    "elastic": ("Elastic", "ElasticWorkers"),
    "engine.options": ("RunOptions",),
    "engine.run": ("Run",),
    "engine.session": ("spark_settings",),
    "errors": ("EngineError", "InputError", "PenstockError", "TopologyError"),
    "forecast.registry": ("make_forecaster",),
    "infra.executors": ("Executors",),
    "metrics.store": ("Store",),
    "operators": ("Distinct", "RunningAverage"),
    "policy.base": ("Plan", "Policy", "Target"),
    "policy.guards": ("Canary", "Shadow"),
    "policy.registry": ("make_policy",),
    "simulator": ("Scenario", "Sweep", "compare", "simulate"),
    "sinks": ("CollectSink", "DatabaseSink", "KafkaSink", "QueueSink", "collected", "published"),
    "sinks.base": ("Recovery",),
    "sources": (
        "Avro",
        "FileSource",
        "KafkaRecord",
        "KafkaSource",
        "Polled",
        "Protobuf",
        "Reader",
        "Slot",
        "Source",
        "TraceSource",
        "Undecoded",
    ),
    "topology": ("Context", "To", "Topology"),
    "ui.listen": ("Listen",),
    "workload": ("Trace", "constant", "load_trace", "made_trace"),
}
_PLACE_OF = {name: f"penstock.{place}" for place, names in _PLACES.items() for name in names}

__all__ = [
    "Avro",
    "Canary",
    "CollectSink",
    "Context",
    "DatabaseSink",
    "Distinct",
    "Elastic",
    "ElasticWorkers",
    "EngineError",
    "Executors",
    "FileSource",
    "Freeze",
    "Hold",
    "InputError",
    "KafkaRecord",
    "KafkaSink",
    "KafkaSource",
    "Keeper",
    "Limit",
    "Listen",
    "PenstockError",
    "Plan",
    "Policy",
    "Polled",
    "PrometheusQuery",
    "Protobuf",
    "QueueSink",
    "Reader",
    "Recovery",
    "Release",
    "Run",
    "RunOptions",
    "RunningAverage",
    "Scenario",
    "SetTd",
    "Shadow",
    "Slot",
    "Source",
    "Stop",
    "Store",
    "Sweep",
    "Target",
    "To",
    "Topology",
    "TopologyError",
    "Trace",
    "TraceSource",
    "Undecoded",
    "Unfreeze",
    "UseCanary",
    "UseForecaster",
    "UsePolicy",
    "UseShadow",
    "attach",
    "collected",
    "compare",
    "constant",
    "executor_settings",
    "load_trace",
    "made_trace",
    "make_forecaster",
    "make_policy",
    "published",
    "simulate",
    "spark_settings",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACE_OF:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
