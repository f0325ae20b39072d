"""Running averages: the mean of a field over all events of a key."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from penstock.grouping.fields import key_of


class Average(msgspec.Struct):
    """The mean of the values so far; corrected for rounding, so that it is as good after a million of them."""

    count: int = 0
    total: float = 0.0
    rest: float = 0.0  # what rounding has taken off the total

    def add(self, value: float) -> float:
        """The mean with one value more."""
        grown = self.total + value
        larger, smaller = (self.total, value) if abs(self.total) >= abs(value) else (value, self.total)
        self.rest += (larger - grown) + smaller
        self.total = grown
        self.count += 1
        return (self.total + self.rest) / self.count


class RunningAverage:
    """Gives, for each event, its key's mean of a field so far.

        m_n = (x_1 + … + x_n) / n        with Neumaier's correction of the sum

    Declare it with the `key` to average by, and give it the same one.

    >>> average, state = RunningAverage("score", by="city"), Average()
    >>> [average.process({"city": "Oslo", "score": score}, state)["mean"] for score in (1.0, 2.0, 6.0)]
    [1.0, 1.5, 3.0]

    Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", ZAMM 54, 1974.
    """

    def __init__(self, field: str, *, by: str) -> None:
        self._field = field
        self._by = by

    def process(self, event: Any, state: Average) -> dict[str, Any] | None:
        """Key, mean and number of values so far; nothing for a value that is not a number."""
        value = float(key_of(self._field, event, "average"))  # type: ignore[arg-type]
        if not math.isfinite(value):
            return None
        mean = state.add(value)
        return {self._by: key_of(self._by, event, "average"), "mean": mean, "count": state.count}
