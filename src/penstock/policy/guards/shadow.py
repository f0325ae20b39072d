"""A second policy that decides beside the first, and is never carried out."""

from __future__ import annotations

from dataclasses import replace

from penstock.common.checks import positive
from penstock.errors import InputError
from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import Snapshot
from penstock.policy.base import Beside, Careful, Plan, PlansAhead, Policy, inside, name_of
from penstock.policy.guards.windowed import Windowed
from penstock.policy.parts.expected import Shares
from penstock.policy.parts.imagined import Came, Imagined, as_if

TARGET_MS = 2000.0


class Shadow:
    """Plans as `policy` does, and says beside each plan what `shadow` would have planned.

    Both get the same forecast and the same snapshot; of that the shadow sees its own replicas at work, and what would
    wait with them. Names are those of the store; without, as the policies describe themselves.

    >>> from penstock.policy.static import Static
    >>> from penstock.testing.loads import load, snapshot
    >>> plan = Shadow(Static(4), Static(2)).plan(snapshot({"in": 9}, [load("clean", {"in": 9})]))
    >>> plan.replicas, plan.beside.other, plan.beside.targets["clean"].replicas
    ({'clean': 4}, 'Static(2)', 2)
    """

    own_windows = True  # whoever needs a window gets one of its own here

    def __init__(
        self,
        policy: Policy,
        shadow: Policy,
        *,
        target_ms: float = TARGET_MS,
        names: tuple[str, str] | None = None,
    ) -> None:
        self.names = names or (name_of(policy), name_of(shadow))
        if self.names[0] == self.names[1]:
            raise InputError(f"shadow: must be another policy than the one that decides; got {self.names[1]!r} twice")
        self.target_ms = positive("guard 'shadow'", "target_ms", target_ms)
        self.policy = _windowed(policy)  # who decides; by this name, so that `inside` finds it
        self.shadow = _windowed(shadow)
        self._decides, self._other = Imagined(), Imagined()
        self._shares = Shares()
        self._has_begun = False
        self._look_ahead()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.policy!r}, {self.shadow!r})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """The plan of who decides, with the other's beside it."""
        came = Came.of(snapshot, self._shares, self.target_ms / 1000)
        before, why = self.names[0], self._begun(snapshot)
        if came is not None and self._decides.replicas and self._other.replicas:
            why = self._judge(snapshot, came, self._decides.play(came), self._other.play(came)) or why
        try:
            plan = self.policy.plan(snapshot, forecast)
        except Exception as error:
            if (failed := self._failed(snapshot, error)) is None:
                raise
            plan, why = self.policy.plan(snapshot, forecast), failed
        other, note = self._imagine(snapshot, forecast)
        self._decides.decide(plan, snapshot)
        self._other.decide(other, snapshot)
        changed = before if before != self.names[0] else None
        beside = Beside(self.names[0], self.names[1], other.targets, changed, why)
        return replace(plan, notes=(*plan.notes, *note), beside=beside)

    def _imagine(self, snapshot: Snapshot, forecast: Forecast | None) -> tuple[Plan, tuple[str, ...]]:
        """What the other would plan, and a note where it fails: who is in the shadow must not disturb who decides."""
        try:
            return self.shadow.plan(as_if(snapshot, self._other, self._decides), forecast), ()
        except Exception as error:
            return Plan({}), (f"{self.names[1]} failed in the shadow: {type(error).__name__}: {error}",)

    def _failed(self, snapshot: Snapshot, error: Exception) -> str | None:  # noqa: ARG002
        """Why the other decides from now on, as who decided has failed; None where it does not."""
        return None

    def _begun(self, snapshot: Snapshot) -> str | None:
        """What is to be known of the first plan; None later."""
        if self._has_begun:
            return None
        self._has_begun = True
        for one in (self._decides, self._other):
            one.begin(snapshot)
        return f"begins; {self.names[1]} decides in its shadow{self._outlook}"

    @property
    def _outlook(self) -> str:
        """What may become of the shadow."""
        return ", and is never carried out"

    def _judge(
        self,
        snapshot: Snapshot,  # noqa: ARG002
        came: Came,  # noqa: ARG002
        decides: tuple[float, float],  # noqa: ARG002
        other: tuple[float, float],  # noqa: ARG002
    ) -> str | None:
        """Why another decides from now on, of late events and replica-seconds of both; None as long as none does."""
        return None

    def _look_ahead(self) -> None:
        """Ask for the forecasts that either of them needs."""
        found = [one for policy in (self.policy, self.shadow) for one in inside(policy) if isinstance(one, PlansAhead)]
        if found:
            self.horizon = max(one.horizon for one in found)
            self.level = next((one.level for one in found if isinstance(one, Careful)), None)


def _windowed(policy: Policy) -> Policy:
    return policy if getattr(policy, "own_windows", False) else Windowed(policy)
