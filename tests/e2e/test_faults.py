"""The loop live on Spark while things break: the stream goes on, the last plan holds, and it recovers by itself."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from penstock.apps import AppOptions, PayloadOptions, find_app
from penstock.control.declare import declared
from penstock.control.loop import Loop, Parts
from penstock.control.monitor import Monitor
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
from tests.waiting import LONG_S, until

RATE = 120.0
CUT_S = 4


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


def whole(loop: Loop) -> bool | None:
    """Whether all replicas were heard of in the last interval; None before there was one."""
    seen = loop.state.seen
    return None if seen is None or seen.snapshot is None else not seen.snapshot.incomplete


def await_step(loop: Loop) -> None:
    """Wait until the loop has made another step."""
    last = loop.state.last
    until(lambda: loop.state.last is not last)


def stored(folder: Path) -> int:
    """Events at the sink."""
    return sum(file.read_bytes().count(b"\n") for file in folder.glob("*.jsonl"))


def test_a_cut_channel_and_a_full_disk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """No replica hears the driver, and the store's disk is full, while 120 events/s go on as before, 480 and more.

    The source is longer than the test, which ends when it has seen what it wants.
    """
    caplog.set_level(logging.WARNING)
    topology, disk = twitter(tmp_path), FullDisk()
    source = TraceSource(constant(RATE, 900.0), find_app("twitter").payloads(PayloadOptions()))
    with Run(topology, source) as run:
        rules = IntervalRules(1.0, declared(topology), stale_after_s=2.0)
        recorder = Recorder(disk.write, retry_s=0.2)
        loop = Loop(Parts(Monitor(run, rules), guarded(Psps()), run, recorder=recorder), run.clock)
        control = threading.Thread(target=loop.run, args=(run.stopped,))
        control.start()
        until(lambda: sum(len(ids) for ids in run.active.values()) > 4 and disk.written)  # psps has sized the app
        run.cut_channel(True)
        disk.full = True
        await_step(loop)  # it may have been under way, on numbers from before
        await_step(loop)
        until(lambda: whole(loop) is False)
        sized, before, written = run.active, stored(tmp_path), len(disk.written)
        until(lambda: stored(tmp_path) > before + CUT_S * RATE, look_every_s=0.1)
        until(lambda: "disk is full" in caplog.text)
        held, seen = run.active, whole(loop)
        run.cut_channel(False)
        disk.full = False
        until(lambda: whole(loop) and len(disk.written) > written + CUT_S)
        run.stop_sources()
        assert run.wait_drained(LONG_S)
        count = run.fresh_counters().sources["tweets"]
    control.join(LONG_S)
    assert not control.is_alive()
    state = recorder.close()
    assert seen is False
    assert {name: len(ids) for name, ids in held.items()} == {name: len(ids) for name, ids in sized.items()}
    assert state.lost == 0
    assert len(disk.written) == state.written
    assert len({event_id for event_id, _ in collected(tmp_path)}) == count
