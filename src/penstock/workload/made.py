"""Made traces by name, each with the shape's usual proportions and the mean asked for."""

from __future__ import annotations

from collections.abc import Callable

from penstock.common.checks import positive
from penstock.common.names import one_of
from penstock.workload.shapes import erratic, fluctuating, periodic, progressive, ramp, stable
from penstock.workload.spikes import draw_spikes, spiky
from penstock.workload.trace import Trace

_MAKERS: dict[str, Callable[[float, float, int], Trace]] = {
    "erratic": lambda d, s, seed: erratic(low=1, high=10, duration_s=d, step_s=s, seed=seed),
    "fluctuating": lambda d, s, seed: fluctuating(mean=1, duration_s=d, step_s=s, seed=seed),
    "periodic": lambda d, s, seed: periodic(low=1, high=6, duration_s=d, step_s=s, seed=seed),
    "progressive": lambda d, s, seed: progressive(low=1, high=10, duration_s=d, step_s=s, noise=0.03, seed=seed),
    "ramp": lambda d, s, _: ramp(low=5, high=550, duration_s=d, step_s=s),
    "spikes": lambda d, s, seed: spiky(
        draw_spikes(4, duration_s=d, seed=seed), low=1, duration_s=d, step_s=s, seed=seed
    ),
    "stable": lambda d, s, seed: stable(mean=1, duration_s=d, step_s=s, seed=seed),
}

MADE_TRACES = tuple(_MAKERS)


def made_trace(name: str, *, mean_rate: float, duration_s: float, seed: int, step_s: float = 1.0) -> Trace:
    """Make the named trace with the given mean; the names are in MADE_TRACES.

    >>> made_trace("ramp", mean_rate=100.0, duration_s=60.0, seed=0).events
    6000.0
    """
    maker = _MAKERS[one_of("made trace", name, MADE_TRACES)]
    mean = positive(f"made trace '{name}'", "mean_rate", mean_rate)
    return maker(duration_s, step_s, seed).scaled(mean_rate=mean)
