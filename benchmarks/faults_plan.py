"""What is to happen in a round of the fault campaign, drawn by a seed: pure functions of values."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from faults_checker import DEAD, DROP, FATES, Wanted

MOVES = ("replicas", "layout")  # not faults: what faults fall into
STOPPED_S = (5.0, 30.0)
LENGTHS_S: Mapping[str, tuple[float, float]] = {  # how long a fault lasts; those not named are over at once
    "stop": STOPPED_S,
    "disk_full": (3.0, 15.0),
    "store_locked": (3.0, 20.0),
    "channel_cut": (1.0, 15.0),
    "channel_slow": (3.0, 15.0),
    "channel_rubbish": (1.0, 5.0),
    "clock_forward": STOPPED_S,
    "clock_back": STOPPED_S,
    "kill_broker": (0.5, 8.0),
    "kill_database": (0.5, 8.0),
    "kill_master": (1.0, 8.0),
    "kill_spark_worker": (1.0, 8.0),
}
POISONED = 20  # events in one burst
SETTLE_S = 10.0  # events go on for so long behind the last fault


class Step(NamedTuple):
    """A fault, or a move that faults fall into: when, of which kind, how long, and the seed for what else is drawn."""

    at_s: float
    kind: str
    length_s: float
    seed: int


def planned(
    seed: int, faults: int, kinds: Sequence[str], longest_s: float = STOPPED_S[1], rare: Sequence[str] = ()
) -> list[Step]:
    """So many faults: some two at once, some in the middle of a recovery, half of them in the middle of a move.

    Those that few rounds can have (`rare`) are in every round that can.

    >>> steps = planned(3, 4, ["kill_worker", "stop_worker"])
    >>> sum(step.kind not in MOVES for step in steps), steps == planned(3, 4, ["kill_worker", "stop_worker"])
    (4, True)
    """
    draw, at_s, steps = random.Random(seed), 4.0, list[Step]()
    order = [kind for _ in range(faults // len(kinds) + 1) for kind in draw.sample(kinds, len(kinds))]
    if here := [kind for kind in kinds if kind in rare]:
        order = draw.sample(here, len(here)) + [kind for kind in order if kind not in here] + order
        order = draw.sample(order[:faults], faults)
    for kind in order[:faults]:
        chance = draw.random()
        if steps:  # two at once; the second while the first is being got over; or when all is well again
            at_s += 0.0 if chance < 0.15 else draw.uniform(0.5, 5.0) if chance < 0.5 else draw.uniform(6.0, 14.0)
        if draw.random() < 0.5:
            steps.append(Step(at_s, draw.choice(MOVES), 0.0, draw.randrange(10**6)))
            at_s += draw.uniform(0.0, 1.0) if steps[-1].kind == "replicas" else draw.uniform(0.0, 6.0)
        shortest, longest = LENGTHS_S.get(kind, LENGTHS_S["stop"] if kind.startswith("stop_") else (0.0, 0.0))
        length_s = draw.uniform(min(shortest, longest_s), min(longest, longest_s))
        steps.append(Step(at_s, kind, length_s, draw.randrange(10**6)))
    return steps


def duration_s(steps: Sequence[Step]) -> float:
    """How long events are to flow."""
    return max(step.at_s + step.length_s for step in steps) + SETTLE_S


def payloads(real: Sequence[Mapping[str, str]], steps: Sequence[Step], rate: float) -> list[dict[str, Any]]:
    """The events of a round: real queries in turn, numbered, some of them poisoned where the plan says so."""
    made = []
    for number in range(round(duration_s(steps) * rate)):
        one = real[number % len(real)]
        name = f"{one['client']} {one['query']}"
        made.append({"number": number, "name": name, "domain": domain_of(one["query"]), "poison": ""})
    for step in (step for step in steps if step.kind == "poison"):
        draw, first = random.Random(step.seed), round(step.at_s * rate)
        for event in made[first : first + POISONED]:
            event["poison"] = draw.choice((DEAD, DROP))
    return made


def domain_of(query: str) -> str:
    """The last two labels of a name."""
    return ".".join(query.rsplit(".", 2)[-2:])


def wanted(events: Sequence[Mapping[str, Any]]) -> list[Wanted]:
    """What the checker is to know of them."""
    return [Wanted(one["number"], one["name"], one["domain"], FATES[one["poison"]]) for one in events]
