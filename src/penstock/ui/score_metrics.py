"""Scores of decisions as Prometheus reads them, by role: who decides, and who is in the shadow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from penstock.metrics.rows import IntervalRecord, ScoreRow
from penstock.metrics.scores import DECIDES

Made = Callable[[str, str, list[str], Iterable[tuple[tuple[str, ...], float]]], Metric]  # of a counter


class ScoreMetrics:
    """Sums up scores as they come; `collect` gives them."""

    def __init__(self) -> None:
        self._spare: dict[tuple[str, ...], float] = defaultdict(float)  # replica-seconds, by role and operator
        self._missing: dict[tuple[str, ...], float] = defaultdict(float)
        self._caused: dict[tuple[str, ...], float] = defaultdict(float)  # late events, by role
        self._avoided: dict[tuple[str, ...], float] = defaultdict(float)
        self._naive_error: float | None = None
        self._handed_over = 0

    def add(self, record: IntervalRecord) -> None:
        """An interval has ended."""
        self._handed_over += sum(one.before is not None for one in record.deciders)
        for one in record.scores:
            self._add(one)
            if one.role == DECIDES:
                self._naive_error = one.naive_error

    def _add(self, one: ScoreRow) -> None:
        for name, needed in one.needed.items():
            spare = (one.replicas[name] - needed) * one.seconds
            self._spare[one.role, name] += max(0.0, spare)
            self._missing[one.role, name] += max(0.0, -spare)
        avoided = (one.nothing_late or 0.0) - (one.late or 0.0)
        self._avoided[one.role,] += max(0.0, avoided)
        self._caused[one.role,] += max(0.0, -avoided)

    def collect(self, counter: Made) -> Iterator[Metric]:
        """All of them, at this moment."""
        by_operator, by_role = ["role", "operator"], ["role"]
        about = "Of decisions, once it is known what came: replicas that were not needed, by time."
        yield counter("penstock_spare_replica_seconds", about, by_operator, self._spare.items())
        about = "Of decisions, once it is known what came: replicas that were missing, by time."
        yield counter("penstock_missing_replica_seconds", about, by_operator, self._missing.items())
        about = "Late events that decisions avoided, beside changing nothing, by a fluid."
        yield counter("penstock_late_events_avoided", about, by_role, self._avoided.items())
        about = "Late events that decisions caused, beside changing nothing, by a fluid."
        yield counter("penstock_late_events_caused", about, by_role, self._caused.items())
        about = "Times that another policy took over, or was taken back."
        yield counter("penstock_decider_changes", about, [], [((), self._handed_over)])
        family = GaugeMetricFamily(
            "penstock_naive_error_ratio",
            "Of the last interval: how far off the rate before was, as a forecast of all sources, by what came.",
        )
        if self._naive_error is not None:
            family.add_metric([], self._naive_error)
        yield family
