"""Writes the report of a backtest: one HTML file with the ranking and a plot of every series."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock.forecast.evaluation.contest import SeriesTest, Terms
from penstock.forecast.evaluation.series import rows_per_day
from penstock.report import markup
from penstock.report.backtest_plots import best_models, forecasts_plot
from penstock.report.backtest_terminal import HEAD, cells, figure, mean_errors, over
from penstock.report.markup import ABSENT, Markup, element, image, several
from penstock.report.page import chips, page, write_page

_COLUMNS = (
    HEAD[0],
    "sMAPE",
    "to the best",
    "to last value",
    "RMSE",
    "MAE",
    "CPU to fit, s",
    "CPU per forecast, ms",
)


def write_backtest_report(path: Path, tests: Sequence[SeriesTest], terms: Terms) -> None:
    """Write the report to a file; folders above it are made."""
    write_page(path, backtest_page(tests, terms))


def backtest_page(tests: Sequence[SeriesTest], terms: Terms) -> str:
    """The report as HTML."""
    names = tests[0].series.name if len(tests) == 1 else several(len(tests), "series").removesuffix("s")
    return page(
        f"{names}: forecasters compared – Penstock",
        _header(names, terms),
        *([_means(tests)] if len(tests) > 1 else []),
        *(_series(test, terms) for test in tests),
        styles=("style.css", "arena.css"),
    )


def _header(names: str, terms: Terms) -> Markup:
    rule = terms.rule
    facts = {
        "rows ahead": rule.horizon,
        "overlapping forecasts": "their mean" if rule.overlap else None,
        "seed": terms.seed,
    }
    return element(
        "header",
        element("p", "Penstock backtest", class_="kind"),
        element("h1", names),
        chips(facts),
    )


def _means(tests: Sequence[SeriesTest]) -> Markup:
    means = mean_errors(tests)
    best = next(iter(means.values()), float("nan"))
    last = means.get("last_value", float("nan"))
    rows = [
        (model, f"{figure(error)} %", figure(over(error, best)), figure(over(error, last)))
        for model, error in means.items()
    ]
    return markup.section("Mean over all series", _table(_COLUMNS[:4], rows))


def _series(test: SeriesTest, terms: Terms) -> Markup:
    best = ", ".join(trial.score.model for trial in best_models(test))
    rows = [(trial.score.model, *_percent(cells(test, trial))) for trial in test.ranked]
    rows += [(model, *[ABSENT] * (len(_COLUMNS) - 1)) for model in test.failed]
    day = terms.day or rows_per_day(test.series.step_s)
    words = f"{test.split}; a day has {day} rows of {test.series.step_s:g} s."
    pictures = [
        image(
            forecasts_plot(test),
            f"rates of {test.series.name} and forecasts of {best}",
            f"The end of the test part. Grey: the rate; over it the forecasts of the {len(best_models(test))} best.",
        )
        for _ in test.ranked[:1]
    ]
    return markup.section(
        test.series.name,
        element("p", words, class_="note"),
        _table(_COLUMNS, rows),
        *(element("p", f"{model} has no figures: {why}", class_="note") for model, why in test.failed.items()),
        *(element("div", one, style="margin-top: 14px") for one in pictures),
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Markup:
    return element("div", markup.table(head, rows, numbers=range(1, len(head))), class_="ranking")


def _percent(figures: Sequence[str]) -> list[str]:
    return [f"{figures[0]} %", *figures[1:]]
