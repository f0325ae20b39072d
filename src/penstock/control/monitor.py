"""Monitor: collect the statistics of the interval that just ended."""

from __future__ import annotations

from dataclasses import replace

from penstock.control.ports import Counted
from penstock.metrics.counters import RunCounters
from penstock.metrics.execution_time import ExecutionTimes
from penstock.metrics.interval import IntervalRules, difference
from penstock.metrics.snapshot import Snapshot


class Monitor:
    """Turns a run's cumulative counters into one snapshot an interval, with current execution times.

    The first look only remembers where the counters stand. Counters that are older than `rules.oldest_s` on
    the loop's clock make the whole snapshot incomplete.
    """

    def __init__(self, counted: Counted, rules: IntervalRules, times: ExecutionTimes | None = None) -> None:
        self.rules = rules
        self._counted = counted
        self._times = times or ExecutionTimes(
            {name: one.execution_time_s for name, one in rules.declared.items() if one.execution_time_s is not None}
        )
        self._earlier: RunCounters | None = None

    def collect(self, now_s: float) -> Snapshot | None:
        """The interval since the last look; None at the first."""
        later = self._counted.counters()
        earlier, self._earlier = self._earlier, later
        if earlier is None:
            return None
        snapshot = difference(earlier, later, self.rules)
        age_s = now_s - later.time_s
        if not age_s <= self.rules.oldest_s:
            reason = f"counters are {age_s:.3g} s old; stale after {self.rules.oldest_s:g} s"
            names = (*snapshot.source_input, *snapshot.operators)
            snapshot = replace(snapshot, incomplete=dict.fromkeys(names, reason))
        return self._times.update(snapshot)
