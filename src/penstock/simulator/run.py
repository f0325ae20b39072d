"""A whole simulation: the plant, the control loop around it, and what it came to."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from penstock.control.analyze import DAY_S, analyzer_for
from penstock.control.declare import declared
from penstock.control.loop import Loop, Parts, check_td
from penstock.control.managers.levels_view import LevelsView
from penstock.control.monitor import Monitor
from penstock.control.ports import Records
from penstock.control.step import Step
from penstock.errors import InputError
from penstock.metrics.interval import IntervalRules
from penstock.metrics.utilisation import Measure, booked
from penstock.policy.base import Policy, initial_replicas
from penstock.policy.workload import Workload
from penstock.simulator.arrivals import Arrivals
from penstock.simulator.cluster import Cluster
from penstock.simulator.history import History
from penstock.simulator.model import Model
from penstock.simulator.options import SimulationOptions
from penstock.simulator.plant import Plant
from penstock.simulator.result import SimulationResult, r_over_of, summarised, with_workers
from penstock.topology import Topology

PATIENCE = 20  # intervals, and restarts, without an event that leaves once the input has ended
Progress = Callable[[float, float], None]  # called with the time simulated so far and the time at which input ends


class StandingClock:
    """The plant's time; nobody sleeps on it, the simulation moves the plant itself."""

    def __init__(self, plant: Plant) -> None:
        self._plant = plant

    def now(self) -> float:
        """The time."""
        return self._plant.now_s

    def sleep_until(self, time_s: float) -> None:
        """Let the plant work until then."""
        self._plant.advance(time_s)


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What to simulate: a topology and its tables, its input, the policy, and what is known of the workload."""

    topology: Topology
    model: Model
    arrivals: Callable[[], Mapping[str, Arrivals]]  # made anew for every simulation
    workload: Workload
    options: SimulationOptions = field(default_factory=SimulationOptions)
    replicas: Mapping[str, int] = field(default_factory=dict)  # to begin with; the policy's own wish where not said
    day_s: float = DAY_S  # the length of a day in the input, for forecasters
    cluster: Cluster | None = None  # the workers underneath; without, there is room for every replica


def simulate(
    setup: Setup,
    policy: Policy,
    *,
    name: str = "",
    forecaster: str | None = None,
    recorder: Records | None = None,
    measure: Measure = booked,
    progress: Progress | None = None,
) -> SimulationResult:
    """Play the whole input through the topology under a policy, then let what is queued finish.

    A policy that restarts everything before anything can finish is given up after a while; `backlog` has what is left.
    """
    started = time.perf_counter()
    options = setup.options
    check_td(options.td_s)
    cluster = setup.cluster
    plant = Plant(setup.model, setup.arrivals(), options, regional=bool(cluster and cluster.delayed))
    policy = cluster.policy(policy, setup.workload) if cluster else policy
    _begin(plant, setup, policy)
    levels = cluster.around(policy, plant, list(setup.topology.sources)) if cluster else None
    rules = IntervalRules(options.td_s, declared(setup.topology))
    analyzer = analyzer_for(policy, forecaster, options.td_s, setup.day_s)
    control = levels.application if levels else policy
    infrastructure, view = (levels.step, LevelsView(levels)) if levels else (None, None)
    parts = Parts(Monitor(plant, rules), control, plant, analyzer, recorder, measure, infrastructure, view)
    loop = Loop(parts, StandingClock(plant))
    plant.advance(options.first_step_s)
    loop.step(plant.now_s)
    if cluster and levels:
        cluster.place(plant, levels)
    history = History(list(setup.model.operators), plant)
    left, moved_s = 0, plant.now_s  # source events gone, and since when no more
    patience_s = PATIENCE * options.td_s + PATIENCE * options.restart_s
    while plant.now_s < plant.end_s or (plant.backlog and plant.now_s - moved_s < patience_s):
        before = plant.active()
        plant.advance(plant.now_s + options.td_s)
        step = loop.step(plant.now_s)
        plant.settle_changes()
        if cluster and levels:
            cluster.place(plant, levels)
        history.add(plant, before, _changes(step), step.levels)
        if plant.now_s <= plant.end_s or plant.out + plant.failed > left:
            left, moved_s = plant.out + plant.failed, plant.now_s
        if progress is not None:
            progress(min(plant.now_s, plant.end_s), plant.end_s)
    r_over = r_over_of(setup.workload, cluster.deployed if cluster else {})
    result = summarised(name, plant, history, r_over, wall_s=time.perf_counter() - started)
    return with_workers(result, cluster.spent(levels), cluster.workers) if cluster and levels else result


def _begin(plant: Plant, setup: Setup, policy: Policy) -> None:
    """Start with the replicas that were asked for, or that the policy wants before it has seen anything."""
    pools = {name: operator.pool for name, operator in plant.operators.items()}
    wanted = dict(initial_replicas(policy, pools, setup.options.td_s)) | dict(setup.replicas)
    for name, count in wanted.items():
        if name not in pools:
            raise InputError(f"replicas: no operator {name!r}; known: {', '.join(pools)}")
        if not 1 <= count <= pools[name]:
            raise InputError(f"replicas of '{name}' must be from 1 to its pool of {pools[name]}; got {count}")
        plant.set_replicas(name, tuple(range(count)))
    plant.begin()


def _changes(step: Step) -> int:
    return sum(decision.changed and decision.operator not in step.not_executed for decision in step.decisions)
