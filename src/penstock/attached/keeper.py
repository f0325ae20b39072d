"""Keeps the executors of a session to what its queries need: the loop, its thread, and what it came to."""

from __future__ import annotations

import html
import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from penstock.attached.kept_executors import KeptExecutors, SeenExecutors
from penstock.attached.model.lag import Lag
from penstock.attached.model.monitor import Allotment, QueriesMonitor
from penstock.attached.model.need import UNKNOWN_JOIN_S, KeepUp, Leading
from penstock.attached.model.query import QueryState
from penstock.attached.options import Application, KeeperOptions, NamedQuery
from penstock.attached.shown import query_summary, shown
from penstock.control.analyze import analyzer_for
from penstock.control.clock import SteadyClock
from penstock.control.loop import Loop, Parts
from penstock.control.step import LoopState, Step
from penstock.errors import InputError
from penstock.metrics.interval import IntervalRules
from penstock.metrics.recorder import Recorder
from penstock.metrics.rows import IntervalRecord, PromiseRow, RunRow
from penstock.metrics.store import Store
from penstock.policy.base import Decision, name_of
from penstock.policy.guards import guarded
from penstock.policy.guards.calendar import parse_calendar

log = logging.getLogger(__name__)

AWAY_S = 120.0  # a query that has ended may be started again within that
AGAIN_S, AGAIN_MOST_S = 1.0, 60.0  # after the loop itself has died


