"""Limits that wrap a policy, each a policy itself.

Hard limits go outside: `Bounded(Calendar(Cooldown(Calm(RefuseIncomplete(Psps())))))`, which is what `guarded` makes,
the calendar where there is one. A cooldown around `Bounded` could keep replicas that the slots do not suffice for.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.policy.base import Policy
from penstock.policy.guards.bounded import Bounded
from penstock.policy.guards.calendar import Calendar, Event
from penstock.policy.guards.calm import Calm
from penstock.policy.guards.canary import Canary
from penstock.policy.guards.cooldown import Cooldown
from penstock.policy.guards.headroom import Headroom
from penstock.policy.guards.refuse_incomplete import RefuseIncomplete
from penstock.policy.guards.shadow import Shadow
from penstock.policy.guards.windowed import Windowed

__all__ = [
    "Bounded",
    "Calendar",
    "Calm",
    "Canary",
    "Cooldown",
    "Headroom",
    "RefuseIncomplete",
    "Shadow",
    "Windowed",
    "guarded",
    "tempered",
]


def guarded(
    policy: Policy,
    *,
    slots: int | None = None,
    scale_in_s: float = 0.0,
    scale_out_s: float = 0.0,
    calendar: Sequence[Event] = (),
    offset_s: float = 0.0,
) -> Policy:
    """The policy in all guards, in the order that keeps every one of them.

    >>> from penstock.policy.static import Static
    >>> guarded(Static(4), slots=12)
    Bounded(Cooldown(Calm(RefuseIncomplete(Static(4)), per_minute=60.0), scale_in_s=0.0, scale_out_s=0.0), slots=12)
    """
    inner = tempered(policy, scale_in_s=scale_in_s, scale_out_s=scale_out_s)
    return Bounded(Calendar(inner, calendar, offset_s=offset_s) if calendar else inner, slots=slots)


def tempered(policy: Policy, *, scale_in_s: float = 0.0, scale_out_s: float = 0.0) -> Policy:
    """The policy in the guards that hold it back; what people say and hard limits go around it."""
    trusted = RefuseIncomplete(policy if getattr(policy, "own_windows", False) else Windowed(policy))
    return Cooldown(Calm(trusted), scale_in_s=scale_in_s, scale_out_s=scale_out_s)
