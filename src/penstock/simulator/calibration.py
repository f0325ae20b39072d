"""Calibration: what a live run's store says about hop delay, execution times and overhead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from penstock.simulator.options import SimulationOptions


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What was measured in a run; whatever is absent stays as it is set or declared."""

    hop_s: float | None = None
    times_s: Mapping[str, float] = field(default_factory=dict)  # execution time by operator
    overhead_s: Mapping[str, float] = field(default_factory=dict)  # a replica's time for an event beyond that

    def applied(self, options: SimulationOptions) -> SimulationOptions:
        """The options with what was measured."""
        hop_s = options.hop_s if self.hop_s is None else self.hop_s
        return replace(options, hop_s=hop_s, overhead_s={**self.overhead_s, **options.overhead_s})
