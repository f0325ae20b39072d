"""Advice on an application: how it was, how it would have been, what to choose, and the settings for it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.advise.replay import Fitted, Load, Outcome, Rules, fewest, played_options, policies, replay
from penstock.attached.options import DEFAULT_POLICY, NEEDED
from penstock.errors import InputError, PenstockError
from penstock.report.text import count, figure, milliseconds, percent, several

SAME = 0.02  # of the cost: what is dearer by less is as good


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What a load came to, and what it would have come to under other policies."""

    load: Load
    rules: Rules
    outcomes: tuple[Outcome, ...]
    constant: Outcome | None  # the fewest executors that would have done, all the time
    left_out: Mapping[str, str] = field(default_factory=dict)  # policies that could not be played, and why

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
    outcomes, left_out = [], dict[str, str]()
    for policy in policies():
        told(policy)
        try:
            outcomes.append(replay(load, policy, rules))
        except PenstockError as error:  # it needs what nobody knows here
            left_out[policy] = str(error)
    if not outcomes:
        raise InputError(f"advise: no policy could be played; {'; '.join(_unplayed(left_out)) or 'there is none'}")
    ranked = sorted(outcomes, key=lambda one: (one.late_ratio > rules.promise.late, one.executor_seconds))
    return Advice(load=load, rules=rules, outcomes=tuple(ranked), constant=fewest(load, rules), left_out=left_out)


def _unplayed(left_out: Mapping[str, str]) -> list[str]:
    return [f"{policy}: {why}" for policy, why in left_out.items()]


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
        found.append(f"Under {chosen.policy}: {_spent(chosen)}{_gain(was, chosen)}; {_late(chosen, promise.target_s)}.")
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
    left_out = [f"Left out is {one}." for one in _unplayed(advice.left_out)]
    return [f"Query '{one.name}': {one.note}." for one in advice.load.queries if one.note] + left_out


def _gain(was: Outcome, chosen: Outcome) -> str:
    """How much cheaper or dearer than it was, where that is known."""
    if not was.executor_seconds > 0:
        return ""
    saved = 1 - chosen.executor_seconds / was.executor_seconds
    return f", {percent(saved)} less" if saved > 0 else f", {percent(-saved)} more"


def _spent(outcome: Outcome) -> str:
    if math.isnan(outcome.executor_seconds):
        return "executors are not known"
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
    """What to paste: Spark's settings, and the line that attaches, all of it as it was played."""
    first = next((number for _, number in advice.chosen.executors), advice.rules.bounds.least)
    return "\n".join(
        [
            "spark.dynamicAllocation.enabled false",
            f"spark.executor.instances {first}",
            *(f"{key} {value}" for key, value in NEEDED.items()),
            "",
            f"keeper = penstock.attach({_attached(advice)})",
        ]
    )


def _attached(advice: Advice) -> str:
    """What `attach` is to be given: every option by which the chosen policy was played."""
    played = played_options(advice.load, advice.chosen.policy, advice.rules)
    given = {
        "executors": f"{played.bounds.least}..{played.bounds.most}",
        "target_ms": round(1000 * played.promise.target_s, 3),
        "late": played.promise.late,
        "policy": advice.chosen.policy,
        "forecaster": played.forecaster,
        "td_s": played.td_s,
        "cooldown_s": played.cooldown_s,
    }
    queries = "query" if len(advice.load.queries) == 1 else "spark.streams.active"
    return ", ".join([queries, *(f"{name}={_literal(value)}" for name, value in given.items())])


def _literal(value: object) -> str:
    """As Python has it: texts in double quotes, and whole numbers without a point."""
    if isinstance(value, str):
        return f'"{value}"'
    return repr(int(value) if isinstance(value, float) and value.is_integer() else value)


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
        "left_out": dict(advice.left_out),
        "chosen": advice.chosen.policy,
        "keeps_promise": advice.best is not None,
        "words": words(advice),
        "settings": settings(advice),
    }


def _outcome(one: Outcome) -> dict[str, Any]:
    found = {**dataclasses.asdict(one), "late_ratio": one.late_ratio}
    found.pop("executors")
    return {key: (None if isinstance(value, float) and math.isnan(value) else value) for key, value in found.items()}
