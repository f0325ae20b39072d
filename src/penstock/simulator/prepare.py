"""What is made of a scenario before it is played: topology, tables, workload and workers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.apps import AppOptions, PayloadOptions, load_topology
from penstock.apps.waiting import Waiting
from penstock.control.declare import workload_of
from penstock.control.loop import check_td
from penstock.control.managers.application_manager import ApplicationRules
from penstock.errors import InputError
from penstock.forecast.registry import check_for_loop
from penstock.metrics.paper import overestimated_replicas
from penstock.policy.workload import Workload
from penstock.simulator.plant.arrivals import Arrivals, Even, Poisson
from penstock.simulator.plant.model import Facts, Model, OperatorModel, build_model
from penstock.simulator.scenario import Cluster, Scenario
from penstock.sources import FileSource
from penstock.topology import Topology
from penstock.workload import Trace


@dataclass(frozen=True)
class Prepared:
    """A scenario with all that policies share; the scenario has what was measured, and how many workers there are."""

    scenario: Scenario
    topology: Topology
    trace: Trace
    model: Model
    workload: Workload

    @property
    def first_slots(self) -> int | None:
        """Where there are workers: what those that a run begins with have for replicas."""
        cluster = self.scenario.cluster
        if cluster.levels is None:
            return None
        assert cluster.workers is not None  # `prepare` says how many
        assert cluster.application is not None
        first = cluster.application.first_workers if cluster.levels == "both" else cluster.workers
        capacity = min(one.capacity for one in cluster.regions[0].sizes)
        return min(first, cluster.workers) * capacity - len(self.topology.sources)

    @property
    def r_over(self) -> int:
        """What is saved is compared with: the static deployment, or where there is none what the peak needs."""
        cluster = self.scenario.cluster
        return _r_over(self.workload, (cluster.deployed if cluster.levels else None) or {})

    def arrivals(self) -> dict[str, Arrivals]:
        """When events come, for one simulation; each of several sources gets its part of the trace."""
        sources, trace, seed = self.topology.sources, self.trace, self.scenario.seed
        part = replace(trace, rates=trace.rates / len(sources)) if len(sources) > 1 else trace
        if self.scenario.arrivals == "poisson":
            return {name: Poisson(part, seed + place) for place, name in enumerate(sources)}
        return {name: Even(part) for name in sources}


def prepare(scenario: Scenario) -> Prepared:
    """Check everything, and build the tables."""
    _check(scenario)
    if scenario.calibration is not None:
        scenario = replace(scenario, plant=scenario.calibration.applied(scenario.plant))
    plant, topology, trace, events = scenario.plant, topology_of(scenario), scenario.input, _events(scenario)
    facts = Facts(
        payloads=dict.fromkeys(topology.sources, events) if events else {},
        times_s=plant.times_s,
        overhead_s=plant.overhead_s,
        run_functions=scenario.app is not None,
        exponential=plant.exponential,
        seed=scenario.seed,
    )
    model = build_model(topology, facts)
    _check_operators(scenario, model)
    times_s = {name: _usual_time_s(one) for name, one in model.operators.items()}
    restart_s = 0.0 if plant.actuation == "pool" else plant.restart_s
    workload = replace(workload_of(topology, trace, times_s), entering=Entering(trace), restart_s=restart_s)
    cluster = _cluster(scenario, workload, len(topology.sources))
    return Prepared(replace(scenario, cluster=cluster), topology, trace, model, workload)


def _check(scenario: Scenario) -> None:
    check_td(scenario.contest.td_s)
    if scenario.contest.forecaster is not None:
        check_for_loop(scenario.contest.forecaster)


def _check_operators(scenario: Scenario, model: Model) -> None:
    scenario.plant.check_state(model.stateful)
    slots, operators = scenario.contest.slots, len(model.operators)
    if slots is not None and slots < operators:
        raise InputError(f"slots must be at least 1 for each of {operators} operators; got {slots}")
    for name, count in scenario.replicas.items():
        if name not in model.operators:
            raise InputError(f"replicas: no operator {name!r}; known: {', '.join(model.operators)}")
        pool = model.operators[name].operator.pool
        if not 1 <= count <= pool:
            raise InputError(f"replicas of '{name}' must be from 1 to its pool of {pool}; got {count}")


def topology_of(scenario: Scenario) -> Topology:
    """The topology with the scenario's pools, times and grouping; sinks store nothing, your own stays as it is."""
    pool, service_ms, grouping = scenario.pool, scenario.service_ms, scenario.grouping
    if scenario.app is not None:
        names = scenario.app.build(AppOptions(sink=no_sink)).operators
        tuning = AppOptions(
            sink=no_sink,
            service_ms=_by_operator(service_ms, names),
            pools=_by_operator(pool, names),
            grouping=grouping,
            seed=scenario.seed,
        )
        return scenario.app.build(tuning)
    topology = load_topology(scenario.topology) if isinstance(scenario.topology, str) else scenario.topology
    names = topology.operators
    return topology.tuned(grouping=grouping, pools=_by_operator(pool, names), times_ms=_by_operator(service_ms, names))


def _by_operator(value: Any, names: Mapping[str, object]) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else dict.fromkeys(names, value)


def _events(scenario: Scenario) -> Sequence[Any]:
    """The events that are known: those given, or the application's, real ones where there is a folder of them."""
    events = scenario.events
    if events is not None and not isinstance(events, Path):
        return events
    if events is not None and events.is_file():
        file = FileSource(events)
        return list(file.read(range(file.total or 0)))
    if events is not None and not events.is_dir():
        raise InputError(f"events: no file or folder {str(events)!r}")
    if scenario.app is None:
        return ()
    return scenario.app.payloads(PayloadOptions(events, scenario.seed, scenario.skew))


def _usual_time_s(one: OperatorModel) -> float:
    """The declared time, as a run on Spark takes it for its static sizes; else what is simulated."""
    declared_ms = one.operator.execution_time_ms
    return one.mean_s if declared_ms is None else declared_ms / 1000


def _cluster(scenario: Scenario, workload: Workload, sources: int) -> Cluster:
    """By default workers for what is deployed, every source, and one more, that host a replica each, as in E2DF."""
    cluster = scenario.cluster
    if cluster.levels is None:
        return cluster
    needed = _r_over(workload, scenario.deployed) + sources
    most = math.ceil(needed / min(one.sizes[0].capacity for one in cluster.regions)) + 1
    several = len(cluster.regions) > 1  # the cheapest region gets what comes
    usual = ApplicationRules(first_workers=1) if several else ApplicationRules()
    return replace(
        cluster,
        workers=cluster.workers or most,
        deployed=scenario.deployed,
        application=cluster.application or usual,
    )


def _r_over(workload: Workload, deployed: Mapping[str, int]) -> int:
    needed = overestimated_replicas(workload.peak_rate, workload.shares, workload.execution_times_s)
    return sum(deployed.values()) or needed


def no_sink(name: str, service_ms: float) -> Waiting:  # noqa: ARG001 - all sinks are alike
    """A sink that stores nothing: what a simulated application ends in."""
    return Waiting(_nothing, service_ms)


def _nothing(event: Any) -> None:  # noqa: ARG001
    return None


class Entering:
    """How many events a trace brings between two times."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __call__(self, start_s: float, end_s: float) -> float:
        """Events from `start_s` to `end_s`."""
        before, after = self._trace.cumulated([start_s, end_s])
        return float(after - before)
