"""What came out: one page for people, one value for programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.experiment import WAITED_FOR, Experiment
from experiments.figures import METRICS, Measured
from experiments.inputs import origin_of
from experiments.runner import Job, Outcome, Played, outcomes_of
from experiments.verdict import Verdict, differences, verdicts
from penstock.report.page import render


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


def page(parts: Sequence[Part], wall_s: float) -> str:
    """The page: directions first, then every table with the paper's figures beside ours."""
    directions = [one for part in parts for one in part.directions]
    missing = {one.missing.removesuffix(WAITED_FOR) for part in parts for one in part.outcomes if one.missing}
    return render(
        "page.html",
        Path(__file__).parent,
        parts=parts,
        directions=directions,
        held=sum(one.holds is True for one in directions),
        open=sum(one.holds is None for one in directions),
        missing=sorted(missing),
        wall_s=wall_s,
        metrics=METRICS,
        heading=heading,
    )


def heading(name: str) -> str:
    """The place in the paper.

    >>> heading("table-iv"), heading("figure-12"), heading("figures-4-5-periodic")
    ('Table IV', 'Figure 12', 'Figures 4, 5, periodic')
    """
    kind, _, number = name.partition("-")
    return f"{kind.capitalize()} {number.upper() if kind == 'table' else number.replace('-', ', ')}"


def as_json(parts: Sequence[Part], wall_s: float) -> dict[str, Any]:
    """For programs: what is no number is null."""
    return {
        "wall_s": round(wall_s, 1),
        "directions": [asdict(one) for part in parts for one in part.directions],
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
        "differs": [asdict(one) for one in part.differences],
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


def _plain(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None
