"""What is known of a run before it starts: what `static` and `oracle` are sized for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Workload:
    """What is known of a run beforehand: a trace's rates per second, and each operator's share and execution time.

    `entering` has the events that enter the topology between two times, in seconds on the run's clock. `restart_s` is
    how long everything stands still for a change of replicas: 0 where there are pools.
    """

    peak_rate: float
    mean_rate: float
    shares: Mapping[str, float]
    execution_times_s: Mapping[str, float]
    entering: Callable[[float, float], float] | None = None
    restart_s: float = 0.0
