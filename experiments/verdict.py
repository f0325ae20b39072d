"""Whether what the papers' figures say holds for ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiments.experiment import FIGURE, Claim, Direction, Experiment, near
from experiments.figures import METRICS, Measured
from experiments.runner import Outcome
from penstock.report.text import ABSENT

NOT_LOOKED_INTO = "why was not looked into yet"
BARELY = "as in the paper, but by less than the seeds differ"


@dataclass(frozen=True)
class Verdict:
    """A direction with what became of it; `holds` is None where a case is missing."""

    experiment: str
    name: str
    holds: bool | None
    figures: tuple[str, ...]
    sentence: str


def verdicts(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[Verdict]:
    """All directions of an experiment."""
    return [_verdict(experiment, direction, outcomes) for direction in experiment.directions]


def differences(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[Verdict]:
    """Where our figures go the other way than the paper's, by more than the seeds differ and not by next to nothing."""
    found = []
    for claim in experiment.implied():
        gap = _gap(claim, outcomes)
        if gap is None or not gap.mean < -gap.spread or _near(claim, outcomes):
            continue
        where = claim.less if claim.more == experiment.cases[0].label else claim.more
        why = experiment.reasons.get(f"{claim.metric} {where}", experiment.reasons.get(claim.metric, NOT_LOOKED_INTO))
        found.append(Verdict(experiment.name, str(claim), False, _figures([claim], outcomes), told(why, outcomes)))
    return found


def _verdict(experiment: Experiment, direction: Direction, outcomes: Sequence[Outcome]) -> Verdict:
    gaps = [_gap(claim, outcomes) for claim in direction.claims]
    known = [gap for gap in gaps if gap is not None]
    holds = all(gap.mean > 0 for gap in known) if len(known) == len(gaps) else None
    if holds is None:
        sentence = "; ".join(dict.fromkeys(_missing(direction.claims, outcomes)))
    elif not holds:
        sentence = told(direction.why, outcomes) or NOT_LOOKED_INTO
    elif any(gap.mean <= gap.spread for gap in known):
        sentence = f"{BARELY}: {told(direction.why, outcomes)}" if direction.why else BARELY
    else:
        sentence = "as in the paper"
    return Verdict(experiment.name, direction.name, holds, _figures(direction.claims, outcomes), sentence)


def told(why: str, outcomes: Sequence[Outcome]) -> str:
    """A finding with the figures of the run, where `[metric: label]` stands for one."""
    known = {one.case.label: one.figures for one in outcomes}

    def figure(found: re.Match[str]) -> str:
        measured = known.get(found[2], {}).get(found[1])
        return METRICS[found[1]].shown(measured.mean) if measured else ABSENT

    return FIGURE.sub(figure, why)


def _gap(claim: Claim, outcomes: Sequence[Outcome]) -> Measured | None:
    """By how much the claim holds, seed by seed: the same seed has the same input."""
    less, more = _sides(claim, outcomes)
    if less is None or more is None:
        return None
    return Measured(tuple(greater - lesser for lesser, greater in zip(less.values, more.values, strict=True)))


def _near(claim: Claim, outcomes: Sequence[Outcome]) -> bool:
    less, more = _sides(claim, outcomes)
    return less is not None and more is not None and near(less.mean, more.mean)


def _sides(claim: Claim, outcomes: Sequence[Outcome]) -> tuple[Measured | None, Measured | None]:
    known = {one.case.label: one.figures.get(claim.metric) for one in outcomes}
    return known[claim.less], known[claim.more]


def _figures(claims: Iterable[Claim], outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """The means that claims are about, each once: `latency, ms: td 30 s 887; td 60 s 701`."""
    named: dict[str, dict[str, str]] = {}
    for claim in claims:
        metric = METRICS[claim.metric]
        sides = zip((claim.less, claim.more), _sides(claim, outcomes), strict=True)
        shown = {label: metric.shown(one.mean) if one else ABSENT for label, one in sides}
        named.setdefault(metric.title, {}).update(shown)
    return tuple(
        f"{title}: {'; '.join(f'{label} {value}' for label, value in shown.items())}" for title, shown in named.items()
    )


def _missing(claims: Iterable[Claim], outcomes: Sequence[Outcome]) -> list[str]:
    named = {label for claim in claims for label in (claim.less, claim.more)}
    return [one.missing for one in outcomes if one.missing and one.case.label in named]
