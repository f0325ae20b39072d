"""What all plots share: size, style, axes over time, marks of decisions, and the way to PNG."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.ticker import FuncFormatter, MaxNLocator

from penstock.report.palette import BLUE, FAINT, GREY, INK, VERMILLION
from penstock.report.series import Array, RunSeries

WIDTH_IN = 10.4
DPI = 200  # twice the 100 that the page shows
_FONT = "DejaVu Sans"  # comes with matplotlib
_LONGEST_NAME = 32
_FEW_POINTS = 3

_STYLE: dict[Any, Any] = {
    "font.family": [_FONT],
    "font.size": 9.5,
    "text.color": INK,
    "text.parse_math": False,  # an operator may be named 'a$b$c'
    "axes.edgecolor": FAINT,
    "axes.facecolor": "white",
    "axes.labelcolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlepad": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e4e7eb",
    "grid.linewidth": 0.8,
    "grid.linestyle": "-",
    "grid.alpha": 1.0,
    "figure.facecolor": "white",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.7,
    "lines.solid_capstyle": "round",
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
    "text.usetex": False,
    "savefig.bbox": "standard",
    "savefig.facecolor": "auto",
    "figure.constrained_layout.w_pad": 0.1,
    "figure.constrained_layout.h_pad": 0.09,
    "figure.constrained_layout.hspace": 0.03,
}


def picture(draw: Callable[[Figure], None], height_in: float) -> bytes:
    """A figure of this height as PNG, whatever style the user's matplotlib is set to."""
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(WIDTH_IN, height_in), dpi=DPI, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=DPI, metadata={"Software": None})
    return content.getvalue()


def nothing(axes: Axes, title: str) -> None:
    """Say that there is nothing to draw."""
    axes.set_title(title)
    axes.set_axis_off()
    axes.text(0.5, 0.5, "no intervals were recorded", ha="center", va="center", color=GREY, transform=axes.transAxes)


def time_axis(axes: Axes, end_s: float, *, label: bool = True) -> None:
    """Time since the start along x, in seconds, minutes or hours, and plain numbers along y."""
    unit, length_s = time_unit(end_s)
    end_s = end_s if end_s > 0 else 1.0
    axes.set_xlim(0, end_s * 1.005)
    steps = MaxNLocator(nbins=10, steps=[1, 2, 2.5, 3, 5, 6, 10]).tick_values(0, end_s / length_s)
    axes.set_xticks([step * length_s for step in steps if step * length_s <= end_s * 1.005])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / length_s:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    if label:
        axes.set_xlabel(f"time since start ({unit})")


def time_unit(end_s: float) -> tuple[str, float]:
    """The unit for a time axis up to here, and its length in seconds.

    >>> time_unit(120), time_unit(3600), time_unit(86400)
    (('s', 1.0), ('min', 60.0), ('h', 3600.0))
    """
    if end_s <= 300:
        return "s", 1.0
    return ("min", 60.0) if end_s <= 3 * 3600 else ("h", 3600.0)


def line(axes: Axes, times_s: Array, values: Array, **style: Any) -> Any:
    """A line; with few points also the points, which else would not show."""
    if times_s.size <= _FEW_POINTS:
        style.setdefault("marker", "o")
    (drawn,) = axes.plot(times_s, values, **style)
    return drawn


def legend(axes: Axes, handles: Mapping[str, Any], columns: int = 6) -> None:
    """A legend in one row above the axes, at the right."""
    drawn = axes.legend(
        list(handles.values()),
        [str(number) for number in range(len(handles))],  # labels that begin with '_' would be left out
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        borderaxespad=0.1,
        ncols=min(columns, max(1, len(handles))),
        handlelength=1.6,
        columnspacing=1.4,
    )
    for text, label in zip(drawn.get_texts(), handles, strict=True):
        text.set_text(plain(label))


def mark_changes(axes: Axes, series: RunSeries) -> dict[str, Any]:
    """Small marks along the upper edge where decisions changed replicas; gives their handles for the legend."""
    handles: dict[str, Any] = {}
    for label, times_s, marker, colour, place in (
        ("scale-out", series.scale_out_s, "^", BLUE, 0.975),
        ("scale-in", series.scale_in_s, "v", VERMILLION, 0.935),
    ):
        if times_s.size:
            handles[label] = axes.scatter(
                times_s,
                np.full(times_s.size, place),
                marker=marker,
                s=22,
                color=colour,
                linewidths=0,
                transform=axes.get_xaxis_transform(),
                zorder=4,
            )
    return handles


def plain(name: str) -> str:
    """A name as the font can show it, and not too long.

    >>> plain("parse"), plain("a" * 40)[-3:], plain("\N{ROCKET} go")
    ('parse', 'aa…', '□ go')
    """
    known = get_font(findfont(_FONT)).get_charmap()
    shown = "".join(letter if ord(letter) in known and letter.isprintable() else "□" for letter in name)
    return shown if len(shown) <= _LONGEST_NAME else shown[: _LONGEST_NAME - 1] + "…"
