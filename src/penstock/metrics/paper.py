"""The four metrics of the PSPS papers, and the replicas of a static run that they compare with.

Wladdimiro et al., SBAC-PAD 2022, §V-A; all four count source events.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.metrics.snapshot import Snapshot

# A product of rates and times carries rounding errors: 100 · 0.07 is 7.000000000000001, and that is 7 replicas.
_ROUNDING = 1e-9


def replicas_for(load: float) -> int:
    """The least number of replicas for a load in replicas' time, and at least one: max(1, ⌈load⌉).

    >>> replicas_for(2.26), replicas_for(100 * 0.07), replicas_for(0)
    (3, 7, 1)
    """
    return max(1, math.ceil(load - _ROUNDING * max(1.0, load)))


def static_replicas(rate: float, shares: Mapping[str, float], execution_times_s: Mapping[str, float]) -> dict[str, int]:
    """What each operator needs at a constant rate per second: ⌈rate · θ_i · et_i⌉.

    >>> static_replicas(400, {"clean": 1.0, "store": 0.5}, {"clean": 0.01, "store": 0.016})
    {'clean': 4, 'store': 4}
    """
    return {name: replicas_for(rate * share * execution_times_s[name]) for name, share in shares.items()}


def overestimated_replicas(
    peak_rate: float, shares: Mapping[str, float], execution_times_s: Mapping[str, float]
) -> int:
    """r_over: the replicas that the highest input rate needs, over all operators.

    >>> overestimated_replicas(400, {"clean": 1.0, "store": 1.0}, {"clean": 0.01, "store": 0.02})
    12
    """
    return sum(static_replicas(peak_rate, shares, execution_times_s).values())


def saved_resources(replicas: Sequence[float], r_over: float, lengths_s: Sequence[float] | None = None) -> float:
    """1 − r / r_over, the mean over intervals; negative where more ran than the peak needs; NaN with none.

    Where intervals are not equal, as when a jump ends one early, each counts by its length.

    >>> saved_resources([4, 4, 4], 32), saved_resources([32, 40], 32)
    (0.875, -0.125)
    >>> saved_resources([4, 8], 16, [3.0, 1.0])
    0.6875
    """
    weights = [1.0] * len(replicas) if lengths_s is None else lengths_s
    if not math.fsum(weights) > 0:
        return math.nan
    return 1 - math.fsum(map(operator.mul, replicas, weights)) / math.fsum(weights) / r_over


def throughput_degradation(entered: Iterable[float], left: Iterable[float]) -> float:
    """|in − out| / in, the mean over the intervals with input; NaN with none.

    >>> throughput_degradation([100, 0, 200], [50, 30, 300])
    0.5
    """
    ratios = [abs(in_ - out) / in_ for in_, out in zip(entered, left, strict=True) if in_ > 0]
    return math.fsum(ratios) / len(ratios) if ratios else math.nan


def processed_ratio(processed: float, received: float) -> float:
    """Processed over received events of the whole run; NaN when none were received.

    >>> processed_ratio(9987, 10000)
    0.9987
    """
    return processed / received if received else math.nan


def mean_latency_ms(counts: Iterable[int], means_ms: Iterable[float]) -> float:
    """Mean end-to-end latency over intervals, each weighted by its events; NaN with no events.

    >>> mean_latency_ms([1, 3, 0], [10.0, 30.0, float("nan")])
    25.0
    """
    pairs = [(count, mean) for count, mean in zip(counts, means_ms, strict=True) if count]
    events = sum(count for count, _ in pairs)
    return math.fsum(count * mean for count, mean in pairs) / events if events else math.nan


@dataclass(frozen=True, slots=True)
class PaperMetrics:
    """The four metrics of one run."""

    saved_resources: float
    throughput_degradation: float
    processed_ratio: float
    latency_mean_ms: float


SOURCE = "Wladdimiro et al., SBAC-PAD 2022 and COMPAS 2023"
PUBLISHED = {
    "twitter": PaperMetrics(0.5617, 0.1831, 0.9987, 2098.91),
    "complex": PaperMetrics(0.745, 0.0911, 0.9970, 219.0),
    "dns": PaperMetrics(0.6062, 0.3734, 0.9884, 336.0),
}
"""What PSPS reached in the papers, by the name of the topology: 11 virtual machines, the paper's trace, td 30 s."""


def paper_metrics(snapshots: Sequence[Snapshot], r_over: float) -> PaperMetrics:
    """All four over a run's intervals."""
    entered = [snapshot.entered for snapshot in snapshots]
    left = [snapshot.source_output for snapshot in snapshots]
    latencies = [snapshot.latency for snapshot in snapshots]
    return PaperMetrics(
        saved_resources([snapshot.replicas for snapshot in snapshots], r_over),
        throughput_degradation(entered, left),
        processed_ratio(math.fsum(left), sum(entered)),
        mean_latency_ms([one.count for one in latencies], [one.mean_ms for one in latencies]),
    )
