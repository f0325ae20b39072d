"""The capacity of a replica in AUTOSCALE+, and what follows from it.

Kotto-Kombi et al., "DABS-Storm", TLDKS 40, 2019, equations 6 to 13.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.common.checks import share, whole
from penstock.metrics.paper import replicas_for
from penstock.metrics.snapshot import OperatorLoad, Snapshot

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuRules:
    """How AUTOSCALE+ sees the CPU: its weight λ, the share reserved for a replica, the replicas on one core.

        UtilCPU(T) = λ · max(used_T, reserved) + (1 − Σ_others used) / n       at most 1
        UtilCPU_i  = min over the operator's replicas

    >>> shared = CpuRules(weight=0.3, reserved=0.25, per_core=4)
    >>> round(shared.usable(used=0.5, others=0.6), 12)  # 0.3 · 0.5 + 0.4 / 4
    0.25
    >>> CpuRules(weight=0.3, reserved=1.0, per_core=1).usable(used=0.5, others=0.0)
    1.0
    """

    weight: float
    reserved: float
    per_core: int

    def __post_init__(self) -> None:
        share("policy 'autoscale_plus'", "cpu_weight", self.weight)
        share("policy 'autoscale_plus'", "reserved", self.reserved)
        whole("policy 'autoscale_plus'", "per_core", self.per_core, least=1)

    def usable(self, used: float, others: float) -> float:
        """UtilCPU of a replica that used `used` of its core, the others on it `others`."""
        return min(1.0, self.weight * max(used, self.reserved) + max(0.0, 1.0 - others) / self.per_core)

    def usable_by(self, load: OperatorLoad, snapshot: Snapshot) -> float:
        """UtilCPU of an operator.

        Where the replicas of a topology sit is not known: the others on a core are taken to be as busy as the mean.
        """
        others = (self.per_core - 1) * _mean_busy(snapshot) if self.per_core > 1 else 0.0
        return min((self.usable(load.busy_share.get(replica, 0.0), others) for replica in load.active), default=1.0)


def _mean_busy(snapshot: Snapshot) -> float:
    loads = snapshot.operators.values()
    busy = sum(load.busy_share.get(replica, 0.0) for load in loads for replica in load.active)
    return busy / max(1, snapshot.replicas)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the working interval says of an operator's replicas, in words too."""

    replicas: int
    reason: str


@dataclass(frozen=True, slots=True)
class Need:
    """Replicas for `work`, which is in replicas' time (Estim Input · Lat / Δ), by what of a core each of them can use.

        idealK = work / usable       safe = work / counted       usable = UtilCPU, counted = reserved · λ

    `safe` stands for what is sure: after a change replicas may sit elsewhere, and only what is reserved is theirs.
    """

    work: float
    usable: float
    counted: float

    def verdict(self, now: int, scale_in_below: float) -> Verdict:
        """Scale out above `now`, in below β · `now`, to ⌈safe⌉ each time; in between is the working interval.

        >>> Need(2.5, usable=1.0, counted=0.3).verdict(now=2, scale_in_below=0.8).replicas
        9
        >>> Need(1.7, usable=1.0, counted=0.3).verdict(now=2, scale_in_below=0.8).reason
        '1.7 replicas, within 1.6 to 2: stays'

        A scale-in that would end with more replicas than there are does not take place.

        >>> Need(1.5, usable=1.0, counted=0.3).verdict(now=2, scale_in_below=0.8).replicas
        2
        """
        ideal, least = self.work / self.usable, scale_in_below * now
        safe = self.work / self.counted
        sure = f"{safe:.4g} that count on {self.counted:.4g} of a core each"
        if ideal > now * (1 + _ROUNDING):
            return Verdict(replicas_for(safe), f"{ideal:.4g} replicas, above {now}: scales out to {sure}")
        if ideal >= least * (1 - _ROUNDING):
            return Verdict(now, f"{ideal:.4g} replicas, within {least:.4g} to {now}: stays")
        if replicas_for(safe) >= now:
            return Verdict(now, f"{ideal:.4g} replicas, below {least:.4g}, but keeps {now}: it takes {sure}")
        return Verdict(replicas_for(safe), f"{ideal:.4g} replicas, below {least:.4g}: scales in to {sure}")
