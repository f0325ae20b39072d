"""What each policy costs against how late it is: one point a policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from penstock.report.arena_data import ArenaReport, is_oracle, meets, ranking
from penstock.report.arena_labels import Point, place_labels
from penstock.report.arena_series import distinct, policy_colours
from penstock.report.canvas import legend, nothing, picture, plain
from penstock.report.data import finite
from penstock.report.palette import FAINT, GREEN, GREY, INK
from penstock.simulator.result import ON_TIME, SimulationResult

ALLOWED = 1 - ON_TIME
_TITLE = "Cost against lateness"
_LINEAR_UP_TO = 0.001  # of the events: below, the axis is linear, so that 0 has its place
_LATE_TICKS = (0.0, 0.001, 0.01, 0.1, 1.0)
_LOG_FROM = 12.0
_MEETS: dict[str, Any] = {"marker": "o", "s": 64.0}
_MISSES: dict[str, Any] = {"marker": "D", "s": 42.0}
_BOUND: dict[str, Any] = {"marker": "*", "s": 190.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """One policy's point."""

    name: str
    cost: float  # replica-seconds over the oracle's
    late: float
    colour: str
    meets: bool
    bound: bool  # the oracle


def scatter_plot(spots: Sequence[Spot]) -> tuple[bytes, list[str]]:
    """Cost along x, late events along y; with it, the names for which there was no room."""
    left_out: list[str] = []

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        if not spots:
            return nothing(axes, _TITLE)
        _cost_axis(axes, [spot.cost for spot in spots])
        _late_axis(axes, [spot.late for spot in spots])
        _target(axes)
        for spot in spots:
            _mark(axes, spot)
        axes.set_title(_TITLE)
        _legend(axes, spots)
        figure.draw_without_rendering()  # from here on the axes stay where they are
        left_out.extend(place_labels(axes, _points(spots)))
        return None

    return picture(draw, 4.9), left_out


def arena_spots(report: ArenaReport) -> list[Spot]:
    """Points of all policies of which cost and lateness are known, in the order of the ranking."""
    order = ranking(report.results)
    colours = policy_colours(report)
    named = zip(distinct([one.policy for one in order]), order, strict=True)
    return [
        _spot(name, result, colours.get(id(result), FAINT))
        for name, result in named
        if finite(result.oracle_ratio) is not None and finite(result.late_ratio) is not None
    ]


def _spot(name: str, result: SimulationResult, colour: str) -> Spot:
    return Spot(
        name=plain(name),
        cost=result.oracle_ratio,
        late=result.late_ratio,
        colour=colour,
        meets=meets(result),
        bound=is_oracle(result),
    )


def _points(spots: Sequence[Spot]) -> list[Point]:
    """The cheapest that meets the target in bold."""
    best = next((spot.name for spot in spots if spot.meets and not spot.bound), None)
    return [
        Point(spot.name, spot.cost, spot.late, 7.0 if spot.bound else 4.5, bold=spot.name == best) for spot in spots
    ]


def _mark(axes: Axes, spot: Spot) -> None:
    edge = GREY if spot.colour == FAINT else spot.colour
    style = _BOUND if spot.bound else _MEETS if spot.meets else _MISSES
    fill = spot.colour if spot.meets or spot.bound else "white"
    axes.scatter([spot.cost], [spot.late], facecolor=fill, edgecolor=edge, linewidths=1.7, zorder=4, **style)


def _legend(axes: Axes, spots: Sequence[Spot]) -> None:
    """What the marks mean, as far as they are there."""
    handles: dict[str, Any] = {}
    for label, style, fill, there in (
        ("meets the target", _MEETS, INK, any(spot.meets and not spot.bound for spot in spots)),
        ("misses it", _MISSES, "white", any(not spot.meets and not spot.bound for spot in spots)),
        ("oracle", _BOUND, GREY, any(spot.bound for spot in spots)),
    ):
        if there:
            edge = GREY if style is _BOUND else INK
            handles[label] = axes.scatter([], [], facecolor=fill, edgecolor=edge, linewidths=1.5, **style)
    handles[f"target: at most {100 * ALLOWED:.3g} % late"] = Patch(facecolor=GREEN, alpha=0.25)
    legend(axes, handles)


def _target(axes: Axes) -> None:
    """The part of the plot in which the target is met."""
    axes.axhspan(axes.get_ylim()[0], ALLOWED, color=GREEN, alpha=0.09, linewidth=0, zorder=0.5)
    axes.axhline(ALLOWED, color=GREEN, linewidth=1.3, zorder=1.5)


def _cost_axis(axes: Axes, costs: Sequence[float]) -> None:
    low, high = min([*costs, 1.0]), max([*costs, 1.0])
    if low > 0 and high / low > _LOG_FROM:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.25, high * 1.6)
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        span = max(high - low, 0.2)
        axes.set_xlim(low - 0.16 * span, high + 0.16 * span)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=9, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}×"))
    axes.axvline(1.0, color=GREY, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1.5)
    axes.set_xlabel("replica-seconds, as a multiple of the oracle's")


def _late_axis(axes: Axes, late: Sequence[float]) -> None:
    axes.set_yscale("symlog", linthresh=_LINEAR_UP_TO, linscale=0.55)
    axes.set_ylim(-0.00028, min(1.7, max(0.05, max(late) * 3)))
    axes.yaxis.set_major_locator(FixedLocator(_LATE_TICKS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    axes.set_ylabel("late events, logarithmic from 0.1 %")
