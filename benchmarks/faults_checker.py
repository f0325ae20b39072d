"""Whether what the sinks hold can come from one serial history: a pure function of what went in and what came out.

It knows nothing of the engine. Every event that went in must be accounted for exactly once: as a result, as a dead
letter, or as dropped by rule, which leaves nothing. Events of one name are counted in the order of their numbers, so
that a plain recount tells which count each result must have. A domain is counted over names whose events may overtake
each other: its counts must be 1, 2, …, n, each once. The last counts must be those of the recount.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

EXAMPLES = 5  # of each fault

RESULT, DEAD_LETTER, DROPPED = "result", "dead_letter", "dropped"  # what becomes of an event
DEAD, DROP = "dead", "drop"  # a poisoned event: refused where names are counted; where domains are
FATES = {"": RESULT, DEAD: DEAD_LETTER, DROP: DROPPED}


class Wanted(NamedTuple):
    """An event that went in, and what is to become of it; a dead letter counts nowhere, a dropped one by its name."""

    number: int
    name: str
    domain: str
    fate: str = RESULT


class Result(NamedTuple):
    """An event that came out, the how many-th of its name and of its domain it is said to be."""

    number: int
    name: str
    domain: str
    of_name: int
    of_domain: int


@dataclass(frozen=True)
class Verdict:
    """How many events, and how many of each fault; `examples` shows a few."""

    events: int
    delivered: int
    dead_lettered: int
    dropped: int
    lost: int  # are to be somewhere, and are not
    repeated: int  # are there more than once
    uninvited: int  # are where they are not to be
    gaps: int  # counts that a key has not
    twice: int  # counts that a key has more than once
    out_of_order: int  # results of a name that were counted before an earlier one
    wrong_final: int  # keys whose last count is not that of a recount
    examples: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def one_history(self) -> bool:
        """Whether nothing is wrong."""
        return not any(getattr(self, name) for name in FAULTS)


FAULTS = ("lost", "repeated", "uninvited", "gaps", "twice", "out_of_order", "wrong_final")


def judge(wanted: Sequence[Wanted], results: Iterable[Result], letters: Iterable[int]) -> Verdict:
    """Compare what came out with what went in; `letters` are the numbers of the dead letters.

    >>> wanted = [Wanted(0, "a", "x"), Wanted(1, "a", "x"), Wanted(2, "b", "x", DEAD_LETTER)]
    >>> judge(wanted, [Result(0, "a", "x", 1, 2), Result(1, "a", "x", 2, 1)], [2]).one_history
    True
    >>> judge(wanted, [Result(0, "a", "x", 1, 1)], [2]).examples["lost"]
    ['event 1: no result']
    """
    came, faults = list(results), _Faults()
    shown = [one.number for one in came]
    _account(wanted, RESULT, shown, faults)
    _account(wanted, DEAD_LETTER, letters := list(letters), faults)
    _count(wanted, came, faults)
    _order(came, faults)
    fates = Counter(one.fate for one in wanted)
    return Verdict(
        events=len(wanted),
        delivered=len(shown),
        dead_lettered=len(letters),
        dropped=fates[DROPPED],
        **{name: faults.counts[name] for name in FAULTS},
        examples=dict(faults.examples),
    )


class _Faults:
    """How many of each, and the first few."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.examples: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, kind: str, what: str, times: int = 1) -> None:
        self.counts[kind] += times
        if len(self.examples[kind]) < EXAMPLES:
            self.examples[kind].append(what)


def _account(wanted: Sequence[Wanted], fate: str, numbers: Sequence[int], faults: _Faults) -> None:
    """Every event of that fate once, and no other."""
    seen, what = Counter(numbers), fate.replace("_", " ")
    due = {one.number for one in wanted if one.fate == fate}
    for number in sorted(due - seen.keys()):
        faults.add("lost", f"event {number}: no {what}")
    for number, times in sorted(seen.items()):
        if times > 1:
            faults.add("repeated", f"event {number}: {times} times a {what}", times - 1)
        if number not in due:
            faults.add("uninvited", f"event {number}: is a {what}")


def recount(wanted: Iterable[Wanted]) -> dict[str, list[int]]:
    """By key, `name …` or `domain …`: the counts that results must have, as a plain loop over the events gives them."""
    names: Counter[str] = Counter()
    domains: Counter[str] = Counter()
    counts: defaultdict[str, list[int]] = defaultdict(list)
    for one in sorted(wanted):
        if one.fate != DEAD_LETTER:
            names[one.name] += 1
        if one.fate == RESULT:
            domains[one.domain] += 1
            counts[f"name {one.name}"].append(names[one.name])
            counts[f"domain {one.domain}"].append(domains[one.domain])
    return dict(counts)


def _count(wanted: Sequence[Wanted], came: Sequence[Result], faults: _Faults) -> None:
    """The counts of every key, and the last of them."""
    due, seen = recount(wanted), defaultdict[str, Counter[int]](Counter)
    for one in came:
        seen[f"name {one.name}"][one.of_name] += 1
        seen[f"domain {one.domain}"][one.of_domain] += 1
    for key in sorted(due.keys() | seen.keys()):
        mine, has = due.get(key, []), seen.get(key, Counter())
        for number in sorted(set(mine) - has.keys()):
            faults.add("gaps", f"{key}: {number} is missing")
        for number, times in sorted(has.items()):
            if times > 1:
                faults.add("twice", f"{key}: {times} times {number}", times - 1)
        if max(has, default=0) != max(mine, default=0):
            faults.add("wrong_final", f"{key}: {max(has, default=0)} instead of {max(mine, default=0)}")


def _order(came: Sequence[Result], faults: _Faults) -> None:
    """In the order in which a name was counted, numbers rise; one that comes again is not out of order."""
    by_name: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for one in came:
        by_name[one.name].append((one.of_name, one.number))
    for name, pairs in sorted(by_name.items()):
        pairs.sort()
        for (_, before), (count, number) in pairwise(pairs):
            if number < before:
                faults.add("out_of_order", f"name {name}: event {number} is number {count}, after event {before}")
