"""The driver without Spark: what an attempt begins from, and what sinks are told before it does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.common.storage import storage_at
from penstock.control.clock import SteadyClock
from penstock.engine.driver.attempts import Attempted
from penstock.engine.driver.catching_up import CatchingUp
from penstock.engine.driver.causes import Cause, Kind
from penstock.engine.driver.channel import ControlServer
from penstock.engine.driver.driver import Driver
from penstock.engine.driver.records import Record, Records
from penstock.engine.driver.routing import RoutingTable
from penstock.engine.driver.shifts import Shifts
from penstock.engine.driver.tally import Tally
from penstock.engine.options import RunOptions
from penstock.engine.plan.job import Job
from penstock.engine.plan.layout import full_layout
from penstock.engine.plan.program import Program
from penstock.engine.protocol.messages import AtWork, Report, Reports, Restore, RestoreQuery, Tables, TablesQuery
from penstock.engine.protocol.progress import first_batch
from penstock.engine.run_file import RunFile, describe, run_file
from penstock.errors import EngineError
from penstock.metrics.counters import ReplicaCounters
from penstock.sinks import waiting
from penstock.sinks.base import Recovery
from penstock.sinks.waiting import Waiting
from penstock.sources import TraceSource
from penstock.state.files import StateFiles
from penstock.state.handover import Table
from penstock.state.segments import Segment
from penstock.topology import Topology
from penstock.workload import constant
from tests.waiting import LONG_S, until


def count(event: Any, state: dict[str, int]) -> Any:
    return event


class Store:
    """A sink that is told what is known when an attempt begins."""

    def __init__(self) -> None:
        self.told: list[Recovery] = []

    def process(self, event: Any) -> None: ...

    def recover(self, recovery: Recovery) -> None:
        self.told.append(recovery)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def files(tmp_path: Path) -> StateFiles:
    return StateFiles(tmp_path / "state" / "count")


@pytest.fixture
def opened(store: Store, tmp_path: Path) -> Iterator[Callable[[], Driver]]:
    """`opened()`: a driver of a run whose query had been started five times."""
    servers: list[ControlServer] = []

    def driver() -> Driver:
        topology = Topology("t", pool=2)
        counted = topology.operator("count", count, inputs=topology.source("s"), key="word", key_groups=2)
        topology.operator("store", store, inputs=counted)
        spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"))
        source = TraceSource(constant(10, duration_s=1), [1])
        job = Job("run", topology, {"s": source}, RunOptions(), spark, tmp_path)
        servers.append(ControlServer("run"))
        file = RunFile("run", "realtime", 1, describe(topology), generation=4)
        routing = RoutingTable(topology, {}, servers[-1])
        return Driver(job, file, servers[-1], routing, Tally(topology), SteadyClock(threading.Event()))

    yield driver
    for server in servers:
        server.stop()


def committed(folder: Path, **more: Any) -> None:
    Records(folder / "checkpoints").write(Record(number=7, generation=3, at_s=0.0, cursors={}, sent={}, **more))


def test_a_run_that_is_carried_on_waits_for_room_on_the_disk_and_a_new_one_does_not(
    opened: Callable[[], Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.common.files.LOOK_EVERY_S", 0.001)
    tries = iter([OSError(28, "No space left on device")] * 2)

    def write() -> str:
        if (fault := next(tries, None)) is not None:
            raise fault
        return "written"

    driver = opened()
    assert driver.with_room(write) == "written"
    driver.first_shift = 0
    tries = iter([OSError(28, "No space left on device")])
    with pytest.raises(OSError, match="No space left"):
        driver.with_room(write)


def test_sinks_are_told_of_the_attempt_and_the_last_checkpoint(
    opened: Callable[[], Driver], store: Store, tmp_path: Path
) -> None:
    folder = storage_at(tmp_path / "sinks" / "store")
    opened().recover(5)
    committed(tmp_path, parts={"store": {0: "a.jsonl", 1: "b.jsonl"}})
    opened().recover(6)
    assert store.told == [
        Recovery("run", "store", 5, 0, {}, folder),
        Recovery("run", "store", 6, 7, {0: "a.jsonl", 1: "b.jsonl"}, folder),
    ]


def test_no_attempt_begins_from_state_that_is_not_as_it_was(
    opened: Callable[[], Driver], store: Store, files: StateFiles, tmp_path: Path
) -> None:
    segment = files.write(Segment(7, 3, 0), [(0, True, b"state")])
    committed(tmp_path, state={"count": [segment]})
    driver = opened()
    driver.recover(5)
    file = tmp_path / "state" / "count" / segment.name
    file.write_bytes(b"x" + file.read_bytes()[1:])
    with pytest.raises(EngineError, match=r"7\.3\.0 is not as it was written"):
        driver.recover(6)
    file.unlink()
    with pytest.raises(EngineError, match=r"7\.3\.0 of a committed checkpoint is missing"):
        driver.recover(7)
    assert [one.attempt for one in store.told] == [5]  # nothing was cleaned up


def test_what_was_on_the_move_is_forgotten(opened: Callable[[], Driver], files: StateFiles, tmp_path: Path) -> None:
    with files.hand_over(4, 2, 0) as add:
        add(0, True, b"state")
    opened().recover(5)
    assert list((tmp_path / "state" / "count" / "moves").iterdir()) == []


def test_replicas_are_told_of_which_segments_their_state_is(
    opened: Callable[[], Driver], files: StateFiles, tmp_path: Path
) -> None:
    segment = files.write(Segment(7, 3, 0), [(0, True, b"state")])
    question = RestoreQuery(5, "count")
    asked: list[Any] = []
    for answer in (Restore(0, []), Restore(7, [segment])):
        driver = opened()
        driver.work = SimpleNamespace(check=asked.append)  # type: ignore[assignment]
        assert driver.answer(question) == answer
        committed(tmp_path, state={"count": [segment]})
    assert asked == [question, question]


@pytest.mark.parametrize("starting", [False, True])
def test_only_an_attempt_that_works_alone_begins_with_what_was_wished_for(
    opened: Callable[[], Driver], starting: bool
) -> None:
    driver = opened()
    driver.work = SimpleNamespace(check=lambda _: None, is_starting=lambda _: starting)  # type: ignore[assignment]
    if starting:
        driver._handovers.hold("shift")
    driver._routing.activate("count", [1])
    table = Table(1, (0, 0)) if starting else Table(2, (1, 1))
    assert driver.answer(TablesQuery(5)) == Tables({"count": table})


def test_shifts_are_numbered_beyond_those_of_earlier_drivers(opened: Callable[[], Driver]) -> None:
    work = opened().work
    assert isinstance(work, Shifts)
    assert work.next == 5


def program_of(driver: Driver, shift: int) -> Callable[[int], Program]:
    """What a shift's supervisor calls before each start of its query."""
    query: Any = SimpleNamespace()
    layout = full_layout(driver._job.topology, 1)
    return driver.attempts.supervise(query, Attempted(shift, layout, lambda _: None), lambda: 0)._program


