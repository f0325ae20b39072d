"""Count-Min: how often each key came, and how long its events took, in few cells.

A sketch is one array of two matrices of r × c cells with the same hash functions h_i. For an event of key x and time w:

    Φ[i, h_i(x)] += 1        Ω[i, h_i(x)] += w        in every row i

The count of a key is never below the truth, min_i Φ[i, h_i(x)]. Its time is Ω/Φ at the cell of least Φ, where
it shares with the fewest others.

Papers: Cormode and Muthukrishnan, Journal of Algorithms 2005; DABS-Storm, TLDKS 2019, §5.1.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from penstock.grouping.online_shuffle.hashing import cell

PHI, OMEGA = 0, 1


@njit(cache=True, inline="always")
def add(sketch: Any, coefficients: Any, key: int, time_s: float) -> None:
    """Count one event of this key and its time."""
    for row in range(sketch.shape[1]):
        column = cell(coefficients, row, key, sketch.shape[2])
        sketch[PHI, row, column] += 1.0
        sketch[OMEGA, row, column] += time_s


@njit(cache=True, inline="always")
def look_up(sketch: Any, coefficients: Any, key: int) -> tuple[float, float]:
    """Φ and Ω of the cell of least Φ: the key's count (never too low), and the time of all events in the cell."""
    column = cell(coefficients, 0, key, sketch.shape[2])
    count, time_s = sketch[PHI, 0, column], sketch[OMEGA, 0, column]
    for row in range(1, sketch.shape[1]):
        column = cell(coefficients, row, key, sketch.shape[2])
        if sketch[PHI, row, column] < count:
            count, time_s = sketch[PHI, row, column], sketch[OMEGA, row, column]
    return count, time_s


@njit(cache=True, inline="always")
def estimate(sketch: Any, coefficients: Any, key: int, otherwise_s: float) -> float:
    """The time of an event of this key, Ω/Φ; something else for a key that was never seen."""
    count, time_s = look_up(sketch, coefficients, key)
    return time_s / count if count > 0.0 else otherwise_s


@njit(cache=True)
def renew(snapshot: Any, sketch: Any) -> float:
    """Set Ψ = Ω/Φ (0 in empty cells) and return by how much it changed.

        η = Σ|Ψ − Ω/Φ| / ΣΨ

    A Ψ of nothing but zeros has changed without bound, or not at all.
    """
    changed, before = 0.0, 0.0
    for row in range(snapshot.shape[0]):
        for column in range(snapshot.shape[1]):
            count = sketch[PHI, row, column]
            now = sketch[OMEGA, row, column] / count if count > 0.0 else 0.0
            changed += abs(snapshot[row, column] - now)
            before += snapshot[row, column]
            snapshot[row, column] = now
    if before > 0.0:
        return changed / before
    return float("inf") if changed > 0.0 else 0.0


@njit(cache=True)
def copy(sketch: Any, to: Any) -> None:
    """Write all cells over those of another; cell by cell, as whole arrays take seconds to compile."""
    for matrix in range(sketch.shape[0]):
        for row in range(sketch.shape[1]):
            for column in range(sketch.shape[2]):
                to[matrix, row, column] = sketch[matrix, row, column]


@njit(cache=True)
def clear(sketch: Any) -> None:
    """Set all cells to 0."""
    for matrix in range(sketch.shape[0]):
        for row in range(sketch.shape[1]):
            for column in range(sketch.shape[2]):
                sketch[matrix, row, column] = 0.0
