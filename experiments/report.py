"""What came out, as one value for the JSON file and the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.experiment import Experiment
from experiments.figures import Measured
from experiments.inputs import origin_of
from experiments.runner import Job, Outcome, Played, outcomes_of
from experiments.verdict import Verdict, differences, verdicts


@dataclass(frozen=True)
class Part:
    """One experiment with its outcomes, and what became of the paper's directions."""

    experiment: Experiment
    seeds: int
    inputs: Mapping[str, str]  # where each comes from
    outcomes: Sequence[Outcome]
    directions: Sequence[Verdict]
    differences: Sequence[Verdict]


def parts_of(
    experiments: Sequence[Experiment], played: Mapping[Job, Played], seeds: int | None, data: Path | None
) -> list[Part]:
    """Everything about these experiments."""
    parts = []
    for one in experiments:
        outcomes = outcomes_of(one, played, seeds)
        names = dict.fromkeys(case.input for case in one.cases)
        parts.append(
            Part(
                one,
                seeds or one.seeds,
                {name: origin_of(name, data) for name in names},
                outcomes,
                verdicts(one, outcomes),
                differences(one, outcomes),
            )
        )
    return parts


def as_json(parts: Sequence[Part], wall_s: float) -> dict[str, Any]:
    """For programs: what is no number is null."""
    return {
        "wall_s": round(wall_s, 1),
        "directions": [_verdict(one) for part in parts for one in part.directions],
        "experiments": [_part(part) for part in parts],
    }


def _part(part: Part) -> dict[str, Any]:
    one = part.experiment
    return {
        "name": one.name,
        "title": one.title,
        "paper": one.paper,
        "note": one.note,
        "seeds": part.seeds,
        "inputs": dict(part.inputs),
        "cases": [_case(outcome) for outcome in part.outcomes],
        "differs": [_verdict(verdict) for verdict in part.differences],
    }


def _case(outcome: Outcome) -> dict[str, Any]:
    case = outcome.case
    return {
        "label": case.label,
        "policy": case.policy,
        "scenario": case.settings(),
        "missing": outcome.missing,
        "paper": dict(case.paper),
        "ours": {name: _measured(figure) for name, figure in outcome.figures.items()},
    }


def _measured(figure: Measured) -> dict[str, Any]:
    values = [_plain(value) for value in figure.values]
    return {"mean": _plain(figure.mean), "spread": _plain(figure.spread), "by_seed": values}


def _verdict(one: Verdict) -> dict[str, Any]:
    return {
        "experiment": one.experiment,
        "name": one.name,
        "holds": one.holds,
        "figures": list(one.figures),
        "sentence": one.sentence,
    }


def _plain(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None
