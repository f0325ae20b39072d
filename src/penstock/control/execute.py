"""Execute: activate and deactivate replicas, and publish how used they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.control.ports import Actuator
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.metrics.utilisation import Measure, Utilisation, booked
from penstock.policy.base import Plan


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
    used: dict[str, Utilisation] = {}
    for name, target in plan.targets.items():
        load = snapshot.operators[name]
        active = target.which or load.active
        if target.which is None and target.replicas != len(load.active):
            active = choose_replicas(load.active, target.replicas, load.there or load.pool)
        if active != load.active:
            try:
                actuator.set_replicas(name, active)
            except Exception as error:
                failures[name] = f"{type(error).__name__}: {error}"
                active = load.active
        known = None if name in snapshot.incomplete else measure(load, active, snapshot.td_s, _senders(load, plan))
        if known:
            used[name] = known
    return failures | _publish(actuator, used)


def _senders(load: OperatorLoad, plan: Plan) -> int:
    """How many replicas will send to the operator; a source counts as one."""
    count, targets = 0, plan.targets
    for name in load.received_by:
        count += targets[name].replicas if name in targets else 1
    return count or 1


def _publish(actuator: Actuator, used: Mapping[str, Utilisation]) -> dict[str, str]:
    try:
        actuator.publish_utilisation(used)
    except Exception as error:
        return {"utilisation": f"{type(error).__name__}: {error}"}
    return {}
