"""Spikes of volume and of single keys, after Bodík, Fox, Franklin, Jordan and Patterson.

"Characterizing, modeling, and generating workload spikes for stateful services", SoCC 2010. A spike is a volume
profile (when, how steep, how high, how long) and a hot set (which keys the extra events ask for).

>>> spike = Spike(start_s=10, onset_s=10, plateau_s=20, decay_s=20, magnitude=3)
>>> spike.factor([0, 15, 25, 50, 99]).tolist()
[1.0, 2.0, 3.0, 2.0, 1.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from penstock.common.checks import at_least, fraction, is_number, positive, shown, whole
from penstock.errors import InputError
from penstock.workload._rules import FloatArray, IntArray, generator
from penstock.workload.keys import drawn, zipf_shares
from penstock.workload.shapes import middles, tallest_one
from penstock.workload.trace import Trace


@dataclass(frozen=True)
class Spike:
    """The volume of one spike, `magnitude` times the normal at its peak.

    With t0 = start_s, t1 = t0 + onset_s, t2 = t1 + plateau_s, t3 = t2 + decay_s, the factor m(t) is 1 until t0, rises
    straight to M at t1, stays until t2, falls straight to 1 at t3.
    """

    start_s: float
    onset_s: float
    plateau_s: float
    decay_s: float
    magnitude: float

    def __post_init__(self) -> None:
        if not is_number(self.start_s):
            raise InputError(f"spike: start_s must be a finite number; got {shown(self.start_s)}")
        for name in ("onset_s", "plateau_s", "decay_s"):
            at_least("spike", name, getattr(self, name))
        at_least("spike", "magnitude", self.magnitude, least=1.0)

    @property
    def end_s(self) -> float:
        """t3, when the volume is normal again."""
        return self.start_s + self.onset_s + self.plateau_s + self.decay_s

    def factor(self, t: npt.ArrayLike) -> FloatArray:
        """m(t): how many times the normal volume."""
        seconds = np.asarray(t, dtype=np.float64)
        knots = self.start_s + np.cumsum([0.0, self.onset_s, self.plateau_s, self.decay_s])
        return np.asarray(np.interp(seconds, knots, [1.0, self.magnitude, self.magnitude, 1.0]))


@dataclass(frozen=True)
class HotSet:
    """Which of the keys 1..n_keys the extra events of a spike ask for.

    Normal events choose a key by Zipf's law, extra events one of `n_hot` hot keys, so that at time t key k has

        p_k(t) = z_k / m(t) + h_k · (1 − 1 / m(t)),    z Zipf, h the hot shares, m(t) the spike's factor.

    *Shares*: h ~ Dirichlet(α, …, α), α = `concentration`. For n hot keys each share has the variance
    V = (n − 1) / (n² (n α + 1)): a small α lets one key take nearly all, a large one makes them alike.

    *Places*: hot keys come in runs of neighbours. The sizes of the runs are drawn by the restaurant process of Pitman
    and Yor with discount L = `spread`: the next hot key joins a run of s keys with weight s − L, or starts one more
    beside the r there are with weight r · L. With 0 all are neighbours; with 1 each is on its own.

    >>> hot = HotSet(Spike(10, 10, 20, 20, magnitude=3), n_keys=100, n_hot=4, seed=1)
    >>> round(float(hot.distribution(25.0)[hot.hot_keys - 1].sum()), 2)  # 2/3 extra events, and a few normal ones
    0.69
    """

    spike: Spike
    n_keys: int
    n_hot: int
    concentration: float = 1.0
    spread: float = 0.5
    exponent: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        whole("hot set", "n_hot", self.n_hot, least=1)
        if whole("hot set", "n_keys", self.n_keys, least=1) < self.n_hot:
            raise InputError(f"hot set: n_hot must be at most n_keys = {self.n_keys}; got {self.n_hot}")
        positive("hot set", "concentration", self.concentration)
        fraction("hot set", "spread", self.spread)
        at_least("hot set", "exponent", self.exponent)
        whole("hot set", "seed", self.seed, least=0)

    @cached_property
    def shares(self) -> FloatArray:
        """h: the share of the extra events that each hot key gets, in the order of `hot_keys`."""
        random = generator("hot set shares", self.seed)
        return np.asarray(random.dirichlet(np.full(self.n_hot, self.concentration)))

    @cached_property
    def hot_keys(self) -> IntArray:
        """The hot keys, in increasing order: runs of neighbours at random places that do not overlap."""
        random = generator("hot set places", self.seed)
        runs = random.permutation(_run_sizes(self.n_hot, self.spread, random))
        # Every run shrunk to one key leaves n_keys − n_hot + runs places: choose, then grow the runs again.
        places = random.choice(self.n_keys - self.n_hot + len(runs), len(runs), replace=False)
        firsts = np.sort(places) + np.cumsum(runs - 1) - (runs - 1)
        inside = np.arange(self.n_hot) - np.repeat(np.cumsum(runs) - runs, runs)
        return np.asarray(np.repeat(firsts, runs) + inside + 1, dtype=np.int64)

    def distribution(self, t: float) -> FloatArray:
        """p(t): how likely each key of 1..n_keys is for an event at t seconds."""
        normal = 1.0 / float(self.spike.factor(t))
        likely = zipf_shares(self.n_keys, self.exponent) * normal
        likely[self.hot_keys - 1] += (1.0 - normal) * self.shares
        return likely

    def keys(self, times: npt.ArrayLike) -> IntArray:
        """A key for each event, given the times of the events in seconds."""
        factor = self.spike.factor(times)
        random = generator("hot set keys", self.seed)
        extra = random.random(factor.shape) >= 1.0 / factor
        uniforms = random.random(factor.shape)
        keys = drawn(zipf_shares(self.n_keys, self.exponent), uniforms) + 1
        keys[extra] = self.hot_keys[drawn(self.shares, uniforms[extra])]
        return keys


def _run_sizes(n_hot: int, spread: float, random: np.random.Generator) -> IntArray:
    sizes = np.zeros(n_hot, dtype=np.int64)
    runs = 0
    for seated, u in enumerate(random.random(n_hot).tolist()):
        if u * seated < runs * spread or not seated:
            sizes[runs] = 1
            runs += 1
        else:
            sizes[drawn((sizes[:runs] - spread).astype(np.float64), random.random(1))[0]] += 1
    return sizes[:runs]


def draw_spikes(count: int, *, duration_s: float, magnitude: float = 5.0, seed: int = 0) -> tuple[Spike, ...]:
    """Draw spikes that do not overlap, one in each of `count` equal slots of the duration.

    Shares of the slot: start 0–30 %, onset 2–15 %, plateau 5–20 %, decay 10–35 %. The greatest has the given
    magnitude, the others reach 40 % of the way to it or more.
    """
    slot = positive("spikes", "duration_s", duration_s) / whole("spikes", "count", count, least=1)
    above = at_least("spikes", "magnitude", magnitude, least=1.0) - 1.0
    random = generator("spikes", seed)
    heights = 1.0 + above * tallest_one(random, count)
    parts = random.uniform([0.0, 0.02, 0.05, 0.1], [0.3, 0.15, 0.2, 0.35], (count, 4)) * slot
    parts[:, 0] += slot * np.arange(count)
    rows = zip(*parts.T.tolist(), heights.tolist(), strict=True)
    return tuple(Spike(start, onset, plateau, decay, height) for start, onset, plateau, decay, height in rows)


def spiky(
    spikes: Sequence[Spike],
    *,
    low: float,
    duration_s: float,
    step_s: float = 1.0,
    noise: float = 0.05,
    seed: int = 0,
) -> Trace:
    """A base of `low` under spikes: rate(t) = low · (1 + Σ (m_k(t) − 1)) · (1 + noise · ε)."""
    base = positive("spiky", "low", low)
    at = middles("spiky", duration_s, step_s) * duration_s
    volume = 1.0 + sum((spike.factor(at) - 1.0 for spike in spikes), start=np.zeros(len(at)))
    wobble = 1 + at_least("spiky", "noise", noise) * generator("spiky", seed).standard_normal(len(at))
    return Trace("spikes", duration_s / len(at), np.maximum(base * volume * wobble, 0.0))
