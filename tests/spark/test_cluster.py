"""A run on workers of its own: one joins, one leaves, one is killed and replaced; nothing is lost."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import psutil

from penstock.control.managers.infrastructure_manager import InfrastructureRules
from penstock.control.managers.region_manager import RegionRules
from penstock.control.managers.two_levels import LevelRules, TwoLevels
from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.infra.cluster_workers import ClusterWorkers, await_workers, spark_settings
from penstock.infra.executors import Executors
from penstock.infra.standalone import StandaloneCluster, StandaloneOptions
from penstock.infra.worker import WorkerState
from penstock.policy.static import Static
from penstock.sinks import CollectSink, collected
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant
from tests.waiting import LONG_S, until

RATE, TRACE_S = 60.0, 900.0  # far longer than the test, which ends when it has seen what it wants


class Passed:
    """Large enough to travel as a file, also to workers that come later."""

    def __init__(self) -> None:
        self.table = [f"{n:07}" for n in range(20_000)]

    def process(self, event: dict[str, Any]) -> dict[str, Any]:
        assert self.table[-1] == "0019999"
        return event


def two_levels(workers: ClusterWorkers, run: Run) -> TwoLevels:
    """E2DF's managers, which keep two slots free."""
    rules = LevelRules(
        every_s=1.0,
        region=RegionRules(spare=2),
        infrastructure=InfrastructureRules(most=2, start_within_s=LONG_S),
    )
    return TwoLevels("clustered", Static(1), workers, rules, sources=["numbers"], where=workers.where)


def test_workers_come_and_go_and_die_while_events_flow(collected_in: Path, tmp_path: Path) -> None:
    topology = Topology("clustered", pool=3)
    first = topology.operator("first", Passed(), inputs=topology.source("numbers"))
    topology.operator("end", CollectSink(collected_in), inputs=first)
    source = TraceSource(constant(RATE, TRACE_S), [{}])
    with StandaloneCluster(tmp_path / "cluster", StandaloneOptions(cores=16)) as cluster:
        await_workers(cluster, 2, LONG_S)
        pids = [cluster.pid(worker.name) for worker in cluster.list()]
        options = RunOptions(executors=2, slots_within_s=LONG_S, spark=spark_settings(cluster))
        with Run(topology, source, options=options) as run:
            workers = ClusterWorkers(cluster, run, Executors(run.spark))
            hosts = {place.host for place in run.places().values()}
            assert hosts == {"worker-1", "worker-2"}
            sits = workers.where("first", 1)
            assert sits in hosts
            assert workers.site("first", str(sits), active={0, 2}, pool=3) == 1
            assert workers.site("first", str(sits), active={0, 1, 2}, pool=3) is None

            new = workers.add("local", workers.sizes()["local"][0])
            assert workers.list()[2].state is WorkerState.STARTING
            until(lambda: workers.settle() or (len(workers.pauses) == 1 and not workers.changing))
            pids.append(cluster.pid(new))
            assert [worker.state for worker in workers.list()] == [WorkerState.AVAILABLE] * 3
            assert new in {place.host for place in run.places().values()}

            workers.remove("worker-1")
            assert workers.list()[0].state is WorkerState.DRAINING
            until(lambda: workers.settle() or (len(workers.pauses) == 2 and not workers.changing))
            assert [worker.name for worker in workers.list()] == ["worker-2", new]
            assert {place.host for place in run.places().values()} <= {"worker-2", new}

            managers = two_levels(workers, run)
            os.kill(cluster.pid("worker-2"), signal.SIGKILL)
            until(lambda: run.counters().restarts >= 1)
            until(lambda: workers.settle() or managers.step(run.clock.now()) or len(workers.pauses) == 3)
            assert [worker.name for worker in workers.list()] == [new, "worker-4"]
            assert {place.host for place in run.places().values()} == {new, "worker-4"}
            said = [str(entry.said) for entry in managers.diary.entries]
            assert any(
                one.startswith("infrastructure granted start ") and "slots are free, 2 should be" in one for one in said
            ), said
            pids.append(cluster.pid("worker-4"))

            assert run._driver is not None
            run._driver.ready_within_s = 0.2  # the next shift takes longer: a drain that fails
            restarts = run.counters().restarts
            workers.remove("worker-4")
            until(lambda: workers.settle() or (workers.failed and not workers.changing))
            assert "worker-4 leaves: " in str(workers.failed)
            assert [worker.state for worker in workers.list()] == [WorkerState.AVAILABLE] * 2
            run.stop_sources()
            assert run.wait_drained(LONG_S)
            assert run.counters().restarts == restarts  # the shift at work goes on as if nothing had been
            counters, pauses = run.fresh_counters(), workers.pauses
    numbers = {int(event_id) for event_id, _ in collected(collected_in)}
    assert numbers == set(range(counters.sources["numbers"]))
    assert [pause.why for pause in pauses] == ["worker-3 joins", "worker-1 leaves", "worker-4 joins"]
    assert not any(psutil.pid_exists(pid) for pid in pids)
    print(f"events stood still for {', '.join(f'{pause.seconds:.3f}' for pause in pauses)} s")
