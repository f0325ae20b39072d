"""The standby: made when it is wanted, given to whoever needs the next attempt, and never in the way of the run."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.engine.driver import restarts, standby
from penstock.engine.driver import supervisor as supervising
from penstock.engine.driver.causes import Cause, Kind
from penstock.engine.driver.standby import Standbys
from penstock.engine.driver.supervisor import Supervisor
from penstock.engine.options import RunOptions
from tests.waiting import until

from .fake_query import FakeQuery

EXITED = RuntimeError("Python worker exited unexpectedly")
SILENT = Cause(Kind.ENVIRONMENT, "count/1 has said nothing for 10 s")


class World:
    """Spark and the attempts of a shift, in the test's hands."""

    finishing = False

    def __init__(self) -> None:
        self.queries: list[FakeQuery] = []
        self.called: list[int] = []
        self.is_wanted = self.all_there = self.as_shipped = True
        self.fault: Exception | None = None

    # Spark's part

    def start(self, program: Any) -> Any:
        if self.fault is not None and program.startswith("standby"):
            raise self.fault
        self.queries.append(FakeQuery(program))
        return self.queries[-1]

    def can_start(self) -> bool:
        return True

    def complaints(self, query: Any) -> list[str]:
        return []

    # the attempts'

    def wanted(self) -> bool:
        return self.is_wanted

    def program(self, generation: int) -> Any:
        return f"standby {generation}"

    def fits(self, program: Any) -> bool:
        return self.as_shipped

    def call(self, generation: int) -> None:
        if self.fault is not None:
            raise self.fault
        self.called.append(generation)

    def there(self, generation: int) -> bool:
        return self.all_there

    @property
    def programs(self) -> list[str]:
        return [one.program for one in self.queries]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (standby, supervising):
        monkeypatch.setattr(module, "LOOK_EVERY_S", 0.002)
    monkeypatch.setattr(standby, "PAUSE_S", 0.004)
    monkeypatch.setattr(restarts, "FIRST_PAUSE_S", 0.004)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def supervise(world: World) -> Iterator[Callable[[], Supervisor]]:
    made: list[Supervisor] = []

    def started() -> Supervisor:
        numbers = itertools.count(5)
        standbys = Standbys(world, world, numbers)
        supervisor = Supervisor(world, lambda one: f"{one}", RunOptions(), numbers, lambda: 0, standbys)  # type: ignore[arg-type,return-value]
        made.append(supervisor)
        supervisor.start()
        return supervisor

    yield started
    for supervisor in made:
        supervisor.stop()
        assert all(not one.isActive for one in world.queries)


def test_the_standby_goes_to_work_and_the_next_one_is_made(world: World, supervise: Any) -> None:
    supervisor = supervise()
    until(lambda: world.programs == ["5", "standby 6"])
    assert (supervisor.generation, world.called) == (5, [])
    world.queries[0].kill(EXITED)
    until(lambda: world.called == [6])
    until(lambda: world.programs == ["5", "standby 6", "standby 7"])
    assert (supervisor.generation, supervisor.restarts, supervisor.running) == (6, 1, world.queries[1])
    world.queries[1].kill(EXITED)
    until(lambda: supervisor.generation == 7)
    assert world.called == [6, 7]


def test_there_is_none_while_it_is_not_wanted(world: World, supervise: Any) -> None:
    world.is_wanted = False
    supervisor = supervise()
    world.queries[0].kill(EXITED)
    until(lambda: supervisor.restarts == 1)
    assert (world.programs, world.called) == (["5", "6"], [])


def test_one_that_dies_is_made_anew_and_the_run_does_not_notice(world: World, supervise: Any) -> None:
    supervisor = supervise()
    until(lambda: len(world.queries) == 2)
    world.queries[1].kill(EXITED)
    until(lambda: world.programs == ["5", "standby 6", "standby 7"])
    assert (supervisor.generation, supervisor.restarts, supervisor.failure) == (5, 0, None)


def test_one_that_cannot_be_made_is_no_fault_of_the_run(world: World, supervise: Any) -> None:
    world.fault = RuntimeError("no slots")
    supervisor = supervise()
    world.queries[0].kill(EXITED)
    until(lambda: supervisor.restarts == 1)
    assert (world.called, supervisor.failure) == ([], None)
    world.fault = None
    until(lambda: world.programs[-1].startswith("standby"))


def test_one_that_died_along_with_the_attempt_at_work_is_not_called(world: World, supervise: Any) -> None:
    """A lost executor takes processes of both."""
    supervisor = supervise()
    until(lambda: len(world.queries) == 2)
    with supervisor._changing:
        for query in world.queries:
            query.kill(EXITED)
    until(lambda: supervisor.restarts == 1)
    assert (world.called, world.programs[2]) == ([], "7")


