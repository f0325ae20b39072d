"""Advice on an application: how it was, how it would have been, what to choose, and the settings for it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.advise.replay import Fitted, Load, Outcome, Rules, fewest, policies, replay
from penstock.attached.options import DEFAULT_POLICY, NEEDED
from penstock.errors import PenstockError
from penstock.report.text import count, figure, milliseconds, percent, several

SAME = 0.02  # of the cost: what is dearer by less is as good


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What a load came to, and what it would have come to under other policies."""

    load: Load
    rules: Rules
    outcomes: tuple[Outcome, ...]
    constant: Outcome | None  # the fewest executors that would have done, all the time

    @property
    def best(self) -> Outcome | None:
        """The cheapest that keeps the promise; of equals the usual policy. None if none does."""
        kept = [one for one in self.outcomes if one.late_ratio <= self.rules.promise.late]
        if not kept:
            return None
        least = min(one.executor_seconds for one in kept)
        equal = [one for one in kept if one.executor_seconds <= (1 + SAME) * least]
        return min(equal, key=lambda one: (one.policy != DEFAULT_POLICY, one.executor_seconds, one.late))

    @property
    def chosen(self) -> Outcome:
        """The best, or, where none keeps the promise, the one that comes nearest."""
        return self.best or min(
            self.outcomes, key=lambda one: (one.late, one.executor_seconds, one.policy != DEFAULT_POLICY)
        )


def advise(load: Load, rules: Rules, told: Callable[[str], None] = lambda _: None) -> Advice:
    """Play the load under all policies; `told` hears which."""
    outcomes = []
    for policy in policies():
        told(policy)
        try:
            outcomes.append(replay(load, policy, rules))
        except PenstockError:  # it needs what nobody knows here
            continue
    ranked = sorted(outcomes, key=lambda one: (one.late_ratio > rules.promise.late, one.executor_seconds))
    return Advice(load=load, rules=rules, outcomes=tuple(ranked), constant=fewest(load, rules))


def words(advice: Advice) -> list[str]:
    """What there is to say, in sentences."""
    found = [_said_of(one) for one in advice.load.queries]
    was, chosen, promise = advice.load.was, advice.chosen, advice.rules.promise
    found.append(f"As it was: {_spent(was)}; {_late(was, promise.target_s)}.")
    if advice.best is None:
        most = several(advice.rules.bounds.most, "executor")
        found.append(
            f"On up to {most} no policy has at most {percent(promise.late)} late; {chosen.policy} comes nearest: "
            f"{_spent(chosen)}; {_late(chosen, promise.target_s)}."
        )
    else:
        saved = 1 - chosen.executor_seconds / was.executor_seconds if was.executor_seconds > 0 else math.nan
        gain = f"{percent(saved)} less" if saved > 0 else f"{percent(-saved)} more"
        found.append(f"Under {chosen.policy}: {_spent(chosen)}, {gain}; {_late(chosen, promise.target_s)}.")
    if advice.constant is not None:
        number = advice.constant.executors[0][1]
        found.append(f"All the time {several(number, 'executor')} would do: {_spent(advice.constant)}.")
    return found + _notes(advice)


def _said_of(query: Fitted) -> str:
    cost, every = query.cost, f"every {query.trigger_s:g} s" if query.trigger_s else "as fast as it goes"
    row_ms, batch_s, fixed_s = figure(1000 * cost.by_row_s), figure(cost.by_batch_s), figure(cost.fixed_s)
    return (
        f"Query '{query.name}' ({every}): {count(query.rows)} rows; a row takes {row_ms} ms of a slot, "
        f"a batch {batch_s} s of a slot and {fixed_s} s whatever the slots."
    )


def _notes(advice: Advice) -> list[str]:
    return [f"Query '{one.name}': {one.note}." for one in advice.load.queries if one.note]


def _spent(outcome: Outcome) -> str:
    return f"{decimal_hours(outcome.executor_seconds)} executor-hours"


def _late(outcome: Outcome, target_s: float) -> str:
    share = percent(outcome.late_ratio)
    return f"{share} of rows took longer than {target_s:g} s (p99 {milliseconds(outcome.p99_ms)})"


def decimal_hours(seconds: float) -> str:
    """Hours, with as many digits as they need.

    >>> decimal_hours(5400.0), decimal_hours(90.0)
    ('1.50', '0.025')
    """
    return figure(seconds / 3600)


def settings(advice: Advice) -> str:
    """What to paste: Spark's settings, and the lines that attach."""
    bounds, promise = advice.rules.bounds, advice.rules.promise
    policy = "" if advice.chosen.policy == DEFAULT_POLICY else f', policy="{advice.chosen.policy}"'
    target = f"target_ms={1000 * promise.target_s:.0f}, late={promise.late:g}"
    return "\n".join(
        [
            "spark.dynamicAllocation.enabled false",
            f"spark.executor.instances {bounds.least}",
            *(f"{key} {value}" for key, value in NEEDED.items()),
            "",
            f'keeper = penstock.attach(query, executors="{bounds.least}..{_most(advice)}", {target}{policy})',
        ]
    )


def _most(advice: Advice) -> int:
    """What the chosen policy used at most, and one more to have room."""
    used = max((number for _, number in advice.chosen.executors), default=advice.rules.bounds.most)
    return min(advice.rules.bounds.most, used + 1)


def as_json(advice: Advice) -> dict[str, Any]:
    """All of it, for programs."""
    promise = advice.rules.promise
    return {
        "application": advice.load.name,
        "spark": advice.load.version,
        "seconds": round(advice.load.seconds, 3),
        "slots_each": advice.load.slots_each,
        "target_ms": 1000 * promise.target_s,
        "late": promise.late,
        "executors": f"{advice.rules.bounds.least}..{advice.rules.bounds.most}",
        "queries": {
            one.name: {"trigger_s": one.trigger_s, "rows": one.rows, "cost": dataclasses.asdict(one.cost)}
            for one in advice.load.queries
        },
        "as_it_was": _outcome(advice.load.was),
        "constant": None if advice.constant is None else _outcome(advice.constant),
        "policies": [_outcome(one) for one in advice.outcomes],
        "chosen": advice.chosen.policy,
        "keeps_promise": advice.best is not None,
        "words": words(advice),
        "settings": settings(advice),
    }


def _outcome(one: Outcome) -> dict[str, Any]:
    found = {**dataclasses.asdict(one), "late_ratio": one.late_ratio}
    found.pop("executors")
    return {key: (None if isinstance(value, float) and math.isnan(value) else value) for key, value in found.items()}
