"""A run's metrics as Prometheus reads them: names, units and types by its conventions.

Labels are names of the topology, causes and phases, which are few; never ids of events. The run's counters go back when
events are done again after a failure. A counter of Prometheus must not: it would take that for a new start, and count
all of it again. So of each the most is told that there ever was.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from penstock.control.steering import Steering
from penstock.control.step import LoopState
from penstock.metrics.counters import CheckpointStatus, OperatorCounters, RunCounters
from penstock.metrics.latency import LatencyHistogram
from penstock.metrics.rows import IntervalRecord, PromiseRow
from penstock.ui.score_metrics import ScoreMetrics

BOUNDS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)
Samples = Iterable[tuple[tuple[str, ...], float]]  # values by their labels


class LiveRun(Protocol):
    """What is asked of a run."""

    @property
    def name(self) -> str:
        """What the store calls it."""

    @property
    def loop_state(self) -> LoopState:
        """Where its control loop is."""

    @property
    def steering(self) -> Steering:
        """The orders that are in force."""

    def counters(self) -> RunCounters:
        """What it has done so far."""

    def checkpoint_status(self) -> CheckpointStatus:
        """How its checkpoints go."""


class RunMetrics(Collector):
    """Collects from a run when it is asked, and is told of each interval as it ends."""

    def __init__(self, run: LiveRun, topology: str, policy: str, promise: PromiseRow) -> None:
        self._run = run
        self._info = {"run": run.name, "topology": topology, "policy": policy}
        self._promise = promise
        self._lock = threading.Lock()
        self._most: dict[tuple[str, ...], float] = {}  # of every counter, the most so far
        self._record: IntervalRecord | None = None
        self._intervals = 0
        self._changes: Counter[tuple[str, str]] = Counter()
        self._words: Counter[tuple[str]] = Counter()  # of managers
        self._expected: dict[str, float] = {}  # of the next interval, by source
        self._errors: dict[str, float] = {}  # of the last forecast, by source
        self._scores = ScoreMetrics()
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def record(self, record: IntervalRecord) -> None:
        """An interval has ended."""
        interval, length_s = record.interval, max(record.interval.interval_s, 1e-9)
        with self._lock:
            self._record = record
            self._intervals += 1
            for one in record.decisions:
                if one.before != one.after and one.failure is None:
                    self._changes[one.operator, "out" if one.after > one.before else "in"] += 1
            self._words.update((one.word,) for one in record.levels.managers)
            came = {name: count / length_s for name, count in interval.source_input.items()}
            missed = {name: abs(self._expected[name] - rate) for name, rate in came.items() if name in self._expected}
            self._errors = {name: error / came[name] for name, error in missed.items() if came[name] > 0}
            self._expected = {one.series: one.rate for one in record.forecasts if one.step == 1}
            self._scores.add(record)

    def exposition(self) -> tuple[bytes, str]:
        """What `/metrics` answers, and its content type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST

    def describe(self) -> Iterable[Metric]:
        """Nothing before it is asked: the run may not have started."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Everything, at this moment."""
        counters, state, steering = self._run.counters(), self._run.loop_state, self._run.steering
        info = self._info | ({"policy": steering.policy} if steering.policy else {})
        with self._lock:
            yield _gauge("penstock_run_info", "The run.", [*info], [(tuple(info.values()), 1.0)])
            yield _gauge(
                "penstock_frozen",
                "Whether an order keeps the policy from deciding.",
                [],
                [((), float(steering.frozen))],
            )
            yield from self._events(counters)
            yield from _replicas(counters)
            yield self._latency(counters.latency)
            yield from self._lateness(counters.latency)
            yield from self._checkpoints(self._run.checkpoint_status())
            yield from self._loop(state)
            yield from self._last_interval()
            yield from self._scores.collect(self._counter)
            yield self._counter(
                "penstock_restarts", "Times that the query was started again.", [], [((), counters.restarts)]
            )

    # ── from the counters ───────────────────────────────────────────────────────────────────────────────────────────

    def _events(self, counters: RunCounters) -> Iterator[Metric]:
        totals = {name: one.total for name, one in counters.operators.items()}
        entered = [((name,), count) for name, count in counters.sources.items()]
        yield self._counter("penstock_events_entered", "Events that entered the topology.", ["source"], entered)
        received = [((name,), sum(one.received.values())) for name, one in totals.items()]
        yield self._counter("penstock_events_received", "Events that arrived at the operator.", ["operator"], received)
        done = [((name,), one.processed) for name, one in totals.items()]
        yield self._counter("penstock_events_processed", "Events that the operator finished.", ["operator"], done)
        dropped = [((name, cause), n) for name, one in totals.items() for cause, n in one.dropped.items()]
        yield self._counter("penstock_events_dropped", "Events not processed.", ["operator", "cause"], dropped)
        outside = [((name, why), n) for name, causes in counters.source_dropped.items() for why, n in causes.items()]
        yield self._counter("penstock_source_events_dropped", "Events not entered.", ["source", "cause"], outside)
        busy = [((name,), one.busy_s) for name, one in totals.items()]
        yield self._counter("penstock_busy_seconds", "Time in the operator's function.", ["operator"], busy)
        cpu = [((name,), one.cpu_s) for name, one in totals.items()]
        yield self._counter("penstock_cpu_seconds", "CPU time of the operator's replicas.", ["operator"], cpu)
        lag = [((name,), float(count)) for name, count in counters.lag.items()]
        yield _gauge("penstock_lag_events", "Events that wait outside, at the source.", ["source"], lag)

    def _latency(self, latency: LatencyHistogram) -> Metric:
        """Cumulative; an event of which only the bucket is known counts where the bucket's middle is."""
        name, about = "penstock_latency_seconds", "From when a source event was due to when a sink has processed it."
        buckets = [
            (_bound(bound_s), self._highest((name, _bound(bound_s)), _within(latency, bound_s))) for bound_s in BOUNDS_S
        ]
        buckets.append(("+Inf", self._highest((name, "+Inf"), latency.count)))
        family = HistogramMetricFamily(name, about)
        family.add_metric([], buckets, self._highest((name, "sum"), latency.total_ms / 1000))
        return family

    def _lateness(self, latency: LatencyHistogram) -> Iterator[Metric]:
        late = latency.count_above(self._promise.target_ms)
        about = "Events that took longer than the target."
        yield self._counter("penstock_late_events", about, [], [((), late)])
        target = [((), self._promise.target_ms / 1000)]
        yield _gauge("penstock_latency_target_seconds", "An event that takes longer is late.", [], target)
        about = "The share of events that may be late."
        yield _gauge("penstock_late_promise_ratio", about, [], [((), self._promise.late)])

    def _checkpoints(self, status: CheckpointStatus) -> Iterator[Metric]:
        """Nothing where there are none; of the last one nothing before the first."""
        if status.every_s is None:
            return
        last = status.committed > 0
        about = "Since the last checkpoint was committed; before the first, since they began."
        yield _gauge("penstock_checkpoint_age_seconds", about, [], [((), status.age_s)])
        about = "Time between checkpoints, as set."
        yield _gauge("penstock_checkpoint_interval_seconds", about, [], [((), status.every_s)])
        about = "From the barrier of the last checkpoint to its record."
        yield _gauge("penstock_checkpoint_duration_seconds", about, [], [((), status.took_s)] if last else [])
        about = "Of the last checkpoint: its record and its segments of state."
        yield _gauge("penstock_checkpoint_size_bytes", about, [], [((), float(status.size_bytes))] if last else [])
        about = "Checkpoints that were committed."
        yield self._counter("penstock_checkpoints_committed", about, [], [((), status.committed)])
        about = "Checkpoints that were given up."
        yield self._counter("penstock_checkpoints_given_up", about, [], [((), status.given_up)])

    # ── from the loop ───────────────────────────────────────────────────────────────────────────────────────────────

    def _loop(self, state: LoopState) -> Iterator[Metric]:
        yield self._counter("penstock_intervals", "Intervals that have ended.", [], [((), self._intervals)])
        failures = [((phase,), count) for phase, count in state.failures.items()]
        yield self._counter("penstock_loop_failures", "Steps of the loop that failed.", ["phase"], failures)
        about = "Changes of replicas that were carried out."
        yield self._counter("penstock_changes", about, ["operator", "direction"], self._changes.items())
        about = "What managers of workers said: proposed, granted, refused, done, cancelled, lost."
        yield self._counter("penstock_manager_words", about, ["word"], self._words.items())
        errors = [((name,), error) for name, error in self._errors.items()]
        about = "Of the last interval: how far off the forecast was, by what came."
        yield _gauge("penstock_forecast_error_ratio", about, ["source"], errors)

    def _last_interval(self) -> Iterator[Metric]:
        rows = self._record.operators if self._record else ()
        busy = [((row.operator,), row.busy_share) for row in rows]
        about = "Of the last interval: time in the operator's function, by replica."
        yield _gauge("penstock_busy_ratio", about, ["operator"], busy)
        workers = self._record.levels.workers if self._record else ()
        states = Counter((one.region, one.state) for one in workers)
        yield _gauge("penstock_workers", "Workers by state.", ["region", "state"], states.items())
        offered, used = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
        for one in workers:
            offered[one.region,] += one.capacity
            used[one.region,] += one.hosted
        yield _gauge("penstock_worker_slots", "Slots of all workers.", ["region"], offered.items())
        yield _gauge("penstock_worker_slots_used", "Slots of workers that are taken.", ["region"], used.items())

    # ── only ever more ──────────────────────────────────────────────────────────────────────────────────────────────

    def _counter(self, name: str, about: str, labels: list[str], samples: Samples) -> Metric:
        family = CounterMetricFamily(name, about, labels=labels)
        for values, value in samples:
            family.add_metric(values, self._highest((name, *values), value))
        return family

    def _highest(self, key: tuple[str, ...], value: float) -> float:
        self._most[key] = max(value, self._most.get(key, 0.0))
        return self._most[key]