def test_an_attempt_that_is_late_does_not_take_the_run_s_count_back(
    opened: Callable[[], Driver], tmp_path: Path
) -> None:
    """Two shifts began an attempt at the same time: one took number 7, the other 8, and 7 was written last.

    The next driver would then have begun with 8 once more, and what the first 8 had left in sinks would have passed for
    its own: it is only cleaned up of earlier attempts.
    """
    driver = opened()
    programs = [program_of(driver, shift) for shift in (5, 6)]
    programs[1](8)
    programs[0](7)
    file = run_file(tmp_path, driver._job.topology, RunOptions(), "other")
    assert file.generation == 8


def test_attempts_that_begin_at_the_same_time_do_not_disturb_each_other(
    opened: Callable[[], Driver], tmp_path: Path
) -> None:
    """Both wrote the run's file under the same temporary name, and the second found it gone."""
    driver = opened()
    programs = [program_of(driver, shift) for shift in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(program, 10 * turn + n) for turn in range(30) for n, program in enumerate(programs)]:
            done.result()
    assert run_file(tmp_path, driver._job.topology, RunOptions(), "other").generation == 297


# ── after a death ───────────────────────────────────────────────────────────────────────────────────────────────────

EXITED = Cause(Kind.ENVIRONMENT, "Python worker exited unexpectedly (crashed)")


