"""Who wins the arena: the order of the policies, and a few sentences that the terminal and the page both show."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.report.text import decimal, finite, late_share, percent, whole
from penstock.simulator.arena import ORACLE, ranked
from penstock.simulator.result import ON_TIME, SimulationResult

PEAK = "static:peak"


def ranking(results: Sequence[SimulationResult]) -> list[SimulationResult]:
    """The arena's order; those of which lateness or cost is not known come last."""
    known = [one for one in results if is_known(one)]
    return [*ranked(known), *(one for one in results if not is_known(one))]


def is_known(result: SimulationResult) -> bool:
    """Whether the result can be ranked at all: without events nothing is late, and nothing on time."""
    return finite(result.late_ratio) is not None and finite(result.replica_seconds) is not None


def meets(result: SimulationResult) -> bool:
    """Whether it is known to meet the target."""
    return is_known(result) and result.meets_target


def is_oracle(result: SimulationResult) -> bool:
    """Whether this is the oracle, which nobody can run."""
    return result.policy == ORACLE


def verdict(results: Sequence[SimulationResult]) -> list[str]:
    """Who wins, or that nobody does and who comes nearest, in pieces: every second one is a policy's name."""
    if not results:
        return ["No policies were compared."]
    known = [one for one in ranking(results) if is_known(one)]
    if not known:
        entered = any(one.events for one in results)
        return ["Of no policy it is known how late it was." if entered else "No events entered: nothing to compare."]
    target = f"the target ({100 * ON_TIME:g} % of events within {results[0].target_ms / 1000:g} s)"
    rivals, oracle = [one for one in known if not is_oracle(one)], next(filter(is_oracle, known), None)
    if not rivals:
        return [f"Of the oracle alone there are results: it {'meets' if meets(known[0]) else 'misses'} {target}."]
    best, *others = rivals
    cost = f"{_late(best)}. It takes {_cost(best, results)}."
    if not meets(best):
        return [f"{_nobody(oracle, target)} ", best.policy, f" comes nearest: {cost}"]
    alone = sum(not is_oracle(one) for one in results) == 1
    lead = f" meets {target}" if alone else f" is the cheapest policy that meets {target}"
    if not others:
        return ["", best.policy, f"{lead}: {cost}"]
    return ["", best.policy, f"{lead}: {cost} Next is ", others[0].policy, f", which {_second(others[0], best)}"]


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


def _nobody(oracle: SimulationResult | None, target: str) -> str:
    if oracle is not None and meets(oracle):
        return f"Only the oracle, which knows the next interval, meets {target}."
    return f"No policy meets {target}{', not even the oracle' if oracle else ''}."


def _second(second: SimulationResult, best: SimulationResult) -> str:
    cost = f"{whole(second.replica_seconds)} replica-seconds, {compared(_ratio(second, best), best.policy)}"
    return f"meets it too: it takes {cost}." if meets(second) else f"misses it: {_late(second)}. It takes {cost}."


def _cost(result: SimulationResult, results: Sequence[SimulationResult]) -> str:
    peak = next((one for one in results if one.policy == PEAK and one is not result), None)
    beside = [compared(finite(result.oracle_ratio), "the oracle")]
    beside.append(compared(_ratio(result, peak), PEAK) if peak else "")
    words = " and ".join(filter(None, beside))
    return f"{whole(result.replica_seconds)} replica-seconds" + (f", {words}" if words else "")


def _ratio(one: SimulationResult, other: SimulationResult) -> float | None:
    cost, base = finite(one.replica_seconds), finite(other.replica_seconds)
    return cost / base if cost is not None and base else None


def _late(result: SimulationResult) -> str:
    return (
        f"{late_share(result.late_ratio)} of its events are late" if result.late_ratio else "none of its events is late"
    )
