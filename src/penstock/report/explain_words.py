"""An explanation in words, for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator

from penstock.report.explain import DECIDED, NOTHING, RUNNER_UP, Expected, Explained, Explanation
from penstock.report.text import count, figure, percent, several
from penstock.simulator.what_if import Outcome


def lines(explanation: Explanation) -> list[str]:
    """What was seen, expected and decided, and what else it might have been."""
    return [
        *_seen(explanation),
        *(_expected(one) for one in explanation.expected),
        "",
        *(line for one in explanation.changes or explanation.operators for line in _operator(one)),
        *_what_if(explanation),
    ]


def _seen(one: Explanation) -> Iterator[str]:
    row, length_s = one.interval, max(one.interval.interval_s, 1e-9)
    ended = f"which ended at {figure(row.time_s - one.start_s)} s"
    yield f"{one.run.run}: interval {row.number}, {ended}, under {one.run.policy}"
    entered, left = figure(row.entered / length_s), figure(row.source_output / length_s)
    p99 = "nothing left" if row.latency_p99_ms is None else f"p99 {figure(row.latency_p99_ms)} ms"
    there = f"backlog {count(row.backlog)}; {several(row.replicas, 'replica')}"
    yield f"seen: {entered}/s entered, {left}/s left; {there}; {p99}"
    if one.late is not None:
        promised = f"promised: {percent(one.promise.late)} over {figure(one.promise.target_ms)} ms"
        yield f"late: {percent(one.late)} of the events that left; {promised}"
    if row.note:
        yield f"noted: {row.note}"


def _expected(one: Expected) -> str:
    band = f", from {figure(one.low)} to {figure(one.high)} by earlier forecasts" if one.low < one.high else ""
    told = f"expected of {one.source} next: {figure(one.rate)}/s by {one.forecaster}{band}"
    if one.came is None:
        return told
    if one.error is None or one.naive_error is None:
        return f"{told}; nothing came"
    return (
        f"{told}; {figure(one.came)}/s came: off by {percent(one.error)}, the rate before by {percent(one.naive_error)}"
    )


def _operator(one: Explained) -> Iterator[str]:
    seen, decision = one.seen, one.decision
    change = f"{decision.before} → {decision.after}" if one.changed else f"stays at {decision.before}"
    yield f"{decision.operator} {change}: {one.wanted}"
    time = "unknown" if seen.execution_time_s is None else f"{figure(1000 * seen.execution_time_s)} ms"
    work = f"received {count(seen.received)}, processed {count(seen.processed)}, backlog {count(seen.backlog)}"
    yield f"  seen: {work}, busy {percent(seen.busy_share)}, {time} an event, pool {seen.pool}"
    yield f"  binding: {one.limits[-1] if one.limits else 'nothing; it is what the policy wanted'}"
    if decision.failure:
        yield f"  not carried out: {decision.failure}"
    if one.needed is not None:
        yield f"  as it turned out: {_score(decision.after - one.needed)}; what came needs {one.needed} of {seen.pool}"
    if seen.incomplete:
        yield f"  its numbers were not to be trusted: {seen.incomplete}"


def _score(off: int) -> str:
    if not off:
        return "just right"
    return f"{several(abs(off), 'replica')} too {'many' if off > 0 else 'few'}"


def _what_if(one: Explanation) -> Iterator[str]:
    if not one.outcomes:
        return
    what = "what came" if one.known else "what was expected"
    yield ""
    how = " in batches, with slots for replicas" if one.in_batches else ""
    yield f"played on for {figure(one.ahead_s)} s{how}, with {what}:"
    decided = one.outcomes[DECIDED]
    for name, outcome in one.outcomes.items():
        told = f"{name}, {one.runner_up[0]} at {one.runner_up[1]}" if name == RUNNER_UP and one.runner_up else name
        yield f"  {told}: {_outcome(outcome)}{'' if name == DECIDED else _beside(outcome, decided)}"
    if NOTHING in one.outcomes:
        yield f"  so the change {_saved(one.outcomes[NOTHING], decided)}"


def _outcome(one: Outcome) -> str:
    cost = f"{figure(one.replica_seconds)} replica-seconds"
    return f"{count(one.late)} of {count(one.events)} events late, {cost}, backlog {count(one.backlog)} at the end"


def _beside(one: Outcome, decided: Outcome) -> str:
    late, cost = one.late - decided.late, one.replica_seconds - decided.replica_seconds
    return f" ({late:+,d} late, {cost:+,.1f} replica-seconds)".replace("-", "−").replace("replica−", "replica-")


def _saved(nothing: Outcome, decided: Outcome) -> str:
    late, cost = nothing.late - decided.late, decided.replica_seconds - nothing.replica_seconds
    avoided = f"{'avoids' if late >= 0 else 'causes'} {several(abs(late), 'late event')}"
    if math.isclose(cost, 0.0, abs_tol=0.05):
        return f"{avoided} at no cost"
    return f"{avoided} and {'costs' if cost > 0 else 'saves'} {figure(abs(cost))} replica-seconds"
