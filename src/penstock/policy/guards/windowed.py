"""Show a policy no less than a second at a time."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from penstock.forecast.base import Forecast
from penstock.metrics.jump import is_jump
from penstock.metrics.snapshot import Snapshot
from penstock.policy.base import Plan, Policy
from penstock.policy.parts.window import merged

LENGTH_S = 1.0


class Windowed:
    """Where intervals are shorter than `length_s`, the policy sees the last so many as one: counts, busy and CPU time.

    Else numbers would be the noisier, the shorter intervals are. It plans for an interval of that length, each time
    anew. After a jump of what enters it sees only what came since. Policies that see to it themselves say so
    (`own_windows`) and are left alone.
    """

    def __init__(self, policy: Policy, *, length_s: float = LENGTH_S) -> None:
        self.policy = policy
        self.length_s = length_s
        self._seen: deque[Snapshot] = deque()

    def __repr__(self) -> str:
        return f"Windowed({self.policy!r}, length_s={self.length_s})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """The wrapped policy's plan for what was seen lately."""
        return self.policy.plan(self._lately(snapshot), forecast)

    def _lately(self, snapshot: Snapshot) -> Snapshot:
        if snapshot.interval_s >= self.length_s or snapshot.incomplete or not snapshot.interval_s > 0:
            self._seen.clear()
            return snapshot
        before, before_s = sum(one.entered for one in self._seen), sum(one.interval_s for one in self._seen)
        if is_jump(snapshot.entered, snapshot.interval_s, before, before_s):
            self._seen.clear()
        self._seen.append(snapshot)
        while sum(one.interval_s for one in self._seen) - self._seen[0].interval_s >= self.length_s - 1e-9:
            self._seen.popleft()
        lately = merged(self._seen) if len(self._seen) > 1 else snapshot
        return replace(lately, td_s=lately.interval_s)
