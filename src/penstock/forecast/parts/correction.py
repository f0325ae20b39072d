"""What a model's last errors say of its next ones."""

from __future__ import annotations

import numpy as np

from penstock.forecast.base import Rates
from penstock.forecast.parts.pending import Pending

_LAGS = 6
_KEPT = 1 - 1 / 70  # of what was learnt, at each row
_PENALTY = 20.0
_CLIP = 4.0  # typical errors


class Correction:
    """Adds to a forecast k steps ahead what a regression on the last six one-step errors expects its error to be.

        ŷ'(t+k) = ŷ(t+k) + Σ b_i·e(t−i)      b of least discounted Σ (y − ŷ')² + 20·|b|²

    Rows are discounted with a time constant of 70, errors counted in typical ones and clipped at four. It follows
    short cycles that come and go, where the model itself is fitted to weeks.
    """

    def __init__(self, steps: int) -> None:
        self._pending = Pending(1, steps)
        self._inputs = np.zeros((steps, _LAGS))  # the last errors as they stood at the last rows, newest first
        self._recent = np.zeros(_LAGS)
        self._typical = 0.0
        self._seen = 0.0
        self._squares = np.zeros((_LAGS, _LAGS))
        self._products = np.zeros((_LAGS, steps))

    def learn(self, rate: float) -> None:
        """Take in the rate of the row that came, NaN where it is missing."""
        errors = rate - self._pending.due[0]
        if np.isnan(errors[0]):
            self._recent = np.concatenate([[0.0], self._recent[:-1]])
            return
        self._typical = _KEPT * self._typical + abs(errors[0])
        self._seen = _KEPT * self._seen + 1
        scaled = np.clip(np.nan_to_num(errors) / (self._unit or 1.0), -_CLIP, _CLIP)
        self._squares = _KEPT * self._squares + np.outer(self._inputs[0], self._inputs[0])
        self._products = _KEPT * self._products + self._inputs.T * scaled
        self._recent = np.concatenate([scaled[:1], self._recent[:-1]])

    def corrected(self, made: Rates) -> Rates:
        """The model's forecast from the row that came, corrected; none below 0."""
        self._pending.keep(made[None, :])
        self._inputs = np.concatenate([self._recent[None, :], self._inputs[:-1]])
        slopes = np.linalg.solve(self._squares + _PENALTY * np.eye(_LAGS), self._products)
        return np.clip(made + self._unit * (self._recent @ slopes), 0.0, None)

    @property
    def _unit(self) -> float:
        return self._typical / self._seen if self._seen else 0.0