def test_one_that_was_shipped_something_else_is_ended_and_not_called(world: World, supervise: Any) -> None:
    supervisor = supervise()
    until(lambda: len(world.queries) == 2)
    world.as_shipped = False
    world.queries[0].kill(EXITED)
    until(lambda: supervisor.restarts == 1)
    until(lambda: world.queries[1].stopped)
    assert world.called == []


def test_a_call_that_fails_counts_as_a_start_that_fails(world: World, supervise: Any) -> None:
    supervisor = supervise()
    until(lambda: len(world.queries) == 2)
    world.fault = OSError("No space left on device")
    world.queries[0].kill(EXITED)
    until(lambda: world.queries[1].stopped)
    until(lambda: supervisor.cause is not None and "No space left" in supervisor.cause.text)
    world.fault = None
    until(lambda: supervisor.running is not None and supervisor.running.isActive)
    assert supervisor.failure is None


def test_one_with_a_silent_process_is_ended(world: World, supervise: Any) -> None:
    supervisor = supervise()
    until(lambda: len(world.queries) == 2)
    supervisor.give_up(6, SILENT)
    supervisor.give_up(4, SILENT)  # another's, heard at the same moment
    until(lambda: world.queries[1].stopped)
    assert (world.queries[0].isActive, supervisor.generation) == (True, 5)


def test_its_slots_can_be_had_for_another_shift(world: World, supervise: Any) -> None:
    supervisor = supervise()
    until(lambda: len(world.queries) == 2)
    world.is_wanted = False
    supervisor.end_standby()
    assert [one.isActive for one in world.queries] == [True, False]
    supervisor.end_standby()  # there is none: nothing to do


def test_it_is_not_ended_before_all_its_processes_are_there(world: World, supervise: Any) -> None:
    """Spark would take the Python daemon for gone, and end it with the workers of the attempt at work."""
    world.all_there = False
    supervisor = supervise()
    until(lambda: len(world.queries) == 2)
    world.as_shipped = world.is_wanted = False
    asked: list[int] = []

    def there(generation: int) -> bool:
        asked.append(generation)
        return len(asked) > 3

    world.there = there  # type: ignore[method-assign]
    supervisor.end_standby()  # one that does not fit is ended in a thread of its own
    until(lambda: world.queries[1].stopped)
    assert asked == [6] * 4


def test_renewing_takes_it_too(world: World, supervise: Any) -> None:
    supervisor = supervise()
    until(lambda: len(world.queries) == 2)
    order: list[Any] = []
    supervisor.renew(lambda: order.append(("between", world.called.copy())))
    assert (order, world.called, supervisor.generation) == ([("between", [])], [6], 6)
    assert world.queries[0].stopped


def test_one_that_is_left_makes_no_other(world: World, supervise: Any) -> None:
    world.is_wanted = False
    supervisor = supervise()
    assert supervisor.leave(5)
    world.is_wanted = True
    world.queries[0].kill(EXITED)
    until(lambda: supervisor.died)
    assert world.programs == ["5"]


# ── a process that has ended, and Spark has not noticed ─────────────────────────────────────────────────────────────


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as one:
        yield one
        one.kill()


def test_one_goes_to_work_before_spark_notices_that_a_process_has_ended(
    world: World, supervise: Any, process: subprocess.Popen[bytes]
) -> None:
    supervisor = supervise()
    until(lambda: len(world.queries) == 2)
    process.kill()
    supervisor.suspect(5, process.pid, "the process of count/1 has ended")
    until(lambda: world.called == [6])
    assert supervisor.cause == Cause(Kind.ENVIRONMENT, "the process of count/1 has ended")
    until(lambda: world.queries[0].stopped)


def test_a_process_that_has_only_lost_its_connection_is_no_reason(
    world: World, supervise: Any, process: subprocess.Popen[bytes]
) -> None:
    supervisor = supervise()
    until(lambda: len(world.queries) == 2)
    supervisor.suspect(5, process.pid, "the process of count/1 has ended")
    until(lambda: supervisor._suspected is None)
    process.kill()
    supervisor.suspect(4, process.pid, "of an attempt before")
    until(lambda: supervisor._suspected is None)
    assert (world.called, world.queries[0].isActive) == ([], True)


def test_without_a_standby_spark_is_waited_for(world: World, supervise: Any, process: subprocess.Popen[bytes]) -> None:
    """It says what has happened, and whether it makes sense to begin again."""
    world.is_wanted = False
    supervisor = supervise()
    process.kill()
    supervisor.suspect(5, process.pid, "the process of count/1 has ended")
    until(lambda: supervisor._suspected is None)
    assert (len(world.queries), world.queries[0].isActive) == (1, True)
