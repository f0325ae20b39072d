"""Monitor: collect the statistics of the interval that just ended."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.control.ports import Counted
from penstock.metrics.counters import RunCounters
from penstock.metrics.execution_time import ExecutionTimes
from penstock.metrics.interval import IntervalRules, difference
from penstock.metrics.snapshot import Snapshot


class Monitor:
    """Turns a run's cumulative counters into one snapshot an interval, with current execution times.

    The first look only remembers where the counters stand. Counters that are older than `rules.oldest_s` on
    the loop's clock make the whole snapshot incomplete. Execution times are, to begin with, those measured before, or
    else what is declared.
    """

    def __init__(self, counted: Counted, rules: IntervalRules, measured_s: Mapping[str, float] | None = None) -> None:
        self.rules = rules
        self._counted = counted
        declared = {name: one.execution_time_s for name, one in rules.declared.items()}
        known = {name: time_s for name, time_s in declared.items() if time_s is not None}
        self._times = ExecutionTimes({**known, **(measured_s or {})})
        self._earlier: RunCounters | None = None

    def collect(self, now_s: float, cut: bool = False) -> Snapshot | None:
        """The interval since the last look, which may have been cut short on purpose; None at the first."""
        later = self._counted.counters()
        earlier, self._earlier = self._earlier, later
        if earlier is None:
            return None
        age_s, oldest_s = now_s - later.time_s, self.rules.oldest_s
        stale = None if age_s <= oldest_s else f"counters are {age_s:.3g} s old; stale after {oldest_s:g} s"
        return difference(earlier, later, self.rules, cut=cut, doubt=stale, times=self._times)
