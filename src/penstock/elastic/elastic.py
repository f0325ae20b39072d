"""A run that sizes itself: monitor, analyzer, policy with its guards, recorder and managers, put around any run."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from penstock.control.analyze import analyzer_for
from penstock.control.declare import declared, expected_workload
from penstock.control.loop import Loop, Parts, check_td
from penstock.control.monitor import Monitor
from penstock.elastic.summary import Played, summarise
from penstock.elastic.workers import ElasticWorkers, ManagedRun
from penstock.engine.driver.faults import Fault
from penstock.engine.run import Run
from penstock.errors import EngineError, InputError
from penstock.forecast.registry import check_for_loop
from penstock.metrics.counters import RunCounters
from penstock.metrics.interval import IntervalRules
from penstock.metrics.recorder import Recorder
from penstock.metrics.rows import FaultRow, IntervalRecord, RunRow
from penstock.metrics.store import Store
from penstock.policy.base import Decision, Policy, initial_replicas, name_of
from penstock.policy.guards import guarded
from penstock.policy.registry import policy_for
from penstock.policy.static import Static
from penstock.policy.workload import Workload
from penstock.sources import TraceSource
from penstock.workload import DAY_S, Trace

SLOWEST_STALE_S = 1.0
LOOK_EVERY_S = 0.25
LAST_CHANGES = 1000  # that are kept in memory; the store has them all


class Elastic:
    """A run whose replicas, and with `workers` its workers, follow the load.

    `policy` is a name (`psps`, `cba:12`, `static:4`) or a policy of your own; None only watches. With a `store`, a file
    or a database's URL, every interval is kept there with its reasons. `expected` is the trace that will come, which
    some policies size for; that of a `TraceSource` is known. Entering starts the run, unless it has been started, and
    leaving stops what was started.

        with Elastic(run, policy="psps", td_s=5, store="metrics.db") as live:
            live.wait()
        print(live.summary()["latency_ms"])
    """

    def __init__(
        self,
        run: Run,
        policy: str | Policy | None = "psps",
        *,
        td_s: float = 5.0,
        forecaster: str | None = None,
        slots: int | None = None,
        cooldown_s: float = 0.0,
        warm_up_s: float = 2.0,
        day_s: float = DAY_S,
        expected: Trace | None = None,
        store: str | Path | None = None,
        workers: ElasticWorkers | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        check_td(td_s)
        if slots is not None and slots < len(run.topology.operators):
            raise InputError(
                f"slots must be at least 1 for each of {len(run.topology.operators)} operators; got {slots}"
            )
        if forecaster is not None:
            check_for_loop(forecaster)
        self.run = run
        self.policy = policy
        self.td_s = td_s
        self.forecaster = forecaster
        self.slots = slots
        self.cooldown_s = cooldown_s
        self.warm_up_s = warm_up_s
        self.day_s = day_s
        self.expected = expected if expected is not None else _trace_of(run)
        self.workers = workers
        self.settings = dict(settings or {})  # whatever else the store shall know of the run
        self.started_s = self.ended_s = 0.0
        self.loop: Loop | None = None
        self.managed: ManagedRun | None = None
        self.played = Played()
        self.decisions: deque[Decision] = deque(maxlen=LAST_CHANGES)  # that changed replicas, the last of them
        self._first = self._sized({})  # a mistake in the policy shows before anything starts
        self.store = None if store is None else Store(str(store))
        self._recorder = None if self.store is None else Recorder(partial(self.store.write, self.name))
        self._counters: RunCounters | None = None
        self._faults = 0  # the last one recorded
        self._failure: Exception | None = None
        self._ending = threading.Event()
        self._stop_within_s = 30.0
        self._thread = threading.Thread(target=self._control, name="penstock-loop", daemon=True)
        self._started = contextlib.ExitStack()

    @property
    def name(self) -> str:
        """What the store calls it: intervals count from 1 under every driver, so a run carried on has another name."""
        return f"{self.run.id}.{self.run.carried_on}" if self.run.carried_on else self.run.id

    # ── life ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> Elastic:
        """Start workers, run and loop; what has been started by somebody else stays theirs."""
        if self.store is not None:
            self.store.start_run(self._row())
        try:
            if self.workers is not None:
                self._started.enter_context(self.workers.started())
            if not self.run.started:
                if self.policy is not None:
                    self.run.begin_with(self._initial())
                self.run.start()
                self._started.callback(self._stop_run)
        except BaseException:
            self._close()
            raise
        self.started_s = self.run.clock.now()
        self._thread.start()
        return self

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the sources have ended and everything is processed; False if the time is over first.

        Raises what ended the run, or the loop.
        """
        deadline_s = None if timeout_s is None else self.run.clock.now() + timeout_s
        while True:
            left_s = LOOK_EVERY_S if deadline_s is None else deadline_s - self.run.clock.now()
            if self.run.wait(max(0.0, min(LOOK_EVERY_S, left_s))):
                return True
            if self._failure is not None:
                raise self._failure
            if (left_s <= LOOK_EVERY_S and deadline_s is not None) or self.run.stopped():
                return False

    def stop(self, timeout_s: float = 30.0) -> None:
        """End the loop, and the run if it was started here, within the time; then the numbers stay as they are.

        Raises why the run has failed, if it was started here and has.
        """
        if self._ending.is_set():
            return
        self.ended_s = self.run.clock.now()
        with contextlib.suppress(EngineError):  # it has ended already
            self._counters = self.run.fresh_counters(2.0)
        self._ending.set()
        self._stop_within_s = timeout_s
        self._close()

    def __enter__(self) -> Elastic:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with contextlib.suppress(*() if kind is None else (EngineError,)):  # what was raised first says more
            self.stop(timeout_s=30.0 if kind is None else 0.0)

    # ── looking ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def counters(self) -> RunCounters:
        """What the run has done so far; after the end, in all."""
        return self._counters or self.run.counters()

    def summary(self) -> dict[str, Any]:
        """What the run came to, for programs: events, latency, the papers' metrics, every operator, the workers."""
        counters = self.counters()
        times = {name: one.execution_time_s for name, one in counters.operators.items()}
        workload = self.workload({name: time_s for name, time_s in times.items() if time_s is not None})
        found = summarise(self.run.topology, counters, self.played, workload)
        return {
            "topology": self.run.topology.name,
            "policy": None if self.policy is None else name_of(self.policy),
            "duration_s": round((self.ended_s or self.run.clock.now()) - self.started_s, 3),
            **found,
            "faults": [self._fault(one) for one in self.run.faults()],
            "checkpoints": asdict(self.run.checkpoint_status()),
            **({"workers": self.managed.summary()} if self.managed is not None else {}),
        }

    def _fault(self, fault: Fault) -> dict[str, Any]:
        stood_s = None if fault.seconds is None else round(fault.seconds, 3)
        return {"time_s": round(fault.time_s - self.started_s, 3), "cause": fault.cause, "seconds": stood_s}

    def workload(self, times_s: Mapping[str, float]) -> Workload | None:
        """What a static run would be sized for, if the trace is known; declared execution times go before these."""
        return None if self.expected is None else expected_workload(self.run.topology, self.expected, times_s)

    def record(self, record: IntervalRecord) -> None:
        """The loop hands over an interval: what the summary needs stays here, all of it goes to the store."""
        self.played.add(record.interval)
        record = replace(record, faults=self._new_faults())
        made = (Decision(one.operator, one.before, one.after, one.reason, one.expected) for one in record.decisions)
        self.decisions.extend(one for one in made if one.changed)
        if self._recorder is not None:
            self._recorder.record(record)

    def _new_faults(self, ended: bool = False) -> tuple[FaultRow, ...]:
        """The faults that are over, or ended with the run, and have not been recorded yet."""
        new = [one for one in self.run.faults() if one.number > self._faults and (ended or one.seconds is not None)]
        self._faults = max((one.number for one in new), default=self._faults)
        return tuple(FaultRow(**asdict(one)) for one in new)

    # ── the loop ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _control(self) -> None:
        """Measure execution times on the first real events, then run the loop until the run ends."""
        try:
            self.loop = self._assemble(self._warm_up())
            self.loop.run(lambda: self._ending.is_set() or self.run.stopped())
        except Exception as error:
            if not (self._ending.is_set() or self.run.stopped()):
                self._failure = error

    def _warm_up(self) -> dict[str, float]:
        """Execution times of the operators that have processed events by the end of the warm-up."""
        self.run.clock.sleep_until(self.run.clock.now() + self.warm_up_s)
        found = {name: one.execution_time_s for name, one in self.run.fresh_counters().operators.items()}
        return {name: time_s for name, time_s in found.items() if time_s is not None}

    def _assemble(self, times_s: Mapping[str, float]) -> Loop:
        run = self.run
        rules = IntervalRules(self.td_s, declared(run.topology), stale_after_s=max(SLOWEST_STALE_S, self.td_s / 2))
        monitor = Monitor(_Fresh(run), rules, dict(times_s))
        policy = self._sized(times_s)
        analyzer = analyzer_for(policy, self.forecaster, self.td_s, self.day_s, self.name)
        if self.workers is None:
            return Loop(Parts(monitor, policy, run, analyzer, self), run.clock)
        self.managed = managed = self.workers.manage(run, policy, self.td_s)
        parts = Parts(
            monitor,
            managed.policy,
            run,
            analyzer,
            self,
            infrastructure=managed.step,
            levels=managed.view,
        )
        return Loop(parts, run.clock)

    def _sized(self, times_s: Mapping[str, float]) -> Policy:
        """The policy in its guards, with what is known of the load."""
        if self.policy is None:
            return Static({name: len(active) for name, active in self.run.active.items()}, "as it was started")
        policy = self.policy
        if isinstance(policy, str):
            if policy.partition(":")[0] == "oracle":
                raise InputError("policy 'oracle': knows the future, which only the simulator can tell it")
            policy = policy_for(policy, workload=self.workload(times_s), forecaster=self.forecaster)
        return guarded(policy, slots=self.slots, scale_in_s=self.cooldown_s)

    def _initial(self) -> dict[str, int]:
        pools = {name: operator.pool for name, operator in self.run.topology.operators.items()}
        return initial_replicas(self._first, pools, self.td_s)

    def _row(self) -> RunRow:
        return RunRow(
            run=self.name,
            topology=self.run.topology.name,
            policy="none" if self.policy is None else name_of(self.policy),
            td_s=self.td_s,
            started_at=datetime.now(UTC).isoformat(),
            settings=self.settings | ({"trace": self.expected.name} if self.expected is not None else {}),
        )

    def _stop_run(self) -> None:
        self.run.stop(self._stop_within_s)
        if self._counters is not None:
            self._counters = self.run.counters()  # with what was still in flight

    def _close(self) -> None:
        try:
            self._started.close()
        finally:
            self._ending.set()
            if self._thread.is_alive():
                self._thread.join(self.td_s + 5.0)
            if self._recorder is not None:
                self._recorder.close()
            if self.store is not None:
                self.store.write_faults(self.name, self._new_faults(ended=True))
                self.store.finish_run(self.name, datetime.now(UTC).isoformat())
                self.store.close()


class _Fresh:
    """The run's counters, asked for anew: all replicas report at the end of the interval, not half a second before."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def counters(self) -> RunCounters:
        """The counters now."""
        return self._run.fresh_counters()


def _trace_of(run: Run) -> Trace | None:
    """The trace that the run's only source replays, if it does."""
    sources = list(run.sources.values())
    only = sources[0] if len(sources) == 1 else None
    return only.trace if isinstance(only, TraceSource) else None
