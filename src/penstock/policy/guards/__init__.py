"""Limits that wrap a policy, each a policy itself.

Hard limits go outside: `Bounded(Cooldown(RefuseIncomplete(Psps())))`, which is what `guarded` makes. A cooldown
around `Bounded` could keep replicas that the slots do not suffice for.
"""

from __future__ import annotations

from penstock.policy.base import Policy
from penstock.policy.guards.bounded import Bounded
from penstock.policy.guards.cooldown import Cooldown
from penstock.policy.guards.refuse_incomplete import RefuseIncomplete

__all__ = ["Bounded", "Cooldown", "RefuseIncomplete", "guarded"]


def guarded(policy: Policy, *, slots: int | None = None, scale_in_s: float = 0.0, scale_out_s: float = 0.0) -> Policy:
    """The policy in all guards, in the order that keeps every one of them.

    >>> from penstock.policy.static import Static
    >>> guarded(Static(4), slots=12)
    Bounded(Cooldown(RefuseIncomplete(Static(4)), scale_in_s=0.0, scale_out_s=0.0), slots=12)
    """
    trusted = RefuseIncomplete(policy)
    return Bounded(Cooldown(trusted, scale_in_s=scale_in_s, scale_out_s=scale_out_s), slots=slots)
