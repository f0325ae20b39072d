"""One run from the command line: engine, control loop, live view, and what is left of it at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from penstock.cli.clustered import (
    Clustered,
    ClusterRequest,
    cluster_request,
    new_cluster,
    session_settings,
    started,
    workers_of,
)
from penstock.cli.request import RunRequest
from penstock.control.analyze import DAY_S, analyzer_for
from penstock.control.declare import declared, workload_of
from penstock.control.loop import Loop, Parts, check_td
from penstock.control.monitor import Monitor
from penstock.engine.run import Run
from penstock.errors import InputError
from penstock.forecast.registry import check_for_loop
from penstock.infra.standalone import StandaloneCluster
from penstock.metrics.counters import RunCounters
from penstock.metrics.interval import IntervalRules
from penstock.metrics.paper import overestimated_replicas
from penstock.metrics.recorder import Recorder
from penstock.metrics.rows import RunRow
from penstock.metrics.store import Store
from penstock.policy.base import Policy, initial_replicas
from penstock.policy.guards import guarded
from penstock.policy.registry import policy_for
from penstock.policy.static import Static, Workload
from penstock.topology import Topology
from penstock.workload import Trace

SLOWEST_STALE_S = 1.0


@dataclass
class Driven:
    """A run and everything around it."""

    request: RunRequest
    folder: Path
    topology: Topology
    trace: Trace
    run: Run
    store: Store
    wanted: ClusterRequest | None = None
    cluster: StandaloneCluster | None = None
    clustered: Clustered | None = None
    loop: Loop | None = None
    recorder: Recorder | None = None
    loop_failure: Exception | None = None
    started_s: float = 0.0
    ended_s: float = 0.0

    @property
    def name(self) -> str:
        """What the store calls it: intervals count from 1 under every driver, so a run carried on has another name."""
        return f"{self.run.id}.{self.run.carried_on}" if self.run.carried_on else self.run.id


def prepare(request: RunRequest, folder: Path, store: str | None = None) -> Driven:
    """Check and build everything that does not need Spark."""
    check_td(request.td_s)
    trace = request.build_trace()
    topology = request.build_topology(folder)
    topology.check()
    source = request.build_source(trace)
    policy = _guarded_policy(request, topology, _workload(topology, trace, {}))
    if request.forecaster is not None:
        check_for_loop(request.forecaster)
    pools = {name: operator.pool for name, operator in topology.operators.items()}
    wanted = initial_replicas(policy, pools, request.td_s) if request.policy else {}
    asked = _cluster_request(request, topology, _workload(topology, trace, {}))
    cluster = new_cluster(asked, topology, folder) if asked else None
    options = request.run_options(folder)
    if asked is not None:
        options = replace(options, executors=asked.least, spark=session_settings(asked, topology, cluster))
    run = Run(topology, source, replicas={**wanted, **request.replicas}, options=options)
    place = store or str(folder / "metrics.db")
    return Driven(request, folder, topology, trace, run, Store(place), asked, cluster)


def drive(driven: Driven, watch: Callable[[Driven], None]) -> RunCounters:
    """Run to the end, calling `watch` several times a second; Ctrl-C lets no more in and finishes what is in flight."""
    run = driven.run
    driven.store.start_run(_run_row(driven))
    with started(driven.cluster, driven.wanted), run:
        driven.started_s = run.clock.now()
        control = threading.Thread(target=_control, args=(driven,), name="penstock-loop", daemon=True)
        control.start()
        try:
            while not run.wait(0.25):
                if driven.loop_failure is not None:
                    raise driven.loop_failure
                watch(driven)
        except KeyboardInterrupt:
            run.stop_sources()
            run.wait_drained(30.0)
        driven.ended_s = run.clock.now()
        counters = run.fresh_counters(2.0)
        watch(driven)
    control.join(5)
    _close(driven)
    return counters


def _control(driven: Driven) -> None:
    """Measure execution times on the first real events, then run the loop until the run ends."""
    run, request = driven.run, driven.request
    try:
        times = _warm_up(run, request)
        driven.loop = _make_loop(driven, times)
        driven.loop.run(run.stopped)
    except Exception as error:
        if not run.stopped():
            driven.loop_failure = error


def _warm_up(run: Run, request: RunRequest) -> dict[str, float]:
    """Execution times of the operators that have processed events by the end of the warm-up."""
    run.clock.sleep_until(run.clock.now() + request.warm_up_s)
    counters = run.fresh_counters()
    found = {name: one.execution_time_s for name, one in counters.operators.items()}
    return {name: time_s for name, time_s in found.items() if time_s is not None}


def _make_loop(driven: Driven, times: dict[str, float]) -> Loop:
    run, request, store = driven.run, driven.request, driven.store
    rules = IntervalRules(request.td_s, declared(driven.topology), stale_after_s=max(SLOWEST_STALE_S, request.td_s / 2))
    monitor = Monitor(Fresh(run), rules, times)
    policy = _policy(driven, times)
    analyzer = analyzer_for(policy, request.forecaster, request.td_s, DAY_S / request.speedup, driven.name)
    driven.recorder = Recorder(lambda record: store.write(driven.name, record))
    infrastructure = levels = None
    if driven.wanted is not None:
        workers = workers_of(run, driven.wanted, driven.cluster)
        driven.clustered = Clustered(workers, run, policy, driven.wanted.rules(request.td_s))
        policy, infrastructure = driven.clustered.levels.application, driven.clustered.step
        levels = driven.clustered.view
    parts = Parts(monitor, policy, run, analyzer, driven.recorder, infrastructure=infrastructure, levels=levels)
    return Loop(parts, run.clock)


class Fresh:
    """The run's counters, asked for anew: all replicas report at the end of the interval, not half a second before."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def counters(self) -> RunCounters:
        """The counters now."""
        return self._run.fresh_counters()


