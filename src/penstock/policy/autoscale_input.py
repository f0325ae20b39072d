"""Estim Input of AUTOSCALE+: what each operator has to process in the next iteration.

    Estim R     = Σ_m f(m)                  f: the best regression on the last iteration's measurements
    Estim Out   = Estim Input · α           α: mean selectivity of the last iteration, by receiver
    Estim Input = combine(Estim R, Σ_parents Estim Out) + pending

Kotto-Kombi et al., "DABS-Storm", TLDKS 40, 2019, equations 3 to 5.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.forecast.regression import best_fit
from penstock.metrics.snapshot import OperatorLoad, Snapshot


@dataclass(frozen=True, slots=True)
class Measurement:
    """What an operator got in one interval; rates are per second."""

    number: int  # of the interval
    rate: float  # received from all
    source_rate: float  # of that, from sources
    backlog: int
    edges: Mapping[str, tuple[int, int]]  # by parent, an operator: received from it, and processed by it


def measured(load: OperatorLoad, snapshot: Snapshot, number: int) -> Measurement:
    """An operator's interval as a measurement; a parent whose numbers cannot be trusted has no part in it."""
    from_sources = sum(count for sender, count in load.received_by.items() if sender not in snapshot.operators)
    edges = {
        parent: (count, snapshot.operators[parent].processed)
        for parent, count in load.received_by.items()
        if parent in snapshot.operators and parent not in snapshot.incomplete
    }
    length_s = snapshot.interval_s
    return Measurement(number, load.received / length_s, from_sources / length_s, load.backlog, edges)


class Iteration:
    """The last `size` measurements of one operator: a window that slides on by one measurement an interval.

    >>> last = Iteration(3)
    >>> for number, rate in enumerate((10.0, 20.0, 30.0)):
    ...     last.add(Measurement(number, rate, rate, 0, {"parse": (10, 40)}))
    >>> last.expected_rates(number=2)  # 40, 50 and 60 a second follow
    (150.0, 'linear')
    >>> last.selectivity("parse", declared=1.0)
    0.25
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._measurements: deque[Measurement] = deque(maxlen=size)
        self._selectivity: dict[str, float] = {}  # last known, by parent

    def __len__(self) -> int:
        return len(self._measurements)

    @property
    def full(self) -> bool:
        """Whether there are as many measurements as an iteration has."""
        return len(self._measurements) == self.size

    @property
    def pending(self) -> int:
        """The backlog at the last measurement."""
        return self._measurements[-1].backlog

    def add(self, measurement: Measurement) -> None:
        """Take in a measurement and forget the one that leaves the window."""
        self._measurements.append(measurement)
        for parent in measurement.edges:
            pairs = [one.edges[parent] for one in self._measurements if parent in one.edges]
            processed = sum(done for _, done in pairs)
            if processed > 0:
                self._selectivity[parent] = sum(received for received, _ in pairs) / processed

    def selectivity(self, parent: str, declared: float) -> float:
        """α: events received per event that the parent processed, over the iteration; or last known; or declared."""
        return self._selectivity.get(parent, declared)

    def expected_rates(self, number: int, *, from_sources: bool = False) -> tuple[float, str]:
        """The sum of the rates of the `size` intervals after `number`, and the form of the curve they are on."""
        first = self._measurements[0].number
        times = [one.number - first + 1 for one in self._measurements]
        rates = [one.source_rate if from_sources else one.rate for one in self._measurements]
        fit = best_fit(times, rates)
        ahead = number - first + 2
        return float(fit.rates(range(ahead, ahead + self.size)).sum()), fit.form


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estim Input of one operator, in events of the next iteration."""

    own: float  # Estim R
    form: str  # of the curve it is on
    parents: float | None  # Σ Estim Out; None where only sources feed it, or a parent has no estimate yet
    new: float  # the two combined
    pending: float

    @property
    def events(self) -> float:
        """Estim Input."""
        return self.new + self.pending

    def __str__(self) -> str:
        parents = "" if self.parents is None else f", {self.parents:.4g} by its parents"
        return (
            f"{self.events:.4g} events ({self.own:.4g} by its {self.form} trend{parents}; {self.pending:.4g} backlog)"
        )


def estimate_inputs(
    iterations: Mapping[str, Iteration], snapshot: Snapshot, number: int, combine: str
) -> dict[str, Estimate]:
    """Estim Input, after interval `number`, of every operator whose iteration is full; parents first."""
    estimates: dict[str, Estimate] = {}
    for name, load in snapshot.operators.items():
        last = iterations.get(name)
        if last is None or not last.full:
            continue
        rates, form = last.expected_rates(number)
        own = rates * snapshot.td_s
        parents = [sender for sender in load.received_by if sender in snapshot.operators]
        if not parents or not all(parent in estimates for parent in parents):
            estimates[name] = Estimate(own, form, None, own, last.pending)
            continue
        sent = sum(estimates[p].events * last.selectivity(p, load.declared_shares.get(p, 1.0)) for p in parents)
        if len(parents) < len(load.received_by):  # sources feed it too: their part goes on by its own trend
            sent += last.expected_rates(number, from_sources=True)[0] * snapshot.td_s
        new = max(own, sent) if combine == "max" else min(own, sent)
        estimates[name] = Estimate(own, form, sent, new, last.pending)
    return estimates
