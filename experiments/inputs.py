"""The inputs of the experiments by name: real traces where the user has them, made ones otherwise.

Rates are scaled so that the peak of each input is the one given here; together with the service times of the
applications that makes r_over what the papers have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from penstock.common.names import one_of
from penstock.workload import (
    DAY_S,
    Trace,
    draw_spikes,
    erratic,
    find_file,
    fluctuating,
    load_trace,
    periodic,
    progressive,
    ramp,
    spiky,
    stable,
)
from penstock.workload.data import plain_name


@dataclass(frozen=True)
class Input:
    """How to make an input by seed, and the file of the real one with what is done to it."""

    make: Callable[[int], Trace]
    peak: float | None = None  # of the rates, after scaling
    file: str | None = None
    prepare: Callable[[Trace], Trace] = lambda trace: trace
    how: str = ""  # what `prepare` does, in words
    before: Callable[[Trace], Trace] | None = None  # what of it comes before that, to train on

    def real(self, data: Path | None) -> Path | None:
        """The real trace's file, where there is one."""
        return find_file(data / "traces", self.file) if data is not None and self.file else None


def _spikes(noise: float) -> Callable[[int], Trace]:
    def make(seed: int) -> Trace:
        spikes = draw_spikes(3, duration_s=3600.0, seed=seed)
        return spiky(spikes, low=1.0, duration_s=3600.0, noise=noise, seed=seed)

    return make


ANOTHER = 1000  # seeds further is another input of the same kind
TWITTER = "twitter_stream_sample_2021_burst_1s.csv"

INPUTS = {
    # One-minute means for the smoothed stream of PSPS, single seconds for the raw one.
    "twitter": Input(
        _spikes(0.05),
        400.0,
        TWITTER,
        lambda trace: trace.resampled(60.0).compressed(2.0),
        "one-minute means, two hours played in one",
    ),
    "twitter-raw": Input(_spikes(0.3), 400.0, TWITTER, lambda trace: trace.compressed(2.0), "two hours played in one"),
    # The peak of 5 s is three times the mean, so that one replica is just about enough, as in the paper.
    "dns": Input(
        lambda seed: stable(mean=86.0, duration_s=1200.0, step_s=5.0, noise=0.2, bursts=4, burst_factor=2.5, seed=seed),
        260.0,
        "dns_wrccdc_2018_1s.csv",
        lambda trace: trace.resampled(5.0),
        "means over 5 s",
    ),
    "progressive": Input(
        lambda seed: progressive(low=30.0, high=250.0, duration_s=1800.0, noise=0.03, seed=seed),
    ),
    "erratic": Input(lambda seed: erratic(low=30.0, high=250.0, duration_s=1800.0, seed=seed)),
    "ramp": Input(lambda _: ramp(low=5.0, high=550.0, duration_s=3600.0)),
    # Days 50 to 60, which the paper tests on, with epochs of 5 or 10 minutes played in 5 or 10 seconds.
    "periodic": Input(
        lambda seed: periodic(low=1.0, high=8.0, duration_s=14_400.0, step_s=5.0, periods=10, seed=seed),
        350.0,
        "bgelasor_periodic_300s.csv",
        lambda trace: trace.window(50 * DAY_S, 60 * DAY_S).compressed(60.0),
        "days 50 to 60, played 60 times as fast",
        before=lambda trace: trace.window(30 * DAY_S, 50 * DAY_S).compressed(60.0),
    ),
    "fluctuating": Input(
        lambda seed: fluctuating(mean=1.0, duration_s=14_400.0, step_s=10.0, seed=seed),
        350.0,
        "bgelasor_fluctuate_600s.csv",
        lambda trace: trace.window(50 * DAY_S, 60 * DAY_S).compressed(60.0),
        "days 50 to 60, played 60 times as fast",
        before=lambda trace: trace.window(30 * DAY_S, 50 * DAY_S).compressed(60.0),
    ),
}


def trace_for(name: str, seed: int, data: Path | None) -> Trace:
    """The input of that name: the real trace, the same for every seed; or made.

    >>> round(trace_for("twitter", seed=1, data=None).peak)
    400
    """
    found = INPUTS[one_of("input", name, INPUTS)]
    path = found.real(data)
    trace = found.prepare(load_trace(path)) if path else found.make(seed)
    return trace if found.peak is None else trace.scaled(found.peak * trace.mean / trace.peak)


def earlier_trace(name: str, seed: int, data: Path | None) -> Trace:
    """What to train on for the input of that name, in the same scale: of the real trace, or made with another seed.

    >>> earlier_trace("periodic", 0, data=None) == trace_for("periodic", 0, data=None)
    False
    """
    found = INPUTS[one_of("input", name, INPUTS)]
    path = found.real(data)
    if path and found.before:
        whole = load_trace(path)
        played, earlier = found.prepare(whole), found.before(whole)
    else:
        played, earlier = found.make(seed), found.make(seed + ANOTHER)
    return earlier if found.peak is None else earlier.scaled(found.peak * earlier.mean / played.peak)


def origin_of(name: str, data: Path | None) -> str:
    """Where the input comes from, in words.

    >>> origin_of("ramp", data=None)
    'made'
    """
    found = INPUTS[one_of("input", name, INPUTS)]
    path = found.real(data)
    return "made" if path is None else f"real: {plain_name(path).stem}, {found.how}"
