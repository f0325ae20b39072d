"""Rates as numbers that a network can learn: 0 for the least rate of the training part, 1 for the greatest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.forecast.base import Rates


@dataclass(frozen=True, slots=True)
class MinMax:
    """Scales so that the rates it was fitted to lie in 0..1: x = (y − low) / (high − low).

    Rates outside that range are scaled by the same rule and lie outside 0..1. A constant series is scaled to 0.

    >>> scale = MinMax.fitted(np.array([20.0, 60.0, np.nan, 40.0]))
    >>> scale.down(np.array([20.0, 40.0, 80.0])).tolist()
    [0.0, 0.5, 1.5]
    >>> scale.up(np.array([0.5])).tolist()
    [40.0]

    Mu et al., "BGElasor", NPC 2019.
    """

    low: float
    high: float

    @classmethod
    def fitted(cls, rates: Rates) -> MinMax:
        """The scale of these rates; missing ones are passed over."""
        return cls(float(np.nanmin(rates)), float(np.nanmax(rates)))

    @property
    def span(self) -> float:
        """What one unit is worth; 1 for a constant series."""
        return self.high - self.low if self.high > self.low else 1.0

    def down(self, rates: Rates) -> Rates:
        """From rates to 0..1."""
        return (rates - self.low) / self.span

    def up(self, scaled: Rates) -> Rates:
        """From 0..1 to rates."""
        return scaled * self.span + self.low
