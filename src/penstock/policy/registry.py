"""Policies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.common.named import Named
from penstock.errors import InputError
from penstock.policy.autoscale_plus import AutoscalePlus
from penstock.policy.base import Policy, name_of
from penstock.policy.cba import Cba
from penstock.policy.ds2 import Ds2
from penstock.policy.dstream import DStream
from penstock.policy.dynamic_allocation import DynamicAllocation
from penstock.policy.flink import make_flink
from penstock.policy.guards.canary import MINUTES, Canary, parse_canary
from penstock.policy.guards.shadow import Shadow
from penstock.policy.incremental import Incremental
from penstock.policy.keda import Keda
from penstock.policy.learning import Learning
from penstock.policy.optimal import Optimal
from penstock.policy.oracle import make_oracle
from penstock.policy.penstock import Penstock
from penstock.policy.psps import Psps
from penstock.policy.spea import Spea
from penstock.policy.srea import Srea
from penstock.policy.static import make_static
from penstock.policy.threshold import Threshold
from penstock.policy.workload import Workload

POLICIES: Named[Policy] = Named("policy")
POLICIES.register("penstock", Penstock)
POLICIES.register("psps", Psps)
POLICIES.register("static", make_static, first="replicas")
POLICIES.register("oracle", make_oracle)
POLICIES.register("autoscale_plus", AutoscalePlus)
POLICIES.alias("dabs", of="autoscale_plus")
POLICIES.register("incremental", Incremental)
POLICIES.register("e2df", Threshold)
POLICIES.register("learning", Learning, first="knowledge")
POLICIES.register("srea", Srea)
POLICIES.register("spea", Spea, first="horizon")
POLICIES.register("cba", Cba, first="horizon")
POLICIES.register("optimal", Optimal, first="horizon")
POLICIES.register("ds2", Ds2)
POLICIES.register("flink", make_flink, first="settings")
POLICIES.register("keda", Keda, first="seconds")
POLICIES.register("dstream", DStream, first="every_s")
POLICIES.register("dynamic_allocation", DynamicAllocation)


def make_policy(spec: str, **options: object) -> Policy:
    """A policy from its name and options: `penstock:late=0.05`, `psps:predecessor_backlog`, `static:4`.

    `static:peak`, `static:mean` and `oracle` need the option `workload`. Guards are put around it by `guards.guarded`.

    >>> make_policy("psps:predecessor_backlog,use_forecast").predecessor_backlog
    True
    >>> make_policy("keda:seconds=10,cooldown_s=60")
    Keda(10, cooldown_s=60)
    >>> make_policy("hope")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    penstock.errors.InputError: policy: no such name 'hope'; known: ...
    """
    return POLICIES.make(spec, **options)


def policy_for(
    spec: str,
    *,
    workload: Workload | None = None,
    forecaster: str | None = None,
    promise: Mapping[str, float] | None = None,
) -> Policy:
    """The policy of that name, with what is known beforehand; with a forecaster, one that can goes by its forecast.

    `promise`: `late` and `target_ms` for those that keep one, unless their name says other ones.

    >>> policy_for("psps", forecaster="drift").use_forecast, policy_for("psps:use_forecast=false").use_forecast
    (True, False)
    >>> policy_for("penstock:late=0.05", promise={"late": 0.01, "target_ms": 500.0})
    Penstock(late=0.05, target_ms=500)
    """
    takes_workload = "workload" in POLICIES.options(spec.partition(":")[0])
    told = {"workload": workload} if workload is not None and takes_workload else {}
    asked: dict[str, object] = {"use_forecast": True} if forecaster is not None else {}
    return POLICIES.make(spec, {**asked, **(promise or {})}, **told)


def beside(
    policy: str | Policy,
    make: Callable[[str | Policy], Policy],
    promise: Mapping[str, float],
    *,
    shadow: str | Policy | None = None,
    canary: str | Policy | None = None,
) -> Policy:
    """The policy, with another in its shadow, or a canary; `make` makes one of its name.

    >>> beside("psps", make_policy, {"late": 0.01, "target_ms": 500.0}, canary="static:1,minutes=5").names
    ('psps', 'static:1')
    """
    if shadow is not None and canary is not None:
        raise InputError("give one of shadow and canary: a canary decides in the shadow at first")
    if shadow is None and canary is None:
        return make(policy)
    if shadow is not None:
        names = name_of(policy), name_of(shadow)
        return Shadow(make(policy), make(shadow), target_ms=promise["target_ms"], names=names)
    assert canary is not None
    other, minutes = parse_canary(canary) if isinstance(canary, str) else (canary, MINUTES)
    return Canary(make(policy), make(other), minutes=minutes, **promise, names=(name_of(policy), name_of(other)))
