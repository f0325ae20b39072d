"""The page of a sweep: the frontier of all traces, what the promise costs, and a small picture of each trace."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, StrMethodFormatter

from penstock.report import draw
from penstock.report.draw import FAINT, GREEN, GREY, INK
from penstock.report.page import render
from penstock.report.sweep import promise, row_of
from penstock.simulator.curves import Setting, SweepResult
from penstock.simulator.run import ORACLE

_ACROSS = 3  # small pictures beside one another
_TICKS = (1, 1.2, 1.5, 2, 3, 5, 8, 12, 20, 40, 80)


def sweep_page(result: SweepResult) -> str:
    """The report as HTML."""
    settings = result.settings
    chips = {
        "traces": len(result.traces),
        "policies": len(settings["policies"]),
        "headrooms": ", ".join(f"{one:g}" for one in settings["factors"]),
        "seeds": len(settings["seeds"]),
        "arrivals": settings["arrivals"],
        "promise": f"at most {100 * result.late:g} % late",
        "target_ms": settings["contest"]["target_ms"],
        "td_s": settings["contest"]["td_s"],
    }
    drawn = colours(result)
    return render(
        "sweep.html",
        result=result,
        chips=chips,
        drawn=drawn,
        rows=[(one, row_of(result, one)) for one in result.at_late()],
        verdict=promise(result),
        overview=overview_plot(result, drawn),
        small=small_plots(result, drawn) if len(result.traces) > 1 else None,
    )


def colours(result: SweepResult) -> dict[str, str]:
    """The policies that are told apart: the first of the ranking; the others are faint."""
    named = [one.policy for one in result.at_late() if one.policy != ORACLE]
    return {**dict(zip(named, draw.POLICIES[:-1], strict=False)), ORACLE: GREY}


@draw.plot
def overview_plot(result: SweepResult, drawn: Mapping[str, str]) -> Figure:
    """Cost against late events over all traces: a curve for each policy, and the frontier."""
    figure, (axes,) = draw.rows([5.0])
    _curves(axes, result.curves(), result.frontier(), drawn, result.late)
    axes.set_xlabel("replica-seconds, as a multiple of the bound")
    axes.set_ylabel("late events, logarithmic from 0.1 %")
    axes.set_title("All traces" if len(result.traces) > 1 else draw.plain(result.traces[0]))
    draw.legend(axes)
    return figure


@draw.plot
def small_plots(result: SweepResult, drawn: Mapping[str, str]) -> Figure:
    """The same for each trace."""
    down = math.ceil(len(result.traces) / _ACROSS)
    figure = Figure(figsize=(draw.WIDTH_IN, 2.9 * down + 0.3))
    places = figure.subplots(down, _ACROSS, squeeze=False).ravel()
    for axes, trace in zip(places, result.traces, strict=False):
        _curves(axes, result.curves(trace), result.frontier(trace), drawn, result.late)
        draw.panel(axes, trace)
    for axes in places[len(result.traces) :]:
        axes.set_visible(False)
    return figure


def _curves(
    axes: Axes,
    curves: Mapping[str, Sequence[Setting]],
    frontier: Sequence[Setting],
    drawn: Mapping[str, str],
    late: float,
) -> None:
    known = {name: [one for one in several if math.isfinite(one.cost)] for name, several in curves.items()}
    _scales(axes, [one for several in known.values() for one in several], late)
    axes.plot(
        [one.cost for one in frontier], [one.late for one in frontier], color=INK, linewidth=5.0, alpha=0.28,
        solid_capstyle="round", zorder=1.6, label="frontier",
    )  # fmt: skip
    for name in sorted(known, key=lambda one: one in drawn):  # those with colours over the others
        costs, lates = [one.cost for one in known[name]], [one.late for one in known[name]]
        shown = name in drawn
        axes.plot(
            costs,
            lates,
            marker="*" if name == ORACLE else "o",
            markersize=11.0 if name == ORACLE else 4.5,
            color=drawn.get(name, FAINT),
            linewidth=1.3 if shown else 0.9,
            label=draw.plain(name) if shown else None,
            zorder=3 if shown else 2,
        )


def _scales(axes: Axes, settings: Sequence[Setting], late: float) -> None:
    """Cost on a logarithmic axis, lateness from 0, with the part in which the promise is kept."""
    costs = [one.cost for one in settings] or [1.0]
    low, high = min(1.0, *costs) / 1.08, max(1.5, *costs) * 1.12
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.xaxis.set_minor_locator(NullLocator())
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    axes.set_xticks(ticks[:: max(1, len(ticks) // 6)])
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}×"))
    axes.axvline(1.0, color=GREY, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1.5)
    axes.set_yscale("symlog", linthresh=0.001, linscale=0.55)  # so that none late has its place
    axes.set_yticks([0.0, 0.001, 0.01, 0.1, 1.0], ["0 %", "0.1 %", "1 %", "10 %", "100 %"])
    axes.set_ylim(-0.00028, min(1.7, max(0.05, 2.5 * max((one.late for one in settings), default=0.0))))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.axhspan(-1, late, color=GREEN, alpha=0.09, linewidth=0, zorder=0.5)
