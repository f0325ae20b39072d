"""The input that a shipped application is played where no trace is given: made, with the shape of its paper."""

from __future__ import annotations

from collections.abc import Callable

from penstock.workload import Trace, made_trace, progressive, ramp, stable

HOUR_S = 3600.0


def _spikes(seed: int) -> Trace:
    """The highest spike is what the pools can just serve."""
    trace = made_trace("spikes", mean_rate=1.0, duration_s=2 * HOUR_S, seed=seed)
    return trace.scaled(mean_rate=380.0 / trace.peak)


def _bursts(seed: int) -> Trace:
    return stable(mean=42.0, duration_s=1200.0, noise=0.15, bursts=40, burst_factor=4.5, seed=seed)


def _ramp(seed: int) -> Trace:  # noqa: ARG001 - the same for every seed
    return ramp(low=5.0, high=550.0, duration_s=HOUR_S)


def _progressive(seed: int) -> Trace:
    return progressive(low=30.0, high=350.0, duration_s=HOUR_S, noise=0.03, seed=seed)


_INPUTS: dict[str, Callable[[int], Trace]] = {
    "twitter": _spikes,
    "complex": _spikes,
    "dns": _bursts,
    "wordcount": _ramp,
    "insensitive": _progressive,
    "sensitive": _progressive,
    "complex_sensitive": _progressive,
    "averages": _progressive,
}


def paper_input(app: str, seed: int = 0) -> Trace | None:
    """The application's own input: spikes, a stable rate with bursts, a ramp, or a slow rise and fall.

    >>> round(paper_input("wordcount").peak)
    550
    """
    make = _INPUTS.get(app)
    return make(seed) if make else None
