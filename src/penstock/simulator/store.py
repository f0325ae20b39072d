"""Simulated runs in the store: the same rows as a run on Spark leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime

from penstock.control.ports import Records
from penstock.metrics.rows import IntervalRecord, PromiseRow, RunRow
from penstock.metrics.scores import Scored
from penstock.metrics.store import Store
from penstock.simulator.scenario import Scenario
from penstock.workload import DAY_S

Keep = Callable[[str], Records | None]  # where the intervals of a policy go, by its name


@contextmanager
def kept_in(place: str | None, scenario: Scenario) -> Iterator[Keep]:
    """Somewhere to keep intervals, a run for each policy; nowhere without a place."""
    if place is None:
        yield lambda _: None
        return
    with closing(_Runs(place, scenario)) as runs:
        yield runs.keep


class _Runs:
    """Enters one run for each policy, under the application's and the policy's names and the time."""

    def __init__(self, place: str, scenario: Scenario) -> None:
        self._store = Store(place)
        self._scenario = scenario
        self._kept: list[_Kept] = []

    def keep(self, policy: str) -> Records:
        """Where the intervals of this policy go."""
        now, scenario = datetime.now(UTC), self._scenario
        promise = PromiseRow(late=scenario.contest.late, target_ms=scenario.contest.target_ms)
        run = f"{scenario.name}-{policy}-{now:%Y%m%d-%H%M%S.%f}"
        self._store.start_run(
            RunRow(
                run=run,
                topology=scenario.name,
                policy=policy,
                td_s=scenario.contest.td_s,
                started_at=now.isoformat(),
                settings=_settings(scenario),
            ),
            promise,
        )
        self._kept.append(_Kept(self._store, run, Scored(policy, promise)))
        return self._kept[-1]

    def close(self) -> None:
        """Say of all that they have ended."""
        with closing(self._store):
            for one in self._kept:
                self._store.finish_run(one.run, datetime.now(UTC).isoformat())


def _settings(scenario: Scenario) -> dict[str, object]:
    cluster = scenario.cluster
    chosen = {"grouping": scenario.grouping, "levels": cluster.levels, "workers": cluster.workers}
    return {
        "simulated": True,
        "trace": scenario.input.name,
        "speedup": DAY_S / scenario.contest.day_s,
        **{name: value for name, value in chosen.items() if value is not None},
        "seed": scenario.seed,
    }


class _Kept:
    """Writes each interval at once: a simulation waits for nothing else."""

    def __init__(self, store: Store, run: str, scored: Scored) -> None:
        self.run = run
        self._store = store
        self._scored = scored

    def record(self, record: IntervalRecord) -> None:
        """Keep one interval."""
        self._store.write(self.run, self._scored.after(record))
