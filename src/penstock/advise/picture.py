"""The load of a log, and executors over time: as they were, and as they would have been."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from penstock.advise.advice import Advice
from penstock.report import draw
from penstock.report.draw import BLUE, GREEN, GREY
from penstock.report.text import percent

POINTS = 300


@draw.plot
def picture(advice: Advice) -> Figure:
    """Rows a second above, executors below."""
    figure, (load, below) = draw.rows([1.6, 1.9], 1.0)
    end_s = advice.load.seconds
    edges_s = np.linspace(0.0, end_s, POINTS + 1)
    over = pd.DataFrame({"start_s": edges_s[:-1], "end_s": edges_s[1:]})
    came = sum(np.array([one.came(at_s) for at_s in edges_s]) for one in advice.load.queries)
    rates = pd.Series(np.diff(came) / np.diff(edges_s))
    draw.steps(load, rates, over, fill=0.2, color=BLUE, linewidth=1.1)
    draw.count_axis(load, rates)
    draw.panel(load, "rows a second", advice.load.name)
    both = ((advice.load.was, GREY), (advice.chosen, GREEN))
    for outcome, color in both:
        values = pd.Series([_at(outcome.executors, at_s) for at_s in edges_s[:-1]])
        label = f"{outcome.policy}: {percent(outcome.late_ratio)} late"
        draw.steps(below, values, over, color=color, label=label)
    draw.count_axis(below, *([number for _, number in outcome.executors] for outcome, _ in both))
    draw.panel(below, "executors")
    draw.legend(below)
    draw.time_axis(below, end_s)
    return figure


def _at(executors: tuple[tuple[float, int], ...], time_s: float) -> int:
    """How many there were at a time."""
    return next((number for since_s, number in reversed(executors) if since_s <= time_s), 0)
