"""What all plots share: the look, colours, axes over time, lines, steps and legends, and the way to PNG.

Colours are those of Okabe and Ito, "Color Universal Design", 2008, which people with any colour vision can tell apart;
without its yellow, which is hard to see on white.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from itertools import product
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.ticker import MaxNLocator, NullLocator, StrMethodFormatter

from penstock.workload import DAY_S

BLUE, ORANGE, GREEN, PURPLE, VERMILLION, SKY = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9"
INK, GREY, FAINT = "#1f2933", "#7b8794", "#cbd2d9"
POLICIES = (BLUE, ORANGE, GREEN, PURPLE, VERMILLION, INK)
OPERATORS = [  # other dashes when colours start over
    {"color": color, "linestyle": dashes}
    for dashes, color in product(("-", "--", ":", "-."), (BLUE, ORANGE, GREEN, PURPLE, VERMILLION, SKY, INK))
]
DASHED: dict[str, Any] = {"color": ORANGE, "linestyle": (0, (4, 2)), "linewidth": 1.4}

PLAIN = StrMethodFormatter("{x:,.10g}")
STYLE = Path(__file__).parent / "penstock.mplstyle"
WIDTH_IN = 10.4
MOST_POINTS = 600
_LONGEST_NAME = 32
_UNITS = {300.0: ("s", 1.0), 3 * 3600.0: ("min", 60.0), 4 * DAY_S - 1: ("h", 3600.0)}  # of axes up to so long
_STEPS = [1, 2, 2.5, 3, 5, 6, 10]  # between ticks
_DAYS = [1, 2, 2.5, 5, 7, 10]  # weeks where there are many

Given = ParamSpec("Given")
Drawing = tuple[Figure, list[Axes]]


def plot(drawn: Callable[Given, Figure]) -> Callable[Given, bytes]:
    """The figure that a function draws as PNG, whatever style the user's matplotlib is set to."""

    @wraps(drawn)
    def as_png(*given: Given.args, **more: Given.kwargs) -> bytes:
        with matplotlib.rc_context(fname=STYLE):
            figure, png = drawn(*given, **more), io.BytesIO()
            FigureCanvasAgg(figure)
            figure.savefig(png, format="png", metadata={"Software": None})
            return png.getvalue()

    return as_png


def rows(heights_in: Sequence[float], room_in: float = 0.0, layout: list[list[int]] | None = None) -> Drawing:
    """Axes above one time axis, below one another or as laid out by numbers; `room_in` is for what is around them."""
    figure = Figure(figsize=(WIDTH_IN, sum(heights_in) + room_in))
    numbers = layout or [[row] for row in range(len(heights_in))]
    found = figure.subplot_mosaic(numbers, sharex=True, height_ratios=list(heights_in))  # type: ignore[arg-type]
    for axes in found.values():
        axes.yaxis.set_major_formatter(PLAIN)
    return figure, list(found.values())


def time_axis(axes: Axes, end_s: float, start_s: float = 0.0) -> None:
    """Time since the start along x, in a unit that fits."""
    unit, length_s = next((unit for longest_s, unit in _UNITS.items() if end_s <= longest_s), ("days", DAY_S))
    end_s = end_s if end_s > start_s else start_s + 1.0
    locator = MaxNLocator(nbins=10, steps=_DAYS if unit == "days" else _STEPS)
    ticks = [one for one in locator.tick_values(start_s / length_s, end_s / length_s) if one * length_s >= start_s]
    axes.set_xticks([length_s * one for one in ticks], [f"{one:g}" for one in ticks])
    axes.set_xlim(start_s, end_s + 0.005 * (end_s - start_s))
    axes.set_xlabel(f"time since start ({unit})")


def count_axis(axes: Axes, *values: Iterable[float], bins: int = 4) -> None:
    """Whole numbers from 0 to a little above the highest of these values."""
    axes.set_ylim(0, 1.12 * max((one for some in values for one in some if one > 0), default=1.0))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=bins, steps=[1, 2, 4, 5, 10], integer=True))


def log_axis(axes: Axes, low: float, high: float) -> None:
    """A logarithmic axis from `low` to `high`, with powers of ten and nothing between them."""
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(PLAIN)


