"""Who wins the arena, in a few sentences that the terminal and the page both show."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.report.text import count, decimal, percent
from penstock.simulator.arena import ranked
from penstock.simulator.result import SimulationResult
from penstock.simulator.run import ORACLE

PEAK = "static:peak"


def verdict(results: Sequence[SimulationResult]) -> list[str]:
    """Who wins, or that nobody does and who comes nearest, in pieces: every second one is a policy's name."""
    if not results:
        return ["No policies were compared."]
    known = [one for one in ranked(results) if one.is_known]
    if not known:
        entered = any(one.events for one in results)
        return ["Of no policy it is known how late it was." if entered else "No events entered: nothing to compare."]
    target = f"the target ({100 * (1 - results[0].late):g} % of events within {results[0].target_ms / 1000:g} s)"
    rivals, oracle = [one for one in known if one.policy != ORACLE], [one for one in known if one.policy == ORACLE]
    if not rivals:
        return [
            f"Of the oracle alone there are results: it {'meets' if oracle[0].meets_target else 'misses'} {target}."
        ]
    best, *others = rivals
    cost = f"{_late(best)}. It takes {_cost(best, results)}."
    if not best.meets_target:
        nobody = f"No policy meets {target}{', not even the oracle' if oracle else ''}. "
        if oracle and oracle[0].meets_target:
            nobody = f"Only the oracle, which knows the next interval, meets {target}. "
        return [nobody, best.policy, f" comes nearest: {cost}"]
    alone = sum(one.policy != ORACLE for one in results) == 1
    lead = f" meets {target}: {cost}" if alone else f" is the cheapest policy that meets {target}: {cost}"
    return ["", best.policy, lead] if not others else ["", best.policy, f"{lead} Next is ", *_second(others[0], best)]


def forecasts(results: Sequence[SimulationResult]) -> str:
    """Who was given whose forecasts, in the order of the ranking; empty where nobody had any."""
    had: dict[str | None, list[str]] = {}
    for one in ranked(results):
        had.setdefault(one.forecaster, []).append(one.policy)
    none = had.pop(None, [])
    given = [f"{name} for {', '.join(policies)}" for name, policies in had.items()]
    return (
        "Forecasts: " + "; ".join([*given, *([f"none for {', '.join(none)}"] if none else [])]) + "." if given else ""
    )


def compared(ratio: float, what: str) -> str:
    """A number of replica-seconds beside another; nothing where the ratio is not known.

    >>> compared(1.284, "the oracle"), compared(0.38, "static:peak")
    ('28.4 % more than the oracle', '62.0 % fewer than static:peak')
    >>> compared(2.94, "the oracle"), compared(1.0001, "the oracle"), compared(float("nan"), "the oracle")
    ('2.9 times as many as the oracle', 'as many as the oracle', '')
    """
    if not ratio > 0:
        return ""
    if abs(ratio - 1) < 0.0005:
        return f"as many as {what}"
    if ratio >= 2:
        return f"{decimal(ratio, 1)} times as many as {what}"
    return f"{percent(abs(ratio - 1))} {'more' if ratio > 1 else 'fewer'} than {what}"


def _second(second: SimulationResult, best: SimulationResult) -> list[str]:
    ratio = second.replica_seconds / (best.replica_seconds or 1.0)
    cost = f"{count(second.replica_seconds)} replica-seconds, {compared(ratio, best.policy)}."
    met = second.meets_target
    return [
        second.policy,
        f", which {'meets it too: it takes' if met else f'misses it: {_late(second)}. It takes'} {cost}",
    ]


def _cost(result: SimulationResult, results: Sequence[SimulationResult]) -> str:
    beside = [compared(result.oracle_ratio, "the oracle")]
    for one in results:
        if one.policy == PEAK and one is not result and one.replica_seconds:
            beside += [compared(result.replica_seconds / one.replica_seconds, PEAK)]
    words = " and ".join(filter(None, beside))
    return f"{count(result.replica_seconds)} replica-seconds" + (f", {words}" if words else "")


def _late(result: SimulationResult) -> str:
    return f"{percent(result.late_ratio)} of its events are late" if result.late_ratio else "none of its events is late"