def _replicas(counters: RunCounters) -> Iterator[Metric]:
    of_all: dict[str, tuple[str, Callable[[OperatorCounters], float]]] = {
        "penstock_replicas": ("Active replicas.", lambda one: len(one.active)),
        "penstock_pool_replicas": ("Replicas that it may at most have.", lambda one: one.pool),
    }
    for name, (about, value) in of_all.items():
        samples = [((operator,), float(value(one))) for operator, one in counters.operators.items()]
        yield _gauge(name, about, ["operator"], samples)
    waits = {name: _where(one) for name, one in counters.operators.items()}
    places = [((name, where), float(n)) for name, found in waits.items() for where, n in found.items()]
    about = "Events sent to the operator and not yet processed, by where they wait."
    yield _gauge("penstock_backlog_events", about, ["operator", "where"], places)


def _where(one: OperatorCounters) -> Mapping[str, int]:
    rest = max(0, one.backlog - one.held - one.booked)
    return {"held": one.held, "booked": one.booked, "on_its_way": rest}


def _gauge(name: str, about: str, labels: Iterable[str], samples: Iterable[tuple[Iterable[str], float]]) -> Metric:
    family = GaugeMetricFamily(name, about, labels=[*labels])
    for values, value in samples:
        if math.isfinite(value):
            family.add_metric([*values], value)
    return family


def _within(latency: LatencyHistogram, bound_s: float) -> int:
    """How many events took at most so long."""
    return latency.count - latency.count_above(1000 * bound_s)


def _bound(bound_s: float) -> str:
    return str(float(bound_s))