class Keeper:
    """Watches queries, decides, and has executors come and go; `stop` lets go of them, and they stay as they are.

    Its thread never touches the queries themselves. Whatever fails, they go on; if the thread dies it starts again.
    """

    def __init__(self, application: Application, options: KeeperOptions, store: str | Path | None = None) -> None:
        self.application = application
        self.options = options
        self.reason: str | None = None  # why it has stopped, once it has
        self.deaths = 0  # of the loop
        self.queries: dict[str, NamedQuery] = {}
        self.executor_seconds = self.wanted_seconds = 0.0
        self.cpu_s = 0.0  # of its thread, here in Python
        self._stopped = threading.Event()
        self._clock = SteadyClock(self._stopped)
        self._away: dict[str, float] = {}  # since when a query has been gone
        self._restarts: dict[str, int] = {}
        self._last_s: float | None = None
        self._sized(options)
        self._loop = self._assembled()
        self._thread = threading.Thread(target=self._work, name="penstock-keeper", daemon=True)
        self.name = f"{application.id}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        self.store = None if store is None else Store(str(store))
        self._recorder = None if self.store is None else Recorder(partial(self.store.write, self.name))

    # ── making ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _sized(self, options: KeeperOptions) -> None:
        each, bounds = self.application.slots_each, options.bounds
        policy = guarded(
            KeepUp(options.made_policy()),
            slots=bounds.most * each,
            scale_in_s=options.cooldown_s,
            calendar=parse_calendar(options.calendar),
        )
        self.allotment = Allotment(policy)
        rules = IntervalRules(options.td_s, target_ms=1000 * options.promise.target_s)
        given = self.allotment if options.acting else None
        self.monitor = QueriesMonitor(rules, self.application, bounds.most * each, given)
        self.kept: KeptExecutors | None = None
        if options.acting and self.application.executors is not None:
            self.kept = KeptExecutors(
                self.application.executors, bounds, each, wanted=self.wanted_slots, order=self.application.idle_first
            )

    def _assembled(self) -> Loop:
        options = self.options
        analyzer = analyzer_for(self.allotment, options.forecaster, options.td_s, options.day_s)
        parts = Parts(
            self.monitor,
            self.allotment,
            self.allotment,
            None if analyzer is None else Leading(analyzer, self._join_s),
            self,
            infrastructure=self._step,
            levels=self.kept or SeenExecutors(self.application, self.wanted_slots),
        )
        return Loop(parts, self._clock)

    def _join_s(self) -> float:
        return self.kept.joining.median_s if self.kept is not None else UNKNOWN_JOIN_S

    def add(self, query: NamedQuery, lag: Callable[[], float] | None = None) -> None:
        """Watch one more query of the session; `lag` says how many rows wait at its source, if Spark cannot."""
        if query.name in self.queries:
            raise InputError(
                f"query '{query.name}': is attached already; queries of one keeper need names of their own"
            )
        state = QueryState(query.name, query.trigger_s, self.options.promise)
        self.queries[query.name] = query
        self.monitor.add(state, query, None if lag is None else Lag(query.name, lag))

    # ── life ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> Keeper:
        """Begin to watch."""
        self._enter()
        self._thread.start()
        return self

    def _enter(self) -> None:
        """Have the store know of it."""
        if self.store is not None:
            promise = self.options.promise
            with self.store.closed_unless_done():
                self.store.start_run(self._row(), PromiseRow(late=promise.late, target_ms=1000 * promise.target_s))

    def stop(self) -> None:
        """Let go: executors stay as they are, and queries go on."""
        self._end("it was stopped")
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(self.options.td_s + 5.0)

    @property
    def alive(self) -> bool:
        """Whether it is watching."""
        return self._thread.is_alive() and not self._stopped.is_set()

    def __enter__(self) -> Keeper:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _work(self) -> None:
        """The loop, begun again if it dies, until there is nothing to keep."""
        wait_s = AGAIN_S
        while not self._stopped.is_set():
            try:
                self._loop.run(self._over)
            except BaseException:  # even a SystemExit that somebody raises in it
                self.deaths += 1
                log.exception("the keeper's loop died; it begins again in %g s, queries go on", wait_s)
                self._stopped.wait(wait_s)
                wait_s = min(AGAIN_MOST_S, 2 * wait_s)
        self._close()

    def _over(self) -> bool:
        """Whether the keeper is to end: it was stopped, the session is gone, or no query is left."""
        if not self._stopped.is_set():
            if ended := self.application.ended():
                self._end(ended)
            elif self.queries and len(self._away) == len(self.queries) and self._long_gone():
                self._end(f"no query is left: {'; '.join(sorted(self.queries))} ended")
        return self._stopped.is_set()

    def _long_gone(self) -> bool:
        return all(self._clock.now() - since_s > AWAY_S for since_s in self._away.values())

    def _end(self, reason: str) -> None:
        if not self._stopped.is_set():
            self.reason = reason
            self._stopped.set()
            log.info("the keeper has stopped: %s", reason)

    def _close(self) -> None:
        if self._recorder is not None:
            self._recorder.close()
        if self.store is not None:
            with closing(self.store):
                self.store.finish_run(self.name, datetime.now(UTC).isoformat())

    def step(self, now_s: float) -> Step:
        """One step of the loop, for who has a clock of their own and starts no thread."""
        return self._loop.step(now_s)

    # ── every interval ──────────────────────────────────────────────────────────────────────────────────────────────

    def record(self, record: IntervalRecord) -> None:
        """The loop hands over an interval."""
        if self._recorder is not None:
            self._recorder.record(record)

    def _step(self, now_s: float) -> None:
        """After each step: executors, what they cost, and who is gone."""
        self.cpu_s = time.thread_time()
        self._follow(now_s)
        passed_s = 0.0 if self._last_s is None else max(0.0, now_s - self._last_s)
        self._last_s = now_s
        self.executor_seconds += passed_s * self.application.count()
        self.wanted_seconds += passed_s * self.wanted_executors
        if self.kept is not None and self.allotment.wanted:
            self.kept.step(now_s)
            self.monitor.note_slots(now_s)

    def wanted_slots(self) -> int:
        """Of all queries together, by the last plan."""
        return sum(self.allotment.wanted.values())

    @property
    def wanted_executors(self) -> int:
        """What the last plan comes to."""
        wanted = self.wanted_slots()
        return (
            self.options.bounds.executors(wanted, self.application.slots_each) if wanted else self.application.count()
        )

    def _follow(self, now_s: float) -> None:
        """A query that was started again goes on from another place; one that is gone for long needs nothing."""
        for name, query in list(self.queries.items()):
            if self._restarts.get(name, 0) != query.restarts:
                self._restarts[name] = query.restarts
                self.monitor.states[name].forget_place()
            if name not in self.monitor.away:
                self._away.pop(name, None)
            else:
                self._away.setdefault(name, now_s)
                if now_s - self._away[name] > AWAY_S and len(self._away) < len(self.queries):
                    self._let_go(name)

    def _let_go(self, name: str) -> None:
        log.info("query '%s' has ended, and is watched no longer", name)
        self.monitor.remove(name)
        for known in (self.queries, self._away, self._restarts):
            known.pop(name, None)

    # ── looking ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> LoopState:
        """Where the loop is."""
        return self._loop.state

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What the last step decided, with reasons."""
        return self.state.seen.decisions if self.state.seen else ()

    def summary(self) -> dict[str, Any]:
        """What it came to, for programs: executors, rows, delays and costs of every query."""
        return {
            "application": self.application.id,
            "mode": self.options.mode,
            "policy": name_of(self.options.policy),
            "alive": self.alive,
            "reason": self.reason,
            "deaths": self.deaths,
            "executors": self.application.count() if self.alive else None,
            "wanted_executors": self.wanted_executors if self.alive else None,
            "executor_seconds": round(self.executor_seconds, 3),
            "wanted_executor_seconds": round(self.wanted_seconds, 3),
            "changes": 0 if self.kept is None else self.kept.changes,
            "join_s": round(self._join_s(), 3),
            "cpu_s": round(self.cpu_s, 3),
            "queries": {name: query_summary(one) for name, one in self.monitor.states.items()},
        }

    def __str__(self) -> str:
        return shown(self)

    def _repr_html_(self) -> str:
        """In a notebook."""
        return f"<pre>{html.escape(shown(self))}</pre>"

    def _row(self) -> RunRow:
        options = self.options
        return RunRow(
            run=self.name,
            topology=", ".join(self.queries) or "no query",
            policy=name_of(options.policy),
            td_s=options.td_s,
            started_at=datetime.now(UTC).isoformat(),
            settings={
                "mode": options.mode,
                "executors": f"{options.bounds.least}..{options.bounds.most}",
                "target_ms": 1000 * options.promise.target_s,
                "late": options.promise.late,
                "forecaster": options.forecaster,
                "calendar": options.calendar,
                "slots_each": self.application.slots_each,
                "triggers_s": {name: query.trigger_s for name, query in self.queries.items()},
            },
        )