def _policy(driven: Driven, times: dict[str, float]) -> Policy:
    request = driven.request
    if request.policy is None:
        return Static({name: len(active) for name, active in driven.run.active.items()}, "as it was started")
    return _guarded_policy(request, driven.topology, workload_for(driven, times))


def _guarded_policy(request: RunRequest, topology: Topology, workload: Workload) -> Policy:
    if request.slots is not None and request.slots < len(topology.operators):
        raise InputError(
            f"--slots must be at least 1 for each of {len(topology.operators)} operators; got {request.slots}"
        )
    spec = request.policy or "static"
    if spec.partition(":")[0] == "oracle":
        raise InputError(
            "policy 'oracle': knows the future, which only the simulator can tell it; see penstock simulate"
        )
    policy = policy_for(spec, workload=workload, forecaster=request.forecaster)
    return guarded(policy, slots=request.slots, scale_in_s=request.cooldown_s)


def _cluster_request(request: RunRequest, topology: Topology, workload: Workload) -> ClusterRequest | None:
    """Workers for what the peak needs, and for the sources."""
    peak = overestimated_replicas(workload.peak_rate, workload.shares, workload.execution_times_s)
    sources = len(topology.sources)
    return cluster_request(request.cluster, request.workers, peak + sources, len(topology.operators) + sources)


def _workload(topology: Topology, trace: Trace, times: Mapping[str, float]) -> Workload:
    """Declared execution times go before measured ones; what is in neither counts as 1 ms."""
    known = {
        name: (operator.execution_time_ms or 1000 * times.get(name, 0.001)) / 1000
        for name, operator in topology.operators.items()
    }
    return workload_of(topology, trace, known)


def _run_row(driven: Driven) -> RunRow:
    request = driven.request
    settings = {
        "trace": driven.trace.name,
        "speedup": request.speedup,
        "grouping": request.grouping,
        "seed": request.seed,
    }
    return RunRow(
        run=driven.name,
        topology=driven.topology.name,
        policy=request.policy or "none",
        td_s=request.td_s,
        started_at=datetime.now(UTC).isoformat(),
        settings=settings,
    )


def _close(driven: Driven) -> None:
    if driven.recorder is not None:
        driven.recorder.close()
    driven.store.finish_run(driven.name, datetime.now(UTC).isoformat())


def workload_for(driven: Driven, times: Mapping[str, float]) -> Workload:
    """What a static run of the same trace would be sized for."""
    return _workload(driven.topology, driven.trace, times)