def line(axes: Axes, values: pd.Series, fill: float = 0.0, **style: Any) -> None:
    """A line over the index, an area so dense below it, and, where they are few, the points."""
    if fill:
        axes.fill_between(values.index, values, color=style["color"], alpha=fill, linewidth=0)
    axes.plot(values.index, values, marker="o" if len(values) <= 3 else None, **style)


def steps(axes: Axes, values: pd.Series, over: pd.DataFrame, fill: float = 0.0, **style: Any) -> None:
    """A value from `start_s` to `end_s` of each row, and an area so dense below it."""
    edges_s = [*over.start_s, *over.end_s[-1:]]
    if fill:
        axes.stairs(values, edges_s, fill=True, color=style["color"], alpha=fill, linewidth=0)
    axes.stairs(values, edges_s, baseline=None, **{"linewidth": 1.7, **style})


def band(axes: Axes, low: pd.Series, high: pd.Series, over: pd.DataFrame, **style: Any) -> None:
    """An area between two values from `start_s` to `end_s` of each row."""
    axes.stairs(high, [*over.start_s, *over.end_s[-1:]], baseline=low, fill=True, linewidth=0, **style)


def marks(axes: Axes, times_s: Sequence[float], height: float, **style: Any) -> None:
    """Small marks at these times, at this height of the axes."""
    if len(times_s):
        at = [height] * len(times_s)
        axes.scatter(times_s, at, linewidths=0, transform=axes.get_xaxis_transform(), zorder=4, **style)


def legend(axes: Axes) -> None:
    """What has a label, above the axes at the right; above all of them where words are there already."""
    handles, labels = axes.get_legend_handles_labels()
    columns = min(6, len(handles))
    if handles and axes.get_title(loc="right"):
        axes.figure.legend(handles, labels, loc="outside upper right", ncols=columns)
    elif handles:
        axes.legend(handles, labels, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=columns)


def panel(axes: Axes, title: str, words: str = "", color: str = INK) -> None:
    """The small title of one of several plots, with a few words on the right."""
    axes.set_title(plain(title), fontsize=9.5, color=color, pad=5)
    axes.set_title(words, loc="right", fontsize=8.5, fontweight="normal", color=GREY, pad=5)


def plain(name: str) -> str:
    """A name as the font can show it, not too long, and never hidden from a legend by its first letter.

    >>> plain("parse"), plain("a" * 40)[-3:], plain("\N{ROCKET} go"), plain("_x")
    ('parse', 'aa…', '□ go', ' _x')
    """
    known = get_font(findfont("DejaVu Sans")).get_charmap()
    shown = "".join(letter if ord(letter) in known and letter.isprintable() else "□" for letter in name)
    shown = f" {shown}" if shown.startswith("_") else shown
    return shown if len(shown) <= _LONGEST_NAME else shown[: _LONGEST_NAME - 1] + "…"


def mean(values: pd.Series, over: pd.DataFrame) -> float:
    """The mean over time."""
    length_s = over.end_s - over.start_s
    return float((values * length_s).sum() / length_s.sum()) if length_s.sum() > 0 else math.nan


def thinned(over: pd.DataFrame, most: int = MOST_POINTS, greatest: Sequence[str] = ()) -> pd.DataFrame:
    """At most so many rows, each made of several: means over time, and of some columns the greatest.

    >>> rows = pd.DataFrame({"start_s": [0, 1, 4], "end_s": [1, 4, 5], "replicas": [1, 3, 5], "backlog": [9, 0, 2]})
    >>> thinned(rows, 2, greatest=["backlog"]).to_dict("list")
    {'start_s': [0, 4], 'end_s': [4, 5], 'backlog': [9, 2], 'replicas': [2.5, 5.0]}
    """
    size = math.ceil(len(over) / most)
    if size <= 1:
        return over
    group, length_s = np.arange(len(over)) // size, (over.end_s - over.start_s).clip(lower=1e-12)
    kept = over.groupby(group).agg({"start_s": "first", "end_s": "last", **dict.fromkeys(greatest, "max")})
    sums = over.drop(columns=kept.columns).mul(length_s, axis=0).groupby(group).sum()
    return kept.join(sums.div(length_s.groupby(group).sum(), axis=0))
