"""A whole simulation: the plant, the control loop around it, and what it came to."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from penstock.control.analyze import Analyzer, analyzer_for
from penstock.control.declare import declared
from penstock.control.loop import SHORTEST_TD_S, Loop, Parts
from penstock.control.managers.levels_view import LevelsView
from penstock.control.monitor import Monitor
from penstock.control.ports import Records
from penstock.control.step import Step
from penstock.forecast.shared import SharedForecasts
from penstock.metrics.interval import IntervalRules
from penstock.metrics.jump import Jumps
from penstock.metrics.utilisation import MEASURES
from penstock.policy.base import Policy, initial_replicas, name_of, recall
from penstock.policy.guards import Bounded, Headroom, guarded
from penstock.policy.guards.calendar import parse_calendar
from penstock.policy.registry import beside, policy_for
from penstock.simulator.history import History
from penstock.simulator.plant.cluster import SimulatedCluster, deployed_policy
from penstock.simulator.plant.plant import SimulatedPlant
from penstock.simulator.prepare import Prepared, prepare
from penstock.simulator.result import SimulationResult, summarised, with_workers
from penstock.simulator.scenario import Cluster, Scenario
from penstock.simulator.store import kept_in
from penstock.workload import Trace

ORACLE = "oracle"
LOOK_S = 0.1  # how often it is looked for jumps
PATIENCE = 20  # intervals, and restarts, without an event that leaves once the input has ended
Progress = Callable[[float, float], None]  # called with the time simulated so far and the time at which input ends


def simulate(
    scenario: Scenario,
    policy: str | Policy,
    *,
    store: str | None = None,
    recorder: Records | None = None,
    progress: Progress | None = None,
) -> SimulationResult:
    """Play the whole input through the topology under a policy, then let what is queued finish.

    The policy is a name with its options, or an object of your own with a `plan` method; either is put into the usual
    guards. Only `oracle` has none, and none of the limits that others have. With a `store`, a file or a database URL,
    every interval is kept there as a run on Spark would do it. One that restarts everything before anything can finish
    is given up after a while; `backlog` has what is left.

    >>> from penstock.workload import constant
    >>> result = simulate(Scenario("dns", constant(20.0, duration_s=60.0)), "static:2")
    >>> result.events, result.processed_ratio, result.meets_target
    (1200, 1.0, True)
    """
    prepared = prepare(scenario)
    if policy == ORACLE:
        prepared = freed(prepared)
    made = made_policy(policy, prepared)  # a mistake shows before anything is written
    with kept_in(store, scenario) as keep:
        name = name_of(policy)
        return play(prepared, made, name, recorder=keep(name) or recorder, progress=progress)


def made_policy(policy: str | Policy, prepared: Prepared, headroom: float = 1.0) -> Policy:
    """The policy, made by its name or as it is, within the guards of the contest; the oracle only within the pools."""
    contest, oracle = prepared.scenario.contest, policy == ORACLE
    promise = {"late": contest.late, "target_ms": contest.target_ms}

    def make(one: str | Policy) -> Policy:
        if not isinstance(one, str):
            return one
        return policy_for(one, workload=prepared.workload, forecaster=contest.forecaster, promise=promise)

    if oracle:
        return Bounded(make(policy))
    policy = beside(policy, make, promise, shadow=contest.shadow, canary=contest.canary)
    pools = {name: one.operator.pool for name, one in prepared.model.operators.items()}
    return guarded(
        policy if headroom == 1.0 else Headroom(policy, headroom),
        slots=contest.slots,
        scale_in_s=contest.cooldown_s,
        calendar=parse_calendar(contest.calendar, pools),
        offset_s=contest.offset_s,
    )


def freed(prepared: Prepared) -> Prepared:
    """The same without the limits of the contest: what the oracle is played in.

    Nothing is dropped, there is room for every replica, replicas and state change at once and at no cost, and as often
    as is wished.
    """
    free = prepared.scenario.changed(
        cluster=Cluster(),
        actuation="pool",
        activation_delay_s=0.0,
        t_out_s=None,
        q_size=None,
        slots=None,
        cooldown_s=0.0,
    )
    if prepared.model.stateful:
        free = free.changed(move_bandwidth=math.inf, move_latency_s=0.0)
    return replace(prepared, scenario=free)


def play(
    prepared: Prepared,
    policy: Policy,
    name: str = "",
    *,
    recorder: Records | None = None,
    progress: Progress | None = None,
    shared: SharedForecasts | None = None,
) -> SimulationResult:
    """One simulation; `shared` has the forecasts of others."""
    started = time.perf_counter()
    run = _Run(prepared, policy, recorder, shared)
    while run.goes_on:
        run.step()
        if progress is not None:
            progress(min(run.plant.now_s, run.plant.end_s), run.plant.end_s)
    result = summarised(name, run.plant, run.history, prepared.r_over, wall_s=time.perf_counter() - started)
    late, deciders = prepared.scenario.contest.late, tuple(run.deciders)
    result = replace(result, forecaster=run.forecaster, late=late, deciders=deciders)
    return with_workers(result, run.cluster.spent(), run.cluster.most) if run.cluster else result


class _Clock:
    """The plant's time; nobody sleeps on it, the simulation moves the plant itself."""

    def __init__(self, plant: SimulatedPlant) -> None:
        self._plant = plant

    def now(self) -> float:
        """The time."""
        return self._plant.now_s

    def sleep_until(self, time_s: float) -> None:
        """Let the plant work until then."""
        self._plant.advance(time_s)


