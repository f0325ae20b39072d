"""Least squares that outliers do not pull, for many targets at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.forecast.base import Rates

_ROUNDS = 6
_CLIP = 1.345  # of the residuals' spread, Huber's choice
_TO_SPREAD = 1.4826  # from the median of |r| to the standard deviation of a normal distribution


@dataclass(frozen=True, slots=True)
class Standard:
    """Columns less their mean, over their spread."""

    mean: Rates
    spread: Rates

    @classmethod
    def of(cls, columns: Rates) -> Standard:
        """Made from these columns; one that does not vary counts as 0."""
        spread = columns.std(axis=0)
        flat = spread <= 1e-9 * (1e-9 + np.abs(columns).max(axis=0))
        return cls(columns.mean(axis=0), np.where(flat, np.inf, spread))

    def __call__(self, columns: Rates) -> Rates:
        """Other columns, by the same means and spreads."""
        return (columns - self.mean) / self.spread


@dataclass(frozen=True, slots=True)
class Layer:
    """Random bends of the columns, tanh(x·W + b), drawn once and never trained; W and b come from a seed.

    Huang et al., "Extreme learning machine: theory and applications", Neurocomputing 70, 2006.
    """

    weights: Rates
    biases: Rates

    @classmethod
    def drawn(cls, inputs: int, size: int, seed: int = 0) -> Layer:
        """For so many inputs, the same at every call."""
        draw = np.random.default_rng(seed)
        return cls(draw.normal(size=(inputs, size)) / np.sqrt(inputs), draw.uniform(-1.0, 1.0, size))

    def __call__(self, columns: Rates) -> Rates:
        """The bends of these columns; those beyond its inputs are left aside."""
        bent: Rates = np.tanh(columns[:, : len(self.weights)] @ self.weights + self.biases)
        return bent


def huber_ridge(
    columns: Rates, targets: Rates, known: NDArray[np.bool_], penalty: float, robust: bool = True
) -> tuple[Rates, Rates]:
    """Coefficients and constants of least Σ ρ(y − a − x·b) + α·|b|²/2, a column of b and an a for each target.

    ρ is Huber's: a square near 0, straight further out. Residuals are clipped and added back round by round, so that
    one factorisation serves all targets and rounds. Targets that are not known pull nothing.

    >>> x = np.arange(20.0)[:, None]
    >>> y = 3 * x + 1
    >>> y[5] = 900
    >>> b, a = huber_ridge(x, y, np.full(y.shape, True), penalty=1e-9)
    >>> round(float(b[0, 0]), 1)
    3.0

    Huber, "Robust statistics", 1981, §7.8.
    """
    ones = np.concatenate([columns, np.ones((len(columns), 1))], axis=1)
    penalties = np.concatenate([np.full(columns.shape[1], penalty), [1e-9 * len(columns)]])
    inverse = np.linalg.inv(ones.T @ ones + np.diag(penalties))
    found = np.zeros((ones.shape[1], targets.shape[1]))
    whole = np.asarray(known.all(axis=1))
    judged = whole if whole.any() else np.ones(len(whole), dtype=np.bool_)
    for turn in range(_ROUNDS + 1):
        left = np.where(known, targets - ones @ found, 0.0)
        if turn and robust:
            limit = _CLIP * _TO_SPREAD * np.median(np.abs(left[judged]), axis=0)
            left = np.clip(left, -limit, limit)
        found = found + inverse @ (ones.T @ left - penalties[:, None] * found)
        if not robust and whole.all():
            break
    return found[:-1], found[-1]
