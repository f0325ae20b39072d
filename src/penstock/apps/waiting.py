"""Service time that is waited, not burnt, so that dozens of replicas mean something on two cores."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.topology.operator import Function, Output

DISTINCT_TIMES = 64
MEAN_TIME_MS = (1 + DISTINCT_TIMES) / 2


def wait(service_ms: float) -> None:
    """Sleep for that long; 0 does not even yield."""
    if service_ms > 0:
        time.sleep(service_ms / 1000)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A function of one event, followed by a wait that is fixed or depends on the event.

    >>> Waiting(str.upper, 1.0)("storm")
    'STORM'
    """

    function: Function
    service_ms: float | Callable[[Any], float]

    def __call__(self, event: Any) -> Output:
        """The function's output, after the wait."""
        output = self.function(event)
        wait(self.service_ms(event) if callable(self.service_ms) else self.service_ms)
        return output


@dataclass(frozen=True, slots=True)
class TimeByValue:
    """The service time of an event is looked up by the value of one of its fields.

    >>> TimeByValue("value", (5.0, 7.0))({"value": 1})
    7.0
    """

    field: str
    times_ms: tuple[float, ...]

    def __call__(self, event: Any) -> float:
        """The time in ms; values beyond the table go round."""
        value: int = event[self.field]
        return self.times_ms[value % len(self.times_ms)]


def times_of_values(seed: int, mean_ms: float = MEAN_TIME_MS) -> tuple[float, ...]:
    """64 distinct times from 1 to 64 ms, given to the values 0..63 at random and scaled to the mean.

    Paper: DABS-Storm (TLDKS 2019).

    >>> sorted(times_of_values(seed=7))[:3], max(times_of_values(seed=7, mean_ms=65.0))
    ([1.0, 2.0, 3.0], 128.0)
    """
    times = [n * mean_ms / MEAN_TIME_MS for n in range(1, DISTINCT_TIMES + 1)]
    random.Random(seed).shuffle(times)
    return tuple(times)