class _Run:
    """A plant with its control loop, moved on interval by interval."""

    def __init__(
        self, prepared: Prepared, policy: Policy, recorder: Records | None, shared: SharedForecasts | None
    ) -> None:
        scenario = prepared.scenario
        contest, cluster = scenario.contest, scenario.cluster
        hosted = cluster.levels is not None
        self.plant = SimulatedPlant(
            prepared.model,
            prepared.arrivals(),
            scenario.plant,
            target_s=contest.target_s,
            regional=hosted and cluster.delayed,
        )
        if cluster.levels == "static":
            policy = deployed_policy(cluster, prepared.workload)
        self._begin(prepared, policy)
        sources = list(prepared.topology.sources)
        self.cluster = SimulatedCluster(cluster, policy, self.plant, sources) if hosted else None
        self._td_s = contest.td_s
        self._jumps = Jumps(recent_s=LOOK_S) if contest.wake else None
        patience_s = PATIENCE * (contest.td_s + scenario.plant.restart_s)
        self._patience_s = max(patience_s, contest.target_s + contest.td_s)  # what is given up is late by then
        analyzer = analyzer_for(policy, contest.forecaster, contest.td_s, contest.day_s, shared=shared)
        self.forecaster = analyzer.name if analyzer else None
        if scenario.before is not None:
            _recall(_drawn(scenario.before, scenario), policy, analyzer, sources)
        self._loop = Loop(self._parts(prepared, policy, analyzer, recorder), _Clock(self.plant))
        self.plant.advance(contest.first_step_s)
        self._loop.step(self.plant.now_s)
        self._due_s = self.plant.now_s
        self._place()
        self.history = History(list(prepared.model.operators), self.plant)
        self.deciders: list[str] = []
        self._left, self._moved_s = 0, self.plant.now_s  # source events gone, and since when no more

    def _begin(self, prepared: Prepared, policy: Policy) -> None:
        """Start with the replicas that were asked for, or that the policy wants before it has seen anything."""
        pools = {name: operator.pool for name, operator in self.plant.operators.items()}
        slots = prepared.first_slots
        wanted = dict(initial_replicas(policy, pools, prepared.scenario.contest.td_s, slots))
        for name, count in {**wanted, **prepared.scenario.replicas}.items():
            self.plant.set_replicas(name, tuple(range(count)))
        self.plant.begin()

    def _parts(self, prepared: Prepared, policy: Policy, analyzer: Analyzer | None, recorder: Records | None) -> Parts:
        contest, levels = prepared.scenario.contest, self.cluster.levels if self.cluster else None
        return Parts(
            Monitor(self.plant, _rules(prepared)),
            levels.application if levels else policy,
            self.plant,
            analyzer,
            recorder,
            MEASURES[contest.balance_by],
            levels.step if levels else None,
            LevelsView(levels) if levels else None,
        )

    @property
    def goes_on(self) -> bool:
        """Whether there is input, or something queued that still moves."""
        plant = self.plant
        return plant.now_s < plant.end_s or bool(plant.backlog and plant.now_s - self._moved_s < self._patience_s)

    def step(self) -> None:
        """One interval."""
        plant = self.plant
        before = plant.active()
        woken = self._advance()
        jump = self._jumps.last if woken and self._jumps else None
        step = self._loop.step(plant.now_s, woken=woken, jump=jump)
        plant.settle_changes()
        self._place()
        self.history.add(plant, before, _changed(step), step.levels)
        self.deciders += _decider(step)
        if plant.now_s <= plant.end_s or plant.out + plant.failed > self._left:
            self._left, self._moved_s = plant.out + plant.failed, plant.now_s

    def _advance(self) -> bool:
        """Let the plant work until a step is due, or a jump wakes the loop; says whether one did."""
        plant, soonest_s, jumped = self.plant, self.plant.now_s + SHORTEST_TD_S, False
        if self._due_s - plant.now_s < SHORTEST_TD_S:
            self._due_s += self._td_s
        while self._jumps is not None and plant.now_s + LOOK_S < self._due_s:
            plant.advance(plant.now_s + LOOK_S)
            jumped |= self._jumps.look(plant.now_s, plant.entered)
            if jumped and plant.now_s >= soonest_s:
                return True
        plant.advance(self._due_s)
        return False

    def _place(self) -> None:
        if self.cluster:
            self.cluster.place()


def _drawn(before: Trace, scenario: Scenario) -> Trace:
    """What came before as it came: by chance, where events come by chance."""
    if scenario.arrivals != "poisson":
        return before
    seconds = before if before.step_s <= 1.0 else before.resampled(1.0)
    events = np.random.default_rng(scenario.seed).poisson(seconds.rates * seconds.step_s)
    return replace(seconds, rates=events / seconds.step_s)


def _recall(before: Trace, policy: Policy, analyzer: Analyzer | None, sources: Sequence[str]) -> None:
    """Tell those who learn from what comes what came before; every source has its part of it."""
    recall(policy, before.rates.tolist(), before.step_s)
    if analyzer is not None:
        part = before.resampled(analyzer.step_s).rates / len(sources)
        analyzer.recall({source: part.tolist() for source in sources})


def _rules(prepared: Prepared) -> IntervalRules:
    contest = prepared.scenario.contest
    return IntervalRules(contest.td_s, declared(prepared.topology), target_ms=contest.target_ms)


def _changed(step: Step) -> list[str]:
    return [one.operator for one in step.changes if one.operator not in step.not_executed]


def _decider(step: Step) -> list[str]:
    """Who decides from now on, if that is to be known."""
    beside = step.plan.beside if step.plan else None
    return [f"{step.time_s:g} s: {beside.policy} {beside.why}"] if beside and beside.why else []
