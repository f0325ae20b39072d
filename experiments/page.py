"""The page: directions first, then every table with the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.experiment import WAITED_FOR
from experiments.figures import METRICS
from experiments.report import Part
from experiments.runner import Outcome
from experiments.verdict import Verdict
from penstock.report.markup import Markup, card, duration, element, section, several, table
from penstock.report.page import page as html_page

HOW = (
    "Every event is simulated; arrivals are random around the rates of the input (Poisson). Figures are means over "
    "seeds, ± the standard deviation: where the input is a real trace, seeds change the arrivals and the values of "
    "events only. Processed events and latency are taken when the input ends. The papers ran on other machines, with "
    "other traces: compare directions, not digits."
)
MARKS = {True: ("holds", "out"), False: ("does not hold", "in"), None: ("not there yet", "")}


def page(parts: Sequence[Part], wall_s: float) -> str:
    """The whole page as HTML."""
    title = "The papers' evaluation in the simulator – Penstock"
    return html_page(title, _header(), _cards(parts, wall_s), _directions(parts), *map(_part, parts))


def _header() -> Markup:
    return element(
        "header",
        element("p", "Penstock experiments", class_="kind"),
        element("h1", "The papers' evaluation ", element("span", "in the simulator")),
        element("p", HOW, class_="note"),
    )


def _cards(parts: Sequence[Part], wall_s: float) -> Markup:
    all_ = [one for part in parts for one in part.directions]
    held, open_ = sum(one.holds is True for one in all_), sum(one.holds is None for one in all_)
    missing = {one.missing.removesuffix(WAITED_FOR) for part in parts for one in part.outcomes if one.missing}
    return element(
        "dl",
        card("Directions that hold", f"{held} of {len(all_) - open_}", f"{open_} more wait for what is not there yet"),
        card("Experiments", str(len(parts)), several(sum(len(part.outcomes) for part in parts), "case")),
        card("Not there yet", str(len(missing)), ", ".join(sorted(missing))),
        card("Duration", duration(wall_s)),
        class_="cards",
    )


def _directions(parts: Sequence[Part]) -> Markup:
    rows = [
        (one.experiment, one.name, _mark(one), element("span", *_lines(one.figures)), one.sentence)
        for part in parts
        for one in part.directions
    ]
    return section("Directions", table(("experiment", "what the paper says", "here", "figures", "why"), rows))


def _part(part: Part) -> Markup:
    one = part.experiment
    notes = [one.paper, f"{several(part.seeds, 'seed')}; input {_inputs(part)}.", one.note]
    return section(
        f"{_heading(one.name)}: {one.title}",
        *(element("p", note, class_="note") for note in notes if note),
        table(_head(part), [_row(part, outcome) for outcome in part.outcomes], numbers=range(1, 1 + len(one.metrics))),
        *_differences(part),
    )


def _heading(name: str) -> str:
    """The place in the paper.

    >>> _heading("table-iv"), _heading("figure-12"), _heading("figures-4-5-periodic")
    ('Table IV', 'Figure 12', 'Figures 4, 5, periodic')
    """
    kind, _, number = name.partition("-")
    return f"{kind.capitalize()} {number.upper() if kind == 'table' else number.replace('-', ', ')}"


def _inputs(part: Part) -> str:
    return ", ".join(f"{name} ({origin})" for name, origin in part.inputs.items())


def _head(part: Part) -> list[str]:
    return ["", *(METRICS[name].title for name in part.experiment.metrics)]


def _row(part: Part, outcome: Outcome) -> list[object]:
    label = element("b", outcome.case.label)
    if outcome.missing:
        label = Markup(label + element("span", f" – {outcome.missing}", class_="note"))
    return [label, *(_cell(outcome, name) for name in part.experiment.metrics)]


def _cell(outcome: Outcome, name: str) -> Markup:
    """Our mean and spread, and the paper's figure below them; where there is one."""
    metric, figure, paper = METRICS[name], outcome.figures.get(name), outcome.case.paper.get(name)
    ours = [f"{metric.shown(figure.mean)} ± {metric.shown(figure.spread)}"] if figure else []
    theirs = [element("span", f"paper {metric.shown(paper)}", class_="note")] if paper is not None else []
    return element("span", *ours, *([Markup("<br>")] if ours and theirs else []), *theirs)


def _differences(part: Part) -> list[Markup]:
    if not part.differences:
        return []
    rows = [(one.name, one.figures[0], one.sentence) for one in part.differences]
    told = element("p", "Where our figures go the other way than the paper's:", class_="note")
    return [told, table(("the paper", "ours", "why"), rows)]


def _mark(one: Verdict) -> Markup:
    words, kind = MARKS[one.holds]
    return element("span", words, class_=kind)


def _lines(figures: Sequence[str]) -> list[Markup]:
    return [element("span", figure, Markup("<br>")) for figure in figures]
