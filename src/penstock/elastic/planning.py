"""What a run is planned with: policy in its guards, forecaster and interval, as given and as orders change them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.control.analyze import analyzer_for
from penstock.control.declare import declared, expected_workload
from penstock.control.steering import Planning, Steering
from penstock.engine.run import Run
from penstock.errors import InputError
from penstock.forecast.registry import check_for_loop
from penstock.metrics.interval import IntervalRules, stale_after_s
from penstock.policy.base import Policy, recall
from penstock.policy.guards import Calendar, tempered
from penstock.policy.guards.calendar import Event
from penstock.policy.registry import beside, policy_for
from penstock.policy.static import Static
from penstock.policy.workload import Workload
from penstock.workload import Trace

NONE = "none"  # a forecaster, or a policy in the shadow


@dataclass(slots=True, kw_only=True)
class PlannedRun:
    """A run as it is to be planned; `make` gives what to plan with under the orders that are in force."""

    run: Run
    name: str  # what the store calls it
    policy: str | Policy | None
    forecaster: str | None
    td_s: float
    promise: Mapping[str, float]
    cooldown_s: float
    day_s: float
    expected: Trace | None
    calendar: tuple[Event, ...] = ()
    shadow: str | Policy | None = None
    canary: str | Policy | None = None
    slots: int | None = None  # all replicas together have at most so many
    times_s: Mapping[str, float] = field(default_factory=dict)  # execution times, once they are measured
    before: Sequence[float] = ()  # what entered before, second by second, where the run is carried on

    def make(self, steering: Steering, now: Planning | None) -> Planning:
        """What to plan with under these orders; what they leave as it is stays the same."""
        td_s = self.td_s if steering.td_s is None else steering.td_s
        forecaster = self._forecaster(steering)
        same = now is not None and _chosen(now.steering) == _chosen(steering)
        if now is not None and same and now.rules.td_s == td_s:
            return replace(now, steering=steering)
        policy = now.policy if now is not None and same else self._tempered(steering, forecaster)
        known, target_ms = declared(self.run.topology), self.promise["target_ms"]
        rules = IntervalRules(td_s, known, stale_after_s=stale_after_s(td_s), target_ms=target_ms)
        return Planning(steering, policy, analyzer_for(policy, forecaster, td_s, self.day_s, self.name), rules)

    def workload(self, times_s: Mapping[str, float]) -> Workload | None:
        """What a static run would be sized for, if the trace is known; declared execution times go before these."""
        return None if self.expected is None else expected_workload(self.run.topology, self.expected, times_s)

    def _forecaster(self, steering: Steering) -> str | None:
        if steering.forecaster is None:
            return self.forecaster
        if steering.forecaster == NONE:
            return None
        check_for_loop(steering.forecaster)
        return steering.forecaster

    def _tempered(self, steering: Steering, forecaster: str | None) -> Policy:
        """The policy, and who is in its shadow, in the guards that hold them back, with what is known of the load."""

        def make(policy: str | Policy) -> Policy:
            if not isinstance(policy, str):
                return policy
            if policy.partition(":")[0] == "oracle":
                raise InputError("policy 'oracle': knows the future, which only the simulator can tell it")
            workload = self.workload(self.times_s)
            return policy_for(policy, workload=workload, forecaster=forecaster, promise=self.promise)

        chosen: str | Policy = steering.policy or self.policy or self._as_started()
        policy = beside(chosen, make, self.promise, **self._shadowed(steering))
        if self.before:
            recall(policy, self.before, 1.0)
        inner = tempered(policy, scale_in_s=self.cooldown_s)
        return Calendar(inner, self.calendar) if self.calendar else inner

    def _as_started(self) -> Policy:
        return Static({name: len(active) for name, active in self.run.active.items()}, "as it was started")

    def _shadowed(self, steering: Steering) -> dict[str, str | Policy | None]:
        """Who is to be in the shadow, and in which way; an order for one goes before both as they were given."""
        if steering.shadow is None and steering.canary is None:
            return {"shadow": self.shadow, "canary": self.canary}
        ordered = {"shadow": steering.shadow, "canary": steering.canary}
        return {way: None if policy == NONE else policy for way, policy in ordered.items()}


def _chosen(steering: Steering) -> tuple[str | None, ...]:
    """What of the orders says what to plan with."""
    return steering.policy, steering.forecaster, steering.shadow, steering.canary
