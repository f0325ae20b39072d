"""`Elastic` at work around a run that is only a plant: its page, orders over HTTP, the next driver."""

from __future__ import annotations

import http.client
import stat
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from penstock import Elastic, Freeze, Hold, Limit, SetTd, Stop, Topology, TraceSource, Unfreeze, UsePolicy, constant
from penstock.cli.main import app
from penstock.control.clock import SteadyClock
from penstock.errors import InputError
from penstock.metrics.counters import CheckpointStatus, RunCounters
from penstock.metrics.store import Store
from penstock.testing.clock import ManualClock
from penstock.testing.plant import FakeOperator, FakePlant
from penstock.ui.access import read_access, send
from tests.waiting import LONG_S, until


class PlantRun:
    """As much of a run as `Elastic` needs, in real time: 100 events a second for an operator of 15 ms."""

    def __init__(self, folder: Path, carried_on: int = 0) -> None:
        self.id, self.carried_on, self.folder = "run", carried_on, folder
        self.topology = Topology("mine", pool=8)
        self.topology.operator("work", len, inputs=self.topology.source("in"), execution_time_ms=15)
        self.sources = {"in": TraceSource(constant(100, duration_s=60), [{"n": 1}])}
        self._ended = threading.Event()
        self.clock = SteadyClock(self._ended)
        self._manual = ManualClock(self.clock.now())
        self.plant = FakePlant([FakeOperator("work", {"in": 1.0}, 0.015, pool=8)], self._manual)
        self.plant.rates["in"] = 100.0
        self.started = self.sources_stopped = False
        self.waited_s = 0.0
        self.told: Any = None  # who is told of jumps

    @property
    def active(self) -> dict[str, tuple[int, ...]]:
        return {"work": tuple(range(self.plant.active["work"]))}

    def begin_with(self, replicas: Mapping[str, int]) -> None:
        self.set_replicas("work", tuple(range(replicas["work"])))

    def start(self) -> None:
        self.started = True

    def stop(self, timeout_s: float) -> bool:
        self.waited_s = timeout_s
        self._ended.set()
        return True

    def stop_sources(self) -> None:
        self.sources_stopped = True

    def stopped(self) -> bool:
        return self._ended.is_set()

    def wait(self, timeout_s: float) -> bool:
        return self._ended.wait(timeout_s)

    def fresh_counters(self, timeout_s: float = 0.5) -> RunCounters:
        self._manual.advance(max(0.0, self.clock.now() - self._manual.now()))
        return self.plant.counters()

    def counters(self) -> RunCounters:
        return self.plant.counters()

    def set_replicas(self, operator: str, replicas: tuple[int, ...]) -> None:
        self.plant.set_replicas(operator, replicas)

    def publish_utilisation(self, _: Any) -> None:
        pass

    def watch_jumps(self, told: Any) -> None:
        self.told = told

    def faults(self) -> list[Any]:
        return []

    def checkpoint_status(self) -> CheckpointStatus:
        return CheckpointStatus()


def elastic(folder: Path, carried_on: int = 0) -> tuple[Elastic, PlantRun]:
    run: Any = PlantRun(folder, carried_on)
    live = Elastic(run, "psps", td_s=0.3, warm_up_s=0.0, store=folder / "metrics.db", ui="0")
    return live, run


def test_jumps_wake_the_loop_unless_that_is_not_wanted(tmp_path: Path) -> None:
    """There was no way to see what a long interval alone comes to."""
    for wake in (True, False):
        run: Any = PlantRun(tmp_path)
        with Elastic(run, "psps", td_s=0.2, warm_up_s=0.0, wake=wake) as live:
            until(lambda live=live: live.loop is not None and live.loop_state.last is not None)
            assert (run.told is not None) == wake


def active(run: PlantRun) -> int:
    return run.plant.active["work"]


def test_orders_reach_the_loop_over_http_and_hold_for_the_next_driver(tmp_path: Path) -> None:
    live, run = elastic(tmp_path)
    with live:
        access = read_access(tmp_path)
        assert access == live.access
        assert stat.S_IMODE((tmp_path / "steer.json").stat().st_mode) == 0o600
        until(lambda: active(run) == 2)  # 1.5 busy
        send(access, Hold("work", 6), "Ana")
        until(lambda: active(run) == 6)
        with pytest.raises(InputError, match="has a pool of 8; got 9 replicas"):
            send(access, Hold("work", 9), "Ana")
        done = CliRunner().invoke(app, ["ctl", "freeze", str(tmp_path), "--who", "Ben"])
        assert (done.exit_code, done.output) == (0, "in force: frozen; work by hand: 6 replicas\n")
        live.steer(SetTd(0.2))
        live.steer(UsePolicy("static:4"))
        until(lambda: live.loop is not None and live.loop.td_s == 0.2)
        assert active(run) == 6
        CliRunner().invoke(app, ["ctl", "stop", str(tmp_path), "--within", "7"])
        assert not live.wait(LONG_S)
        assert (live.stopping, run.sources_stopped) == (True, True)
    assert run.waited_s == 7.0
    assert not (tmp_path / "steer.json").exists()
    second, again = elastic(tmp_path, carried_on=1)
    with second:
        assert active(again) == 6
        told = ("frozen", "work by hand: 6 replicas", "policy static:4", "td 0.2 s")
        assert second.steering.told == told
        assert second.access is not None
        assert second.access.token != access.token
        second.steer(Unfreeze())
        second.steer(Limit("work", most=3))
        second.steer(Hold("work", 1))
        until(lambda: active(again) == 1)
        CliRunner().invoke(app, ["ctl", "release", str(tmp_path), "work"])
        until(lambda: active(again) == 3)
    store = Store(str(tmp_path / "metrics.db"), must_exist=True)
    kept = [(row.who.split(" ")[0], row.order["order"]) for row in store.steering("run")]
    reasons = {row.reason for row in store.decisions("run.1")}
    store.close()
    me = kept[2][0]
    assert kept == [("Ana", "hold"), ("Ben", "freeze"), (me, "td"), (me, "policy"), (me, "stop")]
    assert any(reason.endswith("; at most 3 by order") for reason in reasons)


def test_a_frozen_run_begins_with_the_replicas_that_it_had(tmp_path: Path) -> None:
    live, run = elastic(tmp_path)
    with live:
        live.steer(Hold("work", 5))
        until(lambda: active(run) == 5)
        live.steer(Freeze())
        CliRunner().invoke(app, ["ctl", "release", str(tmp_path), "work"])
        numbers = len(live.recording.played.entered)
        until(lambda: len(live.recording.played.entered) > numbers + 1)
        assert active(run) == 5
    second, again = elastic(tmp_path, carried_on=1)
    with second:
        assert active(again) == 5


def test_who_watches_sees_the_run_end(tmp_path: Path) -> None:
    """The page was closed before the store knew that the run had ended: viewers saw a connection that was lost."""
    live, _ = elastic(tmp_path)
    live.start()
    until(lambda: live.loop_state.seen)
    connection = http.client.HTTPConnection(urlsplit(str(live.ui_url)).netloc, timeout=LONG_S)
    connection.request("GET", f"/api/runs/{live.name}/live")
    answer = connection.getresponse()
    assert answer.readline()
    live.steer(Stop())
    stopping = threading.Thread(target=live.stop)
    stopping.start()
    told = answer.read().decode()
    stopping.join()
    connection.close()
    assert "event: ended" in told
