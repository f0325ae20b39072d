"""What a simulation came to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.infra.simulated import Spent
from penstock.metrics.paper import processed_ratio, saved_resources, throughput_degradation
from penstock.simulator.history import History
from penstock.simulator.plant.operator import SimulatedOperator
from penstock.simulator.plant.plant import SimulatedPlant

_ROUNDING = 1e-9
PERCENTILES = {"p50": 0.5, "p99": 0.99}


@dataclass(frozen=True, kw_only=True)
class SimulationResult:
    """The papers' four metrics and what else compares policies; all of them count source events.

    `late_ratio` has the events over the target, those that failed, and those that were over it when the simulation
    ended. `dropped` counts events at operators, by cause. `replica_seconds` are the times in which each replica was
    active or had events queued, from the beginning until the last event has left.
    """

    policy: str
    saved_resources: float
    throughput_degradation: float
    processed_ratio: float
    latency_ms: dict[str, float]
    late_ratio: float
    replica_seconds: float
    oracle_ratio: float
    hindsight_ratio: float = math.nan  # its replica-seconds over those that no run on time can do without
    reconfigurations: int
    max_backlog: int
    dropped: dict[str, int]
    events: int
    wall_s: float
    r_over: int
    backlog: int  # events that had not finished at the end
    target_ms: float
    late: float = 0.01  # the promise: the share of events that may be over the target
    forecaster: str | None = None  # whose forecasts the policy was given
    deciders: tuple[str, ...] = ()  # where there is a shadow: who decided from when on, and why
    worker_seconds: float | None = None  # where workers are modelled
    workers_saved: float | None = None  # of what a fixed number of them would be
    regions: dict[str, dict[str, float]] | None = None  # worker_seconds and price of each
    state: dict[str, dict[str, Any]] | None = None  # by operator that keeps some: how much, what moved and waited
    changes_per_minute: dict[str, float] = field(default_factory=dict)  # of the replicas of each operator
    history: History = field(repr=False, compare=False)

    @property
    def is_known(self) -> bool:
        """Whether it can be ranked: without events nothing is late, and nothing on time."""
        return math.isfinite(self.late_ratio) and math.isfinite(self.replica_seconds)

    @property
    def meets_target(self) -> bool:
        """Whether no more events were late than the promise lets be."""
        return self.late_ratio <= self.late

    def as_json(self) -> dict[str, Any]:
        """For programs: what is no number is null."""
        shown = {name: value for name, value in vars(self).items() if name != "history"}
        return {name: _plain(value) for name, value in shown.items()} | {"meets_target": self.meets_target}


def summarised(name: str, plant: SimulatedPlant, history: History, r_over: int, *, wall_s: float) -> SimulationResult:
    """The result of a simulation that has ended."""
    replicas = history.total_replicas
    played = _played(history, plant.end_s)
    latency = plant.latency()
    state = {name: _state(plant.operators[name]) for name in plant.stateful}
    late = plant.late + plant.failed + plant.unfinished_late()
    return SimulationResult(
        policy=name,
        saved_resources=saved_resources([float(replicas[row]) for row, _ in played], r_over),
        throughput_degradation=throughput_degradation(
            [count for _, count in played], [history.left[row] for row, _ in played]
        ),
        processed_ratio=processed_ratio(plant.out, plant.events),
        latency_ms={"mean": latency.mean_ms} | {key: latency.percentile_ms(q) for key, q in PERCENTILES.items()},
        late_ratio=late / plant.events if plant.events else math.nan,
        replica_seconds=plant.replica_seconds,
        oracle_ratio=math.nan,
        reconfigurations=history.changes,
        changes_per_minute=history.changes_per_minute(),
        max_backlog=max(history.backlog, default=0),
        dropped=_dropped(plant),
        events=plant.events,
        wall_s=round(wall_s, 3),
        r_over=r_over,
        backlog=plant.backlog,
        target_ms=1000 * plant.target_s,
        state=state or None,
        history=history,
    )


def _dropped(plant: SimulatedPlant) -> dict[str, int]:
    """Events dropped by all operators, by cause."""
    dropped: Counter[str] = Counter()
    for operator in plant.operators.values():
        dropped.update(operator.counters().total.dropped)
    return dict(dropped)


def _state(operator: SimulatedOperator) -> dict[str, Any]:
    """What an operator keeps in the end, and how long the groups that moved waited for it."""
    total = operator.counters().total
    waits = total.moving
    wait_ms = {"mean": waits.mean_ms, "max": waits.max_ms if waits.count else math.nan}
    return {
        "state_bytes": total.state_bytes,
        "state_keys": total.state_keys,
        "groups_moved": total.groups_moved,
        "wait_ms": wait_ms | {key: waits.percentile_ms(q) for key, q in PERCENTILES.items()},
    }


def with_workers(result: SimulationResult, spent: Mapping[str, Spent], fixed: int) -> SimulationResult:
    """The result with what the workers of each region came to, beside a fixed number of them."""
    lasted_s = sum(result.history.lengths_s)
    seconds = sum(one.worker_seconds for one in spent.values())
    saved = 1 - seconds / (fixed * lasted_s) if lasted_s else 0.0
    regions = {name: one._asdict() for name, one in spent.items()}
    return replace(result, worker_seconds=seconds, workers_saved=saved, regions=regions)


def _played(history: History, end_s: float) -> list[tuple[int, int]]:
    """The intervals with input, and what entered in each; one that the end of the input cuts does not count.

    Otherwise what leaves in it, over the few events that enter, would outweigh all others.
    """
    entered = [(row, count) for row, count in enumerate(history.entered) if count]
    whole = [(row, count) for row, count in entered if history.times_s[row] <= end_s * (1 + _ROUNDING)]
    return whole or entered


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value
