"""The control loop around a run, in a thread of its own: put together from what the run is planned with."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace

from penstock.control.loop import Loop, Parts
from penstock.control.monitor import Monitor
from penstock.control.steering import Helm
from penstock.elastic.planning import PlannedRun
from penstock.elastic.recording import Recording
from penstock.elastic.workers import ElasticWorkers, ManagedRun
from penstock.policy.base import Policy, initial_replicas
from penstock.policy.guards import Bounded


class LoopThread:
    """Measures execution times on the first real events, then runs the loop until the run ends, or `end` is called."""

    def __init__(self, planned: PlannedRun, helm: Helm, recording: Recording, workers: ElasticWorkers | None) -> None:
        self._planned, self._run = planned, planned.run
        self._helm = helm
        self._recording = recording
        self._workers = workers
        self._warm_up_s, self._wake = 0.0, True
        self._thread = threading.Thread(target=self._control, name="penstock-loop", daemon=True)
        self.loop: Loop | None = None
        self.managed: ManagedRun | None = None
        self.failure: Exception | None = None
        self.ending = threading.Event()

    def start(self, warm_up_s: float, wake: bool) -> None:
        """Begin after so long; with `wake` a jump at a source ends an interval early."""
        self._warm_up_s, self._wake = warm_up_s, wake
        self._thread.start()

    def end(self) -> None:
        """Let the loop end, and wait for its last step."""
        self.ending.set()
        if self._thread.is_alive():
            self._thread.join(self._helm.planning.rules.td_s + 5.0)

    def initial(self) -> dict[str, int]:
        """The replicas with which the run is to begin."""
        pools = {name: operator.pool for name, operator in self._run.topology.operators.items()}
        slots = None if self._workers is None else self._workers.first_slots
        return initial_replicas(self._guarded, pools, self._planned.td_s, slots)

    @property
    def _guarded(self) -> Policy:
        """What a person says goes around the policy, and the hard limits around that."""
        return Bounded(self._helm.guard, slots=self._planned.slots)

    def _control(self) -> None:
        try:
            self.loop = self._assemble(self._warm_up())
            if self._wake:
                self._run.watch_jumps(self.loop.wake)
            self.loop.run(self._over)
        except Exception as error:
            if not self._over():
                self.failure = error

    def _over(self) -> bool:
        return self.ending.is_set() or self._run.stopped()

    def _warm_up(self) -> dict[str, float]:
        """Execution times of the operators that have processed events by the end of the warm-up."""
        self._run.clock.sleep_until(self._run.clock.now() + self._warm_up_s)
        found = {name: one.execution_time_s for name, one in self._run.fresh_counters().operators.items()}
        return {name: time_s for name, time_s in found.items() if time_s is not None}

    def _assemble(self, times_s: Mapping[str, float]) -> Loop:
        run, self._planned.times_s = self._run, times_s
        planning, policy = self._helm.remake(), self._guarded
        monitor = Monitor(self._recording.fresh, planning.rules, dict(times_s))
        parts = Parts(monitor, policy, run, planning.analyzer, self._recording, steer=self._helm.take)
        if self._workers is not None:
            self.managed = managed = self._workers.manage(run, policy, planning.rules.td_s)
            parts = replace(parts, policy=managed.policy, infrastructure=managed.step, levels=managed.view)
        return Loop(parts, run.clock)
