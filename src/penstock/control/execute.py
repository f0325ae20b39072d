"""Execute: activate and deactivate replicas, and publish how used they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.control.ports import Actuator, Balances
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.metrics.utilisation import Measure, Utilisation, booked
from penstock.policy.base import Plan, Targets


def choose_replicas(active: tuple[int, ...], count: int, pool: int | Sequence[int]) -> tuple[int, ...]:
    """Which replicas of a pool, or of so many, to run: those that are active, fewest changes, lowest numbers first.

    >>> choose_replicas((0, 3), 3, pool=8), choose_replicas((0, 1, 3), 2, pool=8)
    ((0, 1, 3), (0, 1))
    """
    kept = sorted(active)[:count]
    there = range(pool) if isinstance(pool, int) else sorted(pool)
    inactive = (replica for replica in there if replica not in active)
    added = [replica for replica, _ in zip(inactive, range(count - len(kept)), strict=False)]
    return tuple(sorted(kept + added))


def execute(actuator: Actuator, snapshot: Snapshot, plan: Plan, measure: Measure = booked) -> dict[str, str]:
    """Carry out a plan; what fails for one operator stays as it is, and the reason is returned under its name.

    `measure` says how used replicas are. Operators with incomplete numbers keep what was last published.
    """
    failures: dict[str, str] = {}
    targets, active = Targets.of(plan.targets), dict(snapshot.loads.active)
    for name, count in targets.replicas.items():
        if name not in targets.which and count == len(active[name]):
            continue
        load = snapshot.operators[name]
        chosen = targets.which.get(name) or choose_replicas(load.active, count, load.there or load.pool)
        if chosen != load.active:
            try:
                actuator.set_replicas(name, chosen)
                active[name] = chosen
            except Exception as error:
                failures[name] = f"{type(error).__name__}: {error}"
    used: dict[str, Utilisation] = {}
    for name in actuator.balanced if isinstance(actuator, Balances) else targets:
        if name in targets and name not in snapshot.incomplete:
            load = snapshot.operators[name]
            if known := measure(load, active[name], snapshot.td_s, _senders(load, targets.replicas)):
                used[name] = known
    return failures | _publish(actuator, used)


def _senders(load: OperatorLoad, replicas: Mapping[str, int]) -> int:
    """How many replicas will send to the operator; a source counts as one."""
    return sum(replicas.get(name, 1) for name in load.received_by) or 1


def _publish(actuator: Actuator, used: Mapping[str, Utilisation]) -> dict[str, str]:
    try:
        actuator.publish_utilisation(used)
    except Exception as error:
        return {"utilisation": f"{type(error).__name__}: {error}"}
    return {}