@pytest.fixture
def dying(opened: Callable[[], Driver]) -> Iterator[Driver]:
    """A driver of a query that can die; no replica is there to tell how far it is."""
    driver = opened()
    driver.work = SimpleNamespace(lasting=False, is_ready=lambda: False, stop=lambda: None)  # type: ignore[assignment]
    yield driver
    driver.end()


def test_whole_pools_are_at_work_after_a_death(dying: Driver) -> None:
    dying.died(EXITED, 0.0, 6)
    assert program_of(dying, 5)(6).routing["count"].active == (0, 1)
    assert dying._routing.active["count"] == (0,)


def test_pools_stay_as_they_are_where_that_is_wanted(dying: Driver) -> None:
    dying._catching_up = CatchingUp(None, dying._caught_up, dying.checkpoints.soon)
    dying.died(EXITED, 0.0, 6)
    assert program_of(dying, 5)(6).routing["count"].active == (0,)


def test_a_process_that_is_lost_is_looked_at_unless_one_was_about_to_fail(dying: Driver) -> None:
    """An operator's error ends its process, too, and Spark then ends the others: it knows why, and is asked."""
    suspected: list[tuple[int, int, str]] = []
    dying.work.suspect = lambda *given: suspected.append(given)  # type: ignore[method-assign]
    dying.lost(AtWork(5, "count", 0))  # of which nothing was ever heard
    report = Report(5, first_batch(5), "count", 0, ReplicaCounters())
    dying._tally.current = 5
    dying._tally.enter(Reports("host", 4711, 0, [report]), 0.0)
    dying.lost(AtWork(5, "count", 0))
    assert suspected == [(5, 4711, "the process of count/0 has ended")]
    dying._server._failing.append(5)
    dying.lost(AtWork(5, "count", 0))
    assert len(suspected) == 1


def test_deaths_that_say_nothing_make_the_next_attempt_careful_and_then_an_event_deadly(dying: Driver) -> None:
    for generation in (6, 7, 8, 9):
        dying.lost(AtWork(generation - 1, "count", 0, "41"))
        dying.died(EXITED, 0.0, generation)
        program = program_of(dying, 5)(generation)
        assert program.careful == (generation > 6)
        assert program.deadly == ({"count": frozenset({"41"})} if generation == 9 else {})


class Waits(Store):
    """A sink whose destination is away when it is to recover."""

    def recover(self, recovery: Recovery) -> None:
        super().recover(recovery)
        Waiting("table 'x'").pause("refused")


def test_a_sink_that_waits_before_an_attempt_waits_no_longer_than_the_run(
    opened: Callable[[], Driver], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`stop()` during a restart waited for the database for up to a quarter of an hour."""
    monkeypatch.setattr(waiting, "FIRST_PAUSE_S", 10 * LONG_S)
    store.__class__ = Waits
    driver = opened()
    driver.work = SimpleNamespace(stop=lambda: None)  # type: ignore[assignment]
    with ThreadPoolExecutor() as pool:
        recovering = pool.submit(driver.recover, 5)
        until(lambda: store.told)
        driver.end()
        with pytest.raises(EngineError, match="table 'x': no longer waited for, as the run ends; refused"):
            recovering.result(LONG_S)


def test_a_token_is_left_for_workers_and_the_last_one_removed(opened: Callable[[], Driver], tmp_path: Path) -> None:
    (tmp_path / "seen-before").write_bytes(b"run")
    token = opened().attempts.leave_token()
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == [token]
    assert token != opened().attempts.leave_token()
