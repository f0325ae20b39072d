"""A run that sizes itself: monitor, analyzer, policy with its guards, recorder and managers, put around any run."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.common.checks import fraction, positive
from penstock.control.loop import Loop, check_td
from penstock.control.orders import Order, Stop
from penstock.control.steering import Helm, Steering
from penstock.control.step import LoopState
from penstock.elastic.loop_thread import LoopThread
from penstock.elastic.planning import PlannedRun
from penstock.elastic.recording import Recording
from penstock.elastic.steering import Orders, earlier_run, last_replicas, rates_before
from penstock.elastic.summary import summarise
from penstock.elastic.workers import ElasticWorkers
from penstock.engine.driver.faults import Fault
from penstock.engine.run import Run
from penstock.errors import EngineError, InputError
from penstock.forecast.registry import check_for_loop
from penstock.metrics.counters import CheckpointStatus, RunCounters
from penstock.metrics.interval import DEFAULT_TD_S
from penstock.metrics.rows import PromiseRow, RunRow
from penstock.metrics.scores import Scored
from penstock.metrics.store import Store
from penstock.policy.base import Decision, Policy, name_of
from penstock.policy.guards.calendar import parse_calendar
from penstock.policy.penstock import LATE, TARGET_MS
from penstock.policy.workload import Workload
from penstock.sources import TraceSource
from penstock.ui.listen import Listen, parse_listen
from penstock.workload import DAY_S, Trace

if TYPE_CHECKING:
    from penstock.ui.access import Access

LOOK_EVERY_S = 0.25
STOP_WITHIN_S = 30.0


class Elastic:
    """A run whose replicas, and with `workers` its workers, follow the load.

    `policy` is a name (`penstock`, `psps`, `static:4`) or a policy of your own; None only watches. The run promises
    that at most a share `late` of its events takes longer than `target_ms`; `penstock` keeps to it. `calendar` has
    known events ahead, as `freeze mon-fri 08:00-10:00 Europe/Zurich; least clean=4 daily 18:00-22:00`. With a `store`,
    a file or a database's URL, every interval is kept there with its reasons. `expected` is the trace that will come,
    which some policies size for; that of a `TraceSource` is known. A jump at a source ends an interval early, unless
    `wake` says no. With `ui` (`8470`, or a `Listen`) the run is shown
    there, from its store, to browsers and to Prometheus, and takes orders from who has its token; from Python it takes
    them with `steer`. `shadow` is a policy that decides beside the first and is only kept and scored; a `canary`
    (`psps:minutes=10`) takes over once it was better for so long, and is taken back by itself. Entering starts the run,
    unless it has been started, and leaving stops what was started.

        with Elastic(run, late=0.01, target_ms=500, store="metrics.db") as live:
            live.wait()
        print(live.summary()["latency_ms"])
    """

    def __init__(
        self,
        run: Run,
        policy: str | Policy | None = "penstock",
        *,
        late: float = LATE,
        target_ms: float = TARGET_MS,
        td_s: float = DEFAULT_TD_S,
        forecaster: str | None = None,
        slots: int | None = None,
        cooldown_s: float = 0.0,
        warm_up_s: float = 2.0,
        day_s: float = DAY_S,
        expected: Trace | None = None,
        store: str | Path | None = None,
        workers: ElasticWorkers | None = None,
        settings: Mapping[str, object] | None = None,
        ui: str | Listen | None = None,
        calendar: str | None = None,
        shadow: str | Policy | None = None,
        canary: str | Policy | None = None,
        wake: bool = True,
    ) -> None:
        check_td(td_s)
        _check(run, ui, store, slots)
        if forecaster is not None:
            check_for_loop(forecaster)
        self.ui = parse_listen(ui, what="ui") if isinstance(ui, str) else ui
        self.run = run
        self.policy = policy
        self.promise = {"late": fraction("run", "late", late), "target_ms": positive("run", "target_ms", target_ms)}
        self.td_s = td_s
        self.warm_up_s = warm_up_s
        self.wake = wake
        self.expected = expected if expected is not None else _trace_of(run)
        self.workers = workers
        self.settings = dict(settings or {})  # whatever else the store shall know of the run
        pools = {name: operator.pool for name, operator in run.topology.operators.items()}
        self._planned = PlannedRun(
            run=run,
            name=self.name,
            policy=policy,
            forecaster=forecaster,
            td_s=td_s,
            promise=self.promise,
            cooldown_s=cooldown_s,
            day_s=day_s,
            expected=self.expected,
            calendar=parse_calendar(calendar, pools),
            shadow=shadow,
            canary=canary,
            slots=slots,
        )
        self._helm = Helm(pools, self._planned.make)  # a mistake in the policy shows before anything starts
        self.store = None if store is None else Store(str(store))
        self._put_together()

    def _put_together(self) -> None:
        """The parts around the run, before anything has started."""
        self._promised = PromiseRow(**self.promise)
        self._orders = Orders(self._helm, self.name, self.store, lambda: self.run.clock.now())
        scored = Scored(self._policy_name, self._promised)
        self.recording = Recording(self.name, self.run, self._helm, scored, self.store)
        self._thread = LoopThread(self._planned, self._helm, self.recording, self.workers)
        self.started_s = self.ended_s = 0.0
        self.ui_url: str | None = None  # once it has started
        self.access: Access | None = None  # for who steers it from elsewhere
        self._counters: RunCounters | None = None
        self._stop_within_s = STOP_WITHIN_S
        self._started = contextlib.ExitStack()

    @property
    def name(self) -> str:
        """What the store calls it: intervals count from 1 under every driver, so a run carried on has another name."""
        return f"{self.run.id}.{self.run.carried_on}" if self.run.carried_on else self.run.id

    # ── life ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> Elastic:
        """Start workers, run and loop; what has been started by somebody else stays theirs."""
        begin = {} if self.store is None else self._enter(self.store)
        try:
            if self.ui is not None and self.store is not None:
                self._show(self.store, self.ui)
            self._started.callback(self._end_records)  # before its page is gone
            if self.workers is not None:
                self._started.enter_context(self.workers.started())
            if not self.run.started:
                if self.policy is not None or begin:
                    self.run.begin_with({**self._thread.initial(), **begin})
                self.run.start()
                self._started.callback(self._stop_run)
            if self.access is not None:
                file = self.access.write(self.run.folder)
                self._started.callback(file.unlink, missing_ok=True)
        except BaseException:
            self._close()
            raise
        self.started_s = self.run.clock.now()
        self._thread.start(self.warm_up_s, self.wake)
        return self

    def _enter(self, store: Store) -> dict[str, int]:
        """Note that the run begins, under the orders of the driver before it; gives the replicas that these ask for.

        A policy that learns from what comes is told what came under that driver.
        """
        with store.closed_unless_done():
            earlier = earlier_run(store, self.run.id) if self.run.carried_on else None
            store.start_run(self._row(), self._promised)
            if earlier is None:
                return {}
            self._planned.before = rates_before(store, earlier)
            self._helm.remake()
            self._orders.carry_over(earlier)
            steering = self.steering
            return {**(last_replicas(store, earlier) if steering.frozen else {}), **steering.by_hand}

    def _show(self, store: Store, listen: Listen) -> None:
        from penstock.ui.access import Access
        from penstock.ui.exposition import RunMetrics  # who shows nothing need not load a server
        from penstock.ui.server import serving
        from penstock.ui.steer import Bridge

        metrics = RunMetrics(self, self.run.topology.name, self._policy_name, self._promised)
        self.recording.metrics = metrics

        def bridge(url: str) -> Bridge:
            self.access = Access.new(url, self.name, listen)
            return Bridge(self, self.access)

        self.ui_url = self._started.enter_context(serving(store, listen, metrics.exposition, bridge))

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the sources have ended and everything is processed; False if the time is over first.

        So it is when an order says that the run is to stop (`stopping`). Raises what ended the run, or the loop.
        """
        deadline_s = None if timeout_s is None else self.run.clock.now() + timeout_s
        while True:
            left_s = LOOK_EVERY_S if deadline_s is None else deadline_s - self.run.clock.now()
            if self.run.wait(max(0.0, min(LOOK_EVERY_S, left_s))):
                return True
            if self._thread.failure is not None:
                raise self._thread.failure
            if (left_s <= LOOK_EVERY_S and deadline_s is not None) or self.run.stopped() or self.stopping:
                return False

    def stop(self, timeout_s: float = STOP_WITHIN_S) -> None:
        """End the loop, and the run if it was started here, within the time; then the numbers stay as they are.

        Raises why the run has failed, if it was started here and has.
        """
        if self._thread.ending.is_set():
            return
        self.ended_s = self.run.clock.now()
        with contextlib.suppress(EngineError):  # it has ended already
            self._counters = self.run.fresh_counters(2.0)
        self._thread.ending.set()
        self._stop_within_s = timeout_s
        self._close()

    def __enter__(self) -> Elastic:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with contextlib.suppress(*() if kind is None else (EngineError,)):  # what was raised first says more
            self.stop(timeout_s=(self.steering.stop_within_s or STOP_WITHIN_S) if kind is None else 0.0)

    # ── steering ────────────────────────────────────────────────────────────────────────────────────────────────────

    def steer(self, order: Order, who: str | None = None) -> Steering:
        """Have an order carried out, now; gives what is in force. From any thread.

        It is kept in the store under the name of who gave it, this program's user by default, and carried over when
        another driver carries the run on. An InputError says why it cannot be carried out, if so.

            live.steer(Hold("clean", replicas=4))
        """
        steering = self._orders.give(order, who)
        if isinstance(order, Stop):
            self.run.stop_sources()
        elif self.loop is not None:
            self.loop.wake()
        return steering

    @property
    def steering(self) -> Steering:
        """All orders that are in force."""
        return self._helm.steering

    @property
    def stopping(self) -> bool:
        """Whether an order says that the run is to stop; leaving the block, or `stop`, ends it with a savepoint."""
        return self.steering.stop_within_s is not None

    # ── looking ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def counters(self) -> RunCounters:
        """What the run has done so far; after the end, in all."""
        return self._counters or self.run.counters()

    def checkpoint_status(self) -> CheckpointStatus:
        """How the run's checkpoints go."""
        return self.run.checkpoint_status()

    @property
    def loop(self) -> Loop | None:
        """The control loop, once it has begun."""
        return self._thread.loop

    @property
    def decisions(self) -> deque[Decision]:
        """The last thousand decisions that changed replicas; the store has them all."""
        return self.recording.decisions

    @property
    def loop_state(self) -> LoopState:
        """Where the control loop is; before it has started, nowhere."""
        return LoopState() if self.loop is None else self.loop.state

    def summary(self) -> dict[str, Any]:
        """What the run came to, for programs: events, latency, the papers' metrics, every operator, the workers."""
        counters = self.counters()
        times = {name: one.execution_time_s for name, one in counters.operators.items()}
        workload = self.workload({name: time_s for name, time_s in times.items() if time_s is not None})
        found = summarise(self.run.topology, counters, self.recording.played, workload)
        return {
            "topology": self.run.topology.name,
            "policy": None if self.policy is None else name_of(self.policy),
            **({"steering": list(self.steering.told)} if self.steering.told else {}),
            "duration_s": round((self.ended_s or self.run.clock.now()) - self.started_s, 3),
            **found,
            "faults": [self._fault(one) for one in self.run.faults()],
            "checkpoints": asdict(self.checkpoint_status()),
            **({"workers": managed.summary()} if (managed := self._thread.managed) is not None else {}),
        }

    def _fault(self, fault: Fault) -> dict[str, Any]:
        stood_s = None if fault.seconds is None else round(fault.seconds, 3)
        return {"time_s": round(fault.time_s - self.started_s, 3), "cause": fault.cause, "seconds": stood_s}

    def workload(self, times_s: Mapping[str, float]) -> Workload | None:
        """What a static run would be sized for, if the trace is known; declared execution times go before these."""
        return self._planned.workload(times_s)

    # ── parts ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _policy_name(self) -> str:
        return "none" if self.policy is None else name_of(self.policy)

    def _row(self) -> RunRow:
        return RunRow(
            run=self.name,
            topology=self.run.topology.name,
            policy=self._policy_name,
            td_s=self.td_s,
            started_at=datetime.now(UTC).isoformat(),
            settings=self.settings | ({"trace": self.expected.name} if self.expected is not None else {}),
        )

    def _stop_run(self) -> None:
        self.run.stop(self._stop_within_s)
        if self._counters is not None:
            self._counters = self.run.counters()  # with what was still in flight

    def _close(self) -> None:
        with contextlib.ExitStack() as last:
            if self.store is not None:
                last.callback(self.store.close)
            last.callback(self._end_records)  # where it has not come to that
            self._started.close()

    def _end_records(self) -> None:
        """End the loop, and have the store know all of the run; once."""
        if not self.recording.ended:
            self._thread.end()
            self.recording.end()


def _check(run: Run, ui: str | Listen | None, store: str | Path | None, slots: int | None) -> None:
    if ui is not None and store is None:
        raise InputError("dashboard: it shows what is in the store; the run needs one, store='metrics.db'")
    if slots is not None and slots < len(run.topology.operators):
        raise InputError(f"slots must be at least 1 for each of {len(run.topology.operators)} operators; got {slots}")


def _trace_of(run: Run) -> Trace | None:
    """The trace that the run's only source replays, if it does."""
    sources = list(run.sources.values())
    only = sources[0] if len(sources) == 1 else None
    return only.trace if isinstance(only, TraceSource) else None
