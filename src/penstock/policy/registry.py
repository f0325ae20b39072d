"""Policies by name."""

from __future__ import annotations

from penstock.forecast.named import Named
from penstock.policy.base import Policy
from penstock.policy.psps import Psps
from penstock.policy.static import make_static

POLICIES: Named[Policy] = Named("policy")
POLICIES.register("psps", Psps)
POLICIES.register("static", make_static, first="replicas")


def make_policy(spec: str, **options: object) -> Policy:
    """A policy from its name and options: `psps`, `psps:predecessor_backlog`, `static:4`, `static:peak`.

    `static:peak` and `static:mean` need the option `workload`. Guards are put around it by `guards.guarded`.

    >>> make_policy("psps:predecessor_backlog,use_forecast").predecessor_backlog
    True
    >>> make_policy("hope")
    Traceback (most recent call last):
    penstock.errors.InputError: policy: no such name 'hope'; known: psps, static
    """
    return POLICIES.make(spec, **options)
