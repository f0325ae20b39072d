"""The arena in a few sentences: the cheapest policy that meets the target, and what it costs beside others."""

from __future__ import annotations

from penstock.report.arena_data import PEAK, ArenaReport, is_known, is_oracle, meets
from penstock.report.arena_tables import late_share
from penstock.report.data import finite
from penstock.report.markup import Markup, count, decimal, element, percent
from penstock.simulator.result import ON_TIME, SimulationResult


def verdict(report: ArenaReport) -> Markup:
    """Who wins, or that nobody does and who comes nearest."""
    return element("p", *_sentences(report), class_="verdict")


def compared(ratio: float | None, what: str) -> str:
    """A number of replica-seconds beside another; nothing where the ratio is not known.

    >>> compared(1.284, "the oracle"), compared(0.38, "static:peak")
    ('28.4 % more than the oracle', '62.0 % fewer than static:peak')
    >>> compared(2.94, "the oracle"), compared(1.0001, "the oracle"), compared(None, "the oracle")
    ('2.9 times as many as the oracle', 'as many as the oracle', '')
    """
    if ratio is None:
        return ""
    if abs(ratio - 1) < 0.0005:
        return f"as many as {what}"
    if ratio >= 2:
        return f"{decimal(ratio, 1)} times as many as {what}"
    return f"{percent(abs(ratio - 1))} {'more' if ratio > 1 else 'fewer'} than {what}"


def _sentences(report: ArenaReport) -> list[object]:
    if not report.results:
        return ["No policies were compared."]
    if not any(map(is_known, report.results)):
        entered = any(one.events for one in report.results)
        return ["Of no policy it is known how late it was." if entered else "No events entered: nothing to compare."]
    rivals = [one for one in report.rivals if is_known(one)]
    if not rivals:
        return [_only_oracle(report)]
    if not meets(rivals[0]):
        return _nobody(report, rivals[0])
    return [*_winner(report, rivals[0]), *(_next(rivals[0], rivals[1]) if len(rivals) > 1 else [])]


def _winner(report: ArenaReport, best: SimulationResult) -> list[object]:
    if len(report.rivals) == 1:
        lead = f" meets the target ({_target(report)}): "
    else:
        lead = f" is the cheapest policy that meets the target ({_target(report)}): "
    return [_name(best), lead, f"{_late(best)}. It takes {_cost(report, best)}."]


def _next(best: SimulationResult, second: SimulationResult) -> list[object]:
    cost = f"{count(round(second.replica_seconds))} replica-seconds, {compared(_ratio(second, best), best.policy)}"
    if meets(second):
        return [" Next is ", _name(second), f", which meets it too: it takes {cost}."]
    return [" Next is ", _name(second), f", which misses it: {_late(second)}. It takes {cost}."]


def _nobody(report: ArenaReport, nearest: SimulationResult) -> list[object]:
    oracle = report.oracle
    if oracle is not None and meets(oracle):
        lead = f"Only the oracle, which knows the next interval, meets the target ({_target(report)})."
    else:
        lead = f"No policy meets the target ({_target(report)}){', not even the oracle' if oracle else ''}."
    return [lead, " ", _name(nearest), f" comes nearest: {_late(nearest)}. It takes {_cost(report, nearest)}."]


def _only_oracle(report: ArenaReport) -> str:
    oracle = report.oracle
    met = oracle is not None and meets(oracle)
    return f"Of the oracle alone there are results: it {'meets' if met else 'misses'} the target ({_target(report)})."


def _cost(report: ArenaReport, result: SimulationResult) -> str:
    peak = next((one for one in report.results if one.policy == PEAK and not is_oracle(one)), None)
    beside = [compared(finite(result.oracle_ratio), "the oracle")]
    if peak is not None and peak is not result:
        beside.append(compared(_ratio(result, peak), PEAK))
    words = " and ".join(filter(None, beside))
    return f"{count(round(result.replica_seconds))} replica-seconds" + (f", {words}" if words else "")


def _ratio(one: SimulationResult, other: SimulationResult) -> float | None:
    cost, base = finite(one.replica_seconds), finite(other.replica_seconds)
    return cost / base if cost is not None and base else None


def _late(result: SimulationResult) -> str:
    return (
        f"{late_share(result.late_ratio)} of its events are late" if result.late_ratio else "none of its events is late"
    )


def _target(report: ArenaReport) -> str:
    return f"{100 * ON_TIME:g} % of events within {report.scenario.contest.target_s:g} s"


def _name(result: SimulationResult) -> Markup:
    return element("b", result.policy)
