"""Policies as curves: each at several headrooms, on several traces, with several seeds, beside a proven bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from penstock.common.checks import positive, whole
from penstock.control.analyze import analyzer_for, asks
from penstock.errors import InputError
from penstock.forecast.shared import SharedForecasts
from penstock.simulator.arena import policies_named
from penstock.simulator.curves import Point, SweepResult
from penstock.simulator.hindsight import hindsight
from penstock.simulator.parallel import done, made_once
from penstock.simulator.prepare import Prepared, prepare
from penstock.simulator.run import ORACLE, freed, made_policy, play
from penstock.simulator.scenario import Scenario
from penstock.simulator.sweep_file import SweepFile

FACTORS = (1.0, 1.15, 1.35, 1.7, 2.2)
Progress = Callable[[int, int], None]  # points that are there, and all
_SAID = ("topology", "trace", "before", "seed", "plant", "contest", "cluster")  # of a scenario, for themselves


@dataclass(frozen=True)
class Sweep:
    """What is swept: scenarios that differ in their trace and its arrivals, policies, headrooms and seeds.

    The promise, the share of events that may be late, is that of the scenarios. `seeds`: so many, from that of the
    scenario on. Everything is checked before anything runs. The oracle is beside all others, as it is.

    >>> from penstock.workload import constant
    >>> scenario = Scenario("dns", constant(100.0, duration_s=30.0)).changed(td_s=5.0)
    >>> result = Sweep([scenario], "static:2,psps", factors=(1.0, 2.0)).run()
    >>> [(one.policy, one.kept) for one in result.at_late()], len(result.points)
    ([('oracle', 1), ('static:2', 1), ('psps', 1)], 5)
    """

    scenarios: Sequence[Scenario]
    policies: str | Sequence[str] = "all"
    factors: Sequence[float] = FACTORS
    seeds: int = 1

    def __post_init__(self) -> None:
        names = [one.input.name for one in self.scenarios]
        if not names or len(set(names)) < len(names):
            raise InputError(f"sweep: traces must be at least one, each once; got {names}")
        if not self.factors:
            raise InputError("sweep: factors must be at least one; got none")
        for factor in self.factors:
            positive("sweep", "factors", factor)
        whole("sweep", "seeds", self.seeds)
        prepared = prepare(self.scenarios[0])
        for policy in self.named:
            made_policy(policy, prepared)

    @property
    def named(self) -> list[str]:
        """The policies by name, without the oracle."""
        named = policies_named(self.policies) if isinstance(self.policies, str) else list(self.policies)
        return [one for one in named if one != ORACLE]

    def settings(self) -> dict[str, Any]:
        """All that the points depend on, for those who read them, and to know a sweep again."""
        first = self.scenarios[0]
        described: dict[str, Any] = {
            "scenario": first,
            "plant": first.plant,
            "contest": first.contest,
            "cluster": first.cluster,
        }
        parts = {
            name: {one.name: repr(getattr(part, one.name)) for one in fields(part) if one.name not in _SAID}
            for name, part in described.items()
        }
        return {
            "app": first.name,
            "traces": {one.input.name: _described(one) for one in self.scenarios},
            "policies": self.named,
            "factors": list(self.factors),
            "seeds": [first.seed + number for number in range(self.seeds)],
            "late": first.contest.late,
            "arrivals": first.arrivals,
            **parts,
        }

    def run(self, *, jobs: int = 1, keep: Path | None = None, progress: Progress | None = None) -> SweepResult:
        """Play all of it, in so many processes; `keep` is a file from which a sweep that was stopped is resumed."""
        settings, report = self.settings(), progress or _unwatched
        kept = SweepFile(keep, settings)
        tasks = [one for one in self._tasks() if not kept.has(one.trace, one.seed, one.policy)]
        total = len(self.scenarios) * self.seeds * (len(self.named) * len(self.factors) + 1)
        with kept:
            report(len(kept.points), total)
            for task, (bound, found) in done(_played, tasks, jobs):
                kept.add(task.trace, task.seed, bound, found)
                report(len(kept.points), total)
        traces, seeds = list(settings["traces"]), settings["seeds"]
        places = {name: place for place, name in enumerate([*traces, *self.named, ORACLE])}
        ordered = sorted(kept.points, key=lambda one: (places[one.trace], one.seed, places[one.policy], one.factor))
        bounds = {(trace, seed): kept.bounds[trace, seed] for trace in traces for seed in seeds}
        means = {trace: sum(bounds[trace, seed] for seed in seeds) / len(seeds) for trace in traces}
        return SweepResult(settings, settings["late"], means, tuple(ordered), bounds)

    def _tasks(self) -> Iterator[_Task]:
        """One for each trace, seed and policy; those that wait for forecasts first, as they take longest."""
        prepared, sweep = prepare(self.scenarios[0]), uuid4().hex
        slow_first = sorted(self.named, key=lambda one: not _foresees(one, prepared))
        for scenario in self.scenarios:
            for seed in range(scenario.seed, scenario.seed + self.seeds):
                for policy in (*slow_first, ORACLE):
                    factors = (1.0,) if policy == ORACLE else tuple(self.factors)
                    yield _Task(sweep, scenario.changed(seed=seed), policy, factors, tuple(self.named))


@dataclass(frozen=True)
class _Task:
    """One policy on one trace with one seed, at all headrooms."""

    sweep: str  # which of this process
    scenario: Scenario
    policy: str
    factors: tuple[float, ...]
    policies: tuple[str, ...]  # all of the sweep: what they may ask a forecaster is asked in time

    @property
    def trace(self) -> str:
        return self.scenario.input.name

    @property
    def seed(self) -> int:
        return self.scenario.seed


def _foresees(policy: str, prepared: Prepared) -> bool:
    contest = prepared.scenario.contest
    return analyzer_for(made_policy(policy, prepared), contest.forecaster, contest.td_s) is not None


def _played(task: _Task) -> tuple[float | None, list[Point]]:
    """The bound, where the task is the oracle's, and the points."""
    prepared, shared = made_once((task.sweep, task.trace, task.seed), lambda: _made(task))
    if task.policy == ORACLE:
        result = play(freed(prepared), made_policy(ORACLE, prepared), ORACLE)
        point = Point(task.trace, task.seed, ORACLE, 1.0, result.late_ratio, result.replica_seconds)
        return hindsight(prepared, late=prepared.scenario.contest.late), [point]
    points = []
    for factor in task.factors:
        result = play(prepared, made_policy(task.policy, prepared, factor), task.policy, shared=shared)
        cost = result.replica_seconds, result.worker_seconds
        points.append(Point(task.trace, task.seed, task.policy, factor, result.late_ratio, *cost))
    return None, points


def _made(task: _Task) -> tuple[Prepared, SharedForecasts]:
    """What all tasks of a trace and a seed need, in a process: the scenario, prepared, and forecasts made once."""
    prepared = prepare(task.scenario)
    asked = {asks(made_policy(one, prepared)) for one in task.policies if _foresees(one, prepared)}
    return prepared, SharedForecasts(asked)


def _described(scenario: Scenario) -> dict[str, Any]:
    trace = scenario.input
    digest = sha256(trace.rates.tobytes()).hexdigest()[:16]
    before = {} if scenario.before is None else {"before_s": scenario.before.duration_s}
    numbers = {"duration_s": trace.duration_s, "step_s": trace.step_s, "mean": trace.mean, "peak": trace.peak}
    return numbers | before | {"digest": digest, "arrivals": scenario.arrivals}


def _unwatched(there: int, total: int) -> None:
    """Nobody wants to know."""
