"""The loop live on Spark while things break: the stream goes on, the last plan holds, and it recovers by itself."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from penstock.apps import AppOptions, PayloadOptions, find_app
from penstock.control.declare import declared
from penstock.control.loop import Loop, Parts
from penstock.control.monitor import Monitor
from penstock.control.step import Step
from penstock.engine.run import Run
from penstock.metrics.interval import IntervalRules
from penstock.metrics.recorder import Recorder
from penstock.metrics.rows import IntervalRecord
from penstock.policy.guards import guarded
from penstock.policy.psps import Psps
from penstock.sinks import CollectSink, collected
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant

pytestmark = pytest.mark.timeout(240)

RATE = 120.0
CUT_S = 10.0


class FullDisk:
    """A store that cannot be written for a while."""

    def __init__(self) -> None:
        self.full = False
        self.written: list[IntervalRecord] = []

    def write(self, record: IntervalRecord) -> None:
        if self.full:
            raise OperationalError("INSERT", {}, Exception("database or disk is full"))
        self.written.append(record)


def twitter(folder: Path) -> Topology:
    options = AppOptions(sink=lambda _name, _ms: CollectSink(folder), pools={"store": 2}, pool=4)
    return find_app("twitter").build(options)


def test_a_cut_channel_and_a_full_disk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """For 10 s no replica hears the driver and the store's disk is full; 120 events/s go on as before."""
    caplog.set_level(logging.WARNING)
    topology, disk = twitter(tmp_path), FullDisk()
    source = TraceSource(constant(RATE, 34), find_app("twitter").payloads(PayloadOptions()))
    steps: list[Step] = []
    with Run(topology, source) as run:
        rules = IntervalRules(1.0, declared(topology), stale_after_s=1.0)
        recorder = Recorder(disk.write, retry_s=0.2)
        loop = Loop(Parts(Monitor(run, rules), guarded(Psps()), run, recorder=recorder), run.clock)
        control = threading.Thread(target=loop.run, args=(run.stopped,))
        control.start()
        time.sleep(8)
        run.cut_channel(True)
        disk.full = True
        time.sleep(2)  # the interval that was under way may still be acted on
        sized = run.active
        before = len(collected(tmp_path))
        for _ in range(int(CUT_S)):
            time.sleep(1)
            steps.append(loop.state.seen or pytest.fail("the loop has not seen an interval"))
        during = len(collected(tmp_path)) - before
        held = run.active
        run.cut_channel(False)
        disk.full = False
        assert run.wait(60)
        recovered = loop.state.seen
    control.join(10)
    state = recorder.close()
    assert sum(len(ids) for ids in sized.values()) > 4, "psps had sized the app before the cut"
    assert {name: len(ids) for name, ids in held.items()} == {name: len(ids) for name, ids in sized.items()}
    assert during > 0.7 * RATE * CUT_S
    assert any(step.snapshot is not None and step.snapshot.incomplete for step in steps)
    assert recovered is not None
    assert recovered.snapshot is not None
    assert not recovered.snapshot.incomplete
    assert state.lost == 0
    assert len(disk.written) == state.written > 20
    assert "disk is full" in caplog.text
    assert len({event_id for event_id, _ in collected(tmp_path)}) == source.total
