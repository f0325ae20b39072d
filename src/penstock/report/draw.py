"""What all plots share: the look, axes over time, lines, steps and legends, and the way to PNG."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from penstock.report.palette import GREY, INK
from penstock.report.text import DAY_S

STYLE = Path(__file__).parent / "penstock.mplstyle"
WIDTH_IN = 10.4
PANEL_IN = 0.98  # of one policy, below others
_LONGEST_NAME = 32
_FEW_POINTS = 3
_STEPS = [1, 2, 2.5, 3, 5, 6, 10]  # between ticks
_DAYS = [1, 2, 2.5, 5, 7, 10]  # weeks where there are many


@contextmanager
def canvas(height_in: float) -> Iterator[tuple[Figure, io.BytesIO]]:
    """A figure to draw on, and its PNG afterwards, whatever style the user's matplotlib is set to."""
    with matplotlib.rc_context(fname=STYLE):
        figure, png = Figure(figsize=(WIDTH_IN, height_in)), io.BytesIO()
        FigureCanvasAgg(figure)
        yield figure, png
        figure.savefig(png, format="png", metadata={"Software": None})


def rows(figure: Figure, heights: Sequence[float]) -> list[Axes]:
    """Axes below one another, of these heights."""
    grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    return [figure.add_subplot(grid[row, 0]) for row in range(len(heights))]


def time_unit(end_s: float) -> tuple[str, float]:
    """The unit for a time axis of this length, and its own in seconds.

    >>> time_unit(120), time_unit(3600), time_unit(86400), time_unit(61 * 86400)
    (('s', 1.0), ('min', 60.0), ('h', 3600.0), ('days', 86400.0))
    """
    if end_s <= 300:
        return "s", 1.0
    if end_s <= 3 * 3600:
        return "min", 60.0
    return ("h", 3600.0) if end_s < 4 * DAY_S else ("days", DAY_S)


def time_axis(
    axes: Axes, end_s: float, start_s: float = 0.0, *, label: bool = True, unit_of_s: float | None = None
) -> None:
    """Time since the start along x, in a unit that fits (that for `unit_of_s`, if given), and plain numbers along y."""
    end_s = end_s if end_s > start_s else start_s + 1.0
    unit, length_s = time_unit(end_s if unit_of_s is None else unit_of_s)
    last_s = end_s + 0.005 * (end_s - start_s)
    locator = MaxNLocator(nbins=10 if unit_of_s is None else 8, steps=_DAYS if unit == "days" else _STEPS)
    ticks_s = length_s * np.array(locator.tick_values(start_s / length_s, end_s / length_s))
    axes.set_xlim(start_s, last_s)
    axes.set_xticks([tick_s for tick_s in ticks_s if start_s <= tick_s <= last_s])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / length_s:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}".replace("-", "−")))
    axes.set_xlabel(f"time since start ({unit})" if label else "")


def count_axis(axes: Axes, highest: float, *, room: float = 1.1, bins: int = 4) -> None:
    """Whole numbers from 0 to a little above the highest."""
    axes.set_ylim(0, (highest if highest > 0 else 1.0) * room)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=bins, steps=[1, 2, 4, 5, 10], integer=True))


def log_axis(axes: Axes, low: float, high: float, ticks: int) -> None:
    """A logarithmic axis from `low` to `high`, with powers of ten and nothing between them."""
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(LogLocator(numticks=ticks))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def line(axes: Axes, values: pd.Series, **style: Any) -> None:
    """A line over the index; with few points also the points, which else would not show."""
    if "label" in style:
        style["label"] = plain(style["label"])
    axes.plot(values.index, values, marker="o" if len(values) <= _FEW_POINTS else None, **style)


def steps(axes: Axes, values: pd.Series, over: pd.DataFrame, **style: Any) -> None:
    """A value from `start_s` to `end_s` of each row; `fill` gives how dense the area below is."""
    edges_s = [*over.start_s, *over.end_s[-1:]]
    if fill := style.pop("fill", 0.0):
        axes.stairs(values, edges_s, fill=True, color=style["color"], alpha=fill, linewidth=0)
    axes.stairs(values, edges_s, baseline=None, **{"linewidth": 1.7, **style})


def legend(axes: Axes, columns: int = 6) -> None:
    """What has a label, in one row above the axes, at the right."""
    handles, _ = axes.get_legend_handles_labels()
    if handles:
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=min(columns, len(handles)))


def panel(axes: Axes, title: str, words: str = "", color: str = INK) -> None:
    """The small title of one of several plots, with a few words on the right."""
    axes.set_title(plain(title), fontsize=9.5, color=color, pad=5)
    axes.set_title(words, loc="right", fontsize=8.5, fontweight="normal", color=GREY, pad=5)


def marks(axes: Axes, times_s: Sequence[float], height: float, **style: Any) -> None:
    """Small marks at these times, at this height of the axes."""
    if len(times_s):
        at = np.full(len(times_s), height)
        axes.scatter(times_s, at, linewidths=0, transform=axes.get_xaxis_transform(), zorder=4, **style)


def highest(*values: pd.Series) -> float:
    """The greatest of all values; 0 if there are none."""
    return float(np.nan_to_num(np.concatenate([np.zeros(1), *values])).max())


def plain(name: str) -> str:
    """A name as the font can show it, not too long, and never hidden from a legend by its first letter.

    >>> plain("parse"), plain("a" * 40)[-3:], plain("\N{ROCKET} go"), plain("_x")
    ('parse', 'aa…', '□ go', ' _x')
    """
    known = get_font(findfont("DejaVu Sans")).get_charmap()
    shown = "".join(letter if ord(letter) in known and letter.isprintable() else "□" for letter in name)
    shown = f" {shown}" if shown.startswith("_") else shown
    return shown if len(shown) <= _LONGEST_NAME else shown[: _LONGEST_NAME - 1] + "…"
