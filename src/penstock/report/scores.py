"""How a run's decisions turned out, for its page: over time, and by policy."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from penstock.metrics.rows import ScoreRow
from penstock.metrics.scores import DECIDES
from penstock.report import draw
from penstock.report.draw import BLUE, GREEN, GREY, PURPLE, VERMILLION
from penstock.report.run import RunReport, rows_frame


def scores_of(report: RunReport) -> pd.DataFrame:
    """The scores of what was decided, by the interval that it was for."""
    found = rows_frame(ScoreRow, [row for row in report.scores if row.role == DECIDES])
    return found.assign(number=found.number + 1).set_index("number").reindex(report.over.index)


@draw.plot
def scores_plot(report: RunReport) -> Figure:
    """Replicas beyond and below what came needed, late events by decisions, and how far off the forecast was."""
    figure, (replicas, late, errors) = draw.rows([1.8, 1.5, 1.8], 0.6)
    over, scores = report.over, scores_of(report)
    spare, missing = scores.too_many.astype(float), scores.too_few.astype(float)
    draw.steps(replicas, spare, over, fill=0.12, color=BLUE, label="too many")
    draw.steps(replicas, missing, over, fill=0.2, color=VERMILLION, label="too few")
    replicas.set_title("Replicas beside what came")
    draw.count_axis(replicas, spare.dropna(), missing.dropna())
    _draw_late(late, scores, over)
    for name, colour, label in (("naive_error", GREY, "last rate"), ("forecast_error", PURPLE, "forecast")):
        values = 100 * scores[name].astype(float).set_axis(over.end_s)
        if values.notna().any():
            draw.line(errors, values, color=colour, linewidth=1.4, label=label)
    errors.set_title("Off by")
    errors.set_ylabel("% of what came")
    errors.set_ylim(bottom=0)
    draw.legend(replicas)
    draw.legend(errors)
    draw.time_axis(errors, over.end_s.max())
    return figure


def _draw_late(axes: Axes, scores: pd.DataFrame, over: pd.DataFrame) -> None:
    """Late events that decisions avoided and caused, beside changing nothing, as a fluid has them."""
    avoided = scores.nothing_late.astype(float) - scores.late.astype(float)
    fewer, more = avoided.clip(lower=0.0), (-avoided).clip(lower=0.0)
    draw.steps(axes, fewer, over, fill=0.12, color=GREEN, label="avoided")
    draw.steps(axes, more, over, fill=0.2, color=VERMILLION, label="caused")
    axes.set_title("Late events by what was decided, beside changing nothing")
    draw.count_axis(axes, fewer.dropna(), more.dropna())
    draw.legend(axes)


def by_policy(report: RunReport) -> pd.DataFrame:
    """What scores come to: by role and policy, means over time of replicas, and shares of all events."""
    found = rows_frame(ScoreRow, report.scores)
    numbers = ["too_many", "too_few", "late", "nothing_late", "forecast_error", "naive_error", "seconds", "events"]
    found = found.astype(dict.fromkeys(numbers, float))
    found[["too_many", "too_few"]] = found[["too_many", "too_few"]].mul(found.seconds, axis=0)
    groups = found.groupby(["role", "policy"])
    sums = groups[["seconds", "events", "too_many", "too_few", "late", "nothing_late"]].sum(min_count=1)
    return pd.DataFrame(
        {
            "intervals": groups.size(),
            "too_many": sums.too_many / sums.seconds,
            "too_few": sums.too_few / sums.seconds,
            "late": sums.late / sums.events,
            "nothing_late": sums.nothing_late / sums.events,
            "forecast_error": groups.forecast_error.mean(),
            "naive_error": groups.naive_error.mean(),
        }
    )
