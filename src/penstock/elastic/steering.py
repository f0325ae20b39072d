"""Orders to a run that goes on: carried out by the loop, kept in the store, carried over to the next driver."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np

from penstock.control.orders import Order, Stop, order_as_json, parse_order
from penstock.control.steering import Helm, Steering
from penstock.errors import InputError
from penstock.metrics.rows import SteeringRow
from penstock.metrics.store import Store, reason_of
from penstock.ui.access import this_user

RECALLED_S = 4 * 3600.0  # of the run before: as far as `penstock` looks back

log = logging.getLogger(__name__)


class Orders:
    """Gives orders to a helm, and notes who gave them and when.

    A store that fails keeps nobody from steering: the log has what it lacks.
    """

    def __init__(self, helm: Helm, run: str, store: Store | None, now: Callable[[], float]) -> None:
        self._helm = helm
        self._run = run
        self._store = store
        self._now = now
        self._lock = threading.Lock()
        self._given = 0

    def give(self, order: Order, who: str | None = None) -> Steering:
        """Have an order carried out; an InputError, and nothing noted, where that cannot be."""
        with self._lock:
            steering = self._helm.give(order)
            log.warning("%s: %s", who := who or this_user(), order)
            self._note(datetime.now(UTC).isoformat(), who, order)
            return steering

    def carry_over(self, earlier: str) -> None:
        """Take over what is in force of an earlier driver's run; what does not fit any more is left out, and said."""
        for row in self._store.steering(earlier) if self._store else ():
            try:
                order = parse_order(row.order)
                if not isinstance(order, Stop):
                    self._helm.give(order)
                    self._note(row.given_at, row.who, order)
            except InputError as error:
                log.warning("order of %s at %s is not carried over: %s", row.who, row.given_at, error)

    def _note(self, given_at: str, who: str, order: Order) -> None:
        self._given += 1
        if self._store is None:
            return
        row = SteeringRow(
            sequence=self._given, time_s=self._now(), given_at=given_at, who=who, order=order_as_json(order)
        )
        try:
            self._store.write_order(self._run, row)
        except Exception as error:
            log.warning("the order is carried out, but the store does not have it: %s", reason_of(error))


def earlier_run(store: Store, run: str) -> str | None:
    """What the store calls the same run under the driver before, if it has it.

    Of run `a1` that is `a1`, or `a1.3` where it has been carried on before.
    """
    of_it = [row.run for row in store.runs() if row.run == run or row.run.rpartition(".")[0] == run]
    return of_it[-1] if of_it else None


def last_replicas(store: Store, run: str) -> dict[str, int]:
    """How many replicas each operator had when the store last heard of the run."""
    rows = store.operators(run)
    last = max((row.number for row in rows), default=0)
    return {row.operator: row.replicas for row in rows if row.number == last}


def rates_before(store: Store, run: str) -> list[float]:
    """Events per second that entered a run, second by second, as far as the store heard of the last hours of it."""
    rows = [row for row in store.intervals(run) if row.interval_s > 0]
    ends_s = np.cumsum([0.0, *(row.interval_s for row in rows)])
    events = np.cumsum([0, *(row.entered for row in rows)])
    seconds = np.arange(max(0.0, ends_s[-1] - RECALLED_S), ends_s[-1] + 1e-9)
    rates: list[float] = np.diff(np.interp(seconds, ends_s, events)).tolist()
    return rates
