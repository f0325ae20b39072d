"""Names beside the points of a plot, placed so that they do not cover points or each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from penstock.report.palette import GREY, INK
from penstock.report.series import Array

_NEAR_PT = 4.0  # points so near to each other share one label
_DISTANCES_PT = (3.0, 8.0, 16.0, 26.0, 38.0, 52.0)
_DIRECTIONS = ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0), *product((1.0, -1.0), (0.5, -0.5, 1.0, -1.0)))
_LINE_FROM_PT = 5.0  # labels farther away get a line to their point
_GAP_PT = 2.0  # around everything that a label must not touch
_WIDEST = 26  # letters in a line
_SIZE = 9.0

Box: TypeAlias = tuple[float, float, float, float]  # left, bottom, right and top, in pixels


@dataclass(frozen=True, slots=True)
class Point:
    """A point with its name."""

    name: str
    x: float
    y: float
    size_pt: float = 5.0  # half the width of its mark
    bold: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a label may stand: its box on the canvas, and where its middle is, seen from the point."""

    box: Box
    point: tuple[float, float]  # on the canvas
    offset_pt: tuple[float, float]
    far: bool  # so far from its point that a line must lead to it


def place_labels(axes: Axes, points: Sequence[Point]) -> list[str]:
    """Write the names, the first points nearest; gives those for which there was no room.

    The axes must have their final limits and place.
    """
    scale = axes.figure.dpi / 72
    places = [_on_canvas(axes, point) for point in points]
    marks = [_around(x, y, point.size_pt * scale) for point, (x, y) in zip(points, places, strict=True)]
    room, gap = axes.bbox.extents, _GAP_PT * scale * np.array([-1.0, -1.0, 1.0, 1.0])
    boxes: list[Box] = []
    left_out = []
    for group in _groups(points, places, _NEAR_PT * scale):
        words = wrapped([one.name for one in group])
        bold = any(one.bold for one in group)
        labels, taken = _array(boxes), _array([*boxes, *marks]) + gap
        found = _candidates(axes, group[0], words, bold=bold)
        spot = next((one for one in found if _free(one, taken, room) and _clear(one, labels)), None)
        if spot is None:
            left_out += [one.name for one in group]
            continue
        boxes.append(spot.box)
        _write(axes, group[0], words, spot, bold=bold)
    return left_out


def wrapped(names: Sequence[str]) -> str:
    """Names one after the other, in lines that are not too long.

    >>> wrapped(["psps", "ds2"])
    'psps, ds2'
    >>> wrapped(["dstream", "flink:short", "static:mean", "keda"])
    'dstream, flink:short,\\nstatic:mean, keda'
    """
    lines = [""]
    for name in names:
        if lines[-1] and len(lines[-1]) + len(name) + 2 > _WIDEST:
            lines[-1] += ","
            lines.append(name)
        else:
            lines[-1] += f", {name}" if lines[-1] else name
    return "\n".join(lines)


def _groups(points: Sequence[Point], places: Sequence[tuple[float, float]], near: float) -> list[list[Point]]:
    """Points that lie on one another, together."""
    found: list[tuple[tuple[float, float], list[Point]]] = []
    for point, place in zip(points, places, strict=True):
        for at, group in found:
            if abs(at[0] - place[0]) <= near and abs(at[1] - place[1]) <= near:
                group.append(point)
                break
        else:
            found.append((place, [point]))
    return [group for _, group in found]


def _candidates(axes: Axes, point: Point, words: str, *, bold: bool) -> Iterator[Place]:
    """Places around the point, the nearest first."""
    scale = axes.figure.dpi / 72
    probe = axes.text(0, 0, words, fontsize=_SIZE, fontweight="bold" if bold else "normal", linespacing=1.1)
    size = probe.get_window_extent()
    probe.remove()
    x, y = _on_canvas(axes, point)
    for distance_pt, (right, up) in product(_DISTANCES_PT, _DIRECTIONS):
        away = (point.size_pt + distance_pt * (0.75 if right and up else 1.0)) * scale
        across, along = right * (away + size.width / 2), up * (away + size.height / 2)
        left, bottom = x + across - size.width / 2, y + along - size.height / 2
        box = (left, bottom, left + size.width, bottom + size.height)
        yield Place(box, (x, y), (across / scale, along / scale), distance_pt > _LINE_FROM_PT)


def _free(place: Place, taken: Array, room: Box) -> bool:
    """Whether the label lies inside the axes and touches nothing."""
    left, bottom, right, top = place.box
    inside = room[0] <= left and right <= room[2] and room[1] <= bottom and top <= room[3]
    beside = (taken[:, 2] < left) | (taken[:, 0] > right) | (taken[:, 3] < bottom) | (taken[:, 1] > top)
    return bool(inside and beside.all())


def _clear(place: Place, labels: Array) -> bool:
    """Whether the line to the label runs through no other label."""
    if not place.far:
        return True
    (x, y), (left, bottom, right, top) = place.point, place.box
    steps = np.linspace(0, 1, 24)[:, None]
    xs, ys = x + steps * ((left + right) / 2 - x), y + steps * ((bottom + top) / 2 - y)
    across = (labels[:, 0] <= xs) & (xs <= labels[:, 2])
    return not (across & (labels[:, 1] <= ys) & (ys <= labels[:, 3])).any()


def _write(axes: Axes, point: Point, words: str, spot: Place, *, bold: bool) -> None:
    line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.7, "shrinkA": 1, "shrinkB": 3}
    axes.annotate(
        words,
        (point.x, point.y),
        xytext=spot.offset_pt,
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=_SIZE,
        fontweight="bold" if bold else "normal",
        color=INK,
        linespacing=1.1,
        arrowprops=line if spot.far else None,
        path_effects=[withStroke(linewidth=2.2, foreground="white", alpha=0.8)],  # over lines of the grid
        zorder=6,
    ).set_in_layout(False)


def _on_canvas(axes: Axes, point: Point) -> tuple[float, float]:
    x, y = axes.transData.transform((point.x, point.y))
    return float(x), float(y)


def _around(x: float, y: float, half: float) -> Box:
    return x - half, y - half, x + half, y + half


def _array(boxes: Sequence[Box]) -> Array:
    return np.array(boxes, np.float64).reshape(-1, 4)
