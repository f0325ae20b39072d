"""Plays the cases of experiments, each simulation once, in as many processes as there are cores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path

from experiments.experiment import Case, Experiment
from experiments.figures import Measured, figures_of, measured
from experiments.inputs import trace_for
from experiments.settled import Settled
from experiments.trained import driven
from penstock.errors import PenstockError
from penstock.policy.base import Policy
from penstock.policy.guards import guarded
from penstock.policy.learning import Learning
from penstock.policy.registry import policy_for
from penstock.simulator import Scenario, run
from penstock.simulator.prepare import prepare

LESSONS = 2  # times that `learning` sees the stream before it is measured on it


@dataclass(frozen=True)
class Job:
    """One simulation."""

    case: Case
    seed: int


@dataclass(frozen=True)
class Played:
    """What became of a job: its figures, or why there are none."""

    job: Job
    figures: dict[str, float] = field(default_factory=dict)
    failure: str | None = None


@dataclass(frozen=True)
class Outcome:
    """A case with its figures over all seeds; without any where something is missing or has failed."""

    case: Case
    figures: dict[str, Measured] = field(default_factory=dict)
    missing: str | None = None


def play(job: Job, data: Path | None) -> Played:
    """Run one simulation."""
    try:
        with driven(job.case, scenario_of(job, data), job.seed, data) as scenario:
            return Played(job, _figures(job.case, scenario))
    except PenstockError as error:
        return Played(job, failure=str(error))


def _figures(case: Case, scenario: Scenario) -> dict[str, float]:
    """What it comes to; `learning` is trained on the same stream beforehand, as in the DABS paper."""
    prepared = prepare(scenario)
    policy = policy_for(case.policy, workload=prepared.workload, forecaster=scenario.contest.forecaster)
    if isinstance(policy, Learning):
        for _ in range(LESSONS):
            run.play(prepared, _guarded(policy, case))
        policy.train = False
    result = run.play(prepared, _guarded(policy, case))
    return figures_of(result, prepared.trace.duration_s, case.r_over)


def scenario_of(job: Job, data: Path | None) -> Scenario:
    """The case's scenario with its trace and events; `data` is the folder with real ones."""
    events = data / "events" if data is not None and (data / "events").is_dir() else None
    trace = trace_for(job.case.input, job.seed, data)
    return replace(job.case.scenario, trace=trace, events=events, seed=job.seed)


def _guarded(policy: Policy, case: Case) -> Policy:
    return guarded(Settled(policy, case.settle_s) if case.settle_s else policy)


def jobs_of(experiments: Iterable[Experiment], seeds: int | None) -> list[Job]:
    """All simulations that the experiments need, each once; without `seeds` as many as each experiment asks for."""
    found: dict[Job, None] = {}
    for experiment in experiments:
        for case in experiment.cases:
            if case.missing is None:
                found |= dict.fromkeys(_jobs(case, seeds or experiment.seeds))
    return list(found)


def _jobs(case: Case, seeds: int) -> list[Job]:
    return [Job(case, seed) for seed in range(seeds)]


def run_all(
    jobs: Sequence[Job], data: Path | None, *, workers: int, done: Callable[[Job], None] = lambda _: None
) -> dict[Job, Played]:
    """Play all jobs; `done` is called after each of them."""
    played = {}
    for one in _each(jobs, data, workers):
        played[one.job] = one
        done(one.job)
    return played


def _each(jobs: Sequence[Job], data: Path | None, workers: int) -> Iterator[Played]:
    if workers == 1:
        yield from (play(job, data) for job in jobs)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(play, job, data) for job in jobs]):
            yield future.result()


def outcomes_of(experiment: Experiment, played: Mapping[Job, Played], seeds: int | None) -> list[Outcome]:
    """The experiment's cases with what was played for them."""
    return [_outcome(case, played, seeds or experiment.seeds) for case in experiment.cases]


def _outcome(case: Case, played: Mapping[Job, Played], seeds: int) -> Outcome:
    if case.missing is not None:
        return Outcome(case, missing=case.missing)
    runs = [played[job] for job in _jobs(case, seeds)]
    failures = [run.failure for run in runs if run.failure is not None]
    if failures:
        return Outcome(case, missing=f"failed: {failures[0]}")
    return Outcome(case, measured([run.figures for run in runs]))
