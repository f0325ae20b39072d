"""The supervisor: a query that dies is started again, as decided, and what it died of is said in a sentence."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.driver import restarts
from penstock.engine.driver import supervisor as module
from penstock.engine.driver.causes import Cause, Kind
from penstock.engine.driver.supervisor import Supervisor
from penstock.engine.options import RunOptions
from tests.waiting import LONG_S

from .fake_query import FakeQuery

Tools = SimpleNamespace


class Starter:
    """Starts queries and keeps them; some starts fail, some queries are dead from the start."""

    def __init__(self) -> None:
        self.queries: list[FakeQuery] = []
        self.programs: list[Any] = []
        self.times_s: list[float] = []
        self.finishing = False
        self.refuse: Exception | None = None
        self.said: list[str] = []  # by tasks that failed
        self.born_dead: Exception | None = None
        self.there = True

    def can_start(self) -> bool:
        return self.there

    def start(self, program: Any) -> Any:
        self.programs.append(program)
        self.times_s.append(time.monotonic())
        if self.refuse is not None:
            raise self.refuse
        self.queries.append(FakeQuery())
        if self.born_dead is not None:
            self.queries[-1].kill(self.born_dead)
        return self.queries[-1]

    def complaints(self, query: Any) -> list[str]:
        assert query in self.queries
        return self.said


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.002)
    monkeypatch.setattr(restarts, "FIRST_PAUSE_S", 0.004)


@pytest.fixture
def starter() -> Starter:
    return Starter()


@pytest.fixture
def supervise(starter: Starter) -> Iterator[Callable[..., Supervisor]]:
    made: list[Supervisor] = []

    def started(**options: Any) -> Supervisor:
        supervisor = Supervisor(starter, lambda generation: ("program", generation), RunOptions(**options))
        made.append(supervisor)
        supervisor.start()
        return supervisor

    yield started
    for supervisor in made:
        supervisor.stop()
        assert not supervisor._thread.is_alive()


def test_a_query_that_dies_is_started_again_as_a_new_generation(starter: Starter, supervise: Any, tools: Tools) -> None:
    supervisor = supervise()
    assert (starter.programs, supervisor.generation, supervisor.restarts) == ([("program", 0)], 0, 0)
    starter.queries[0].kill(RuntimeError("a worker was killed"))
    tools.until(lambda: len(starter.queries) == 2)
    assert starter.programs[-1] == ("program", 1)
    tools.until(lambda: supervisor.restarts == 1)
    assert (supervisor.generation, str(supervisor.cause), supervisor.failure) == (1, "a worker was killed", None)


def test_a_living_query_is_left_alone(starter: Starter, supervise: Any) -> None:
    supervisor = supervise()
    time.sleep(0.02)
    assert (len(starter.queries), supervisor.restarts) == (1, 0)


SILENT = Cause(Kind.ENVIRONMENT, "count/1 has said nothing for 10 s")


def test_an_attempt_that_is_given_up_is_ended_and_started_again(starter: Starter, supervise: Any, tools: Tools) -> None:
    """A process that had stopped for good kept the run without checkpoints for ever; Spark saw nothing of it."""
    supervisor = supervise(retries=0)  # it is the environment's fault
    supervisor.give_up(0, SILENT)
    tools.until(lambda: supervisor.restarts == 1)
    assert (starter.queries[0].stopped, supervisor.cause) == (True, SILENT)
    starter.queries[1].kill(RuntimeError("broken"))
    assert str(tools.until(lambda: supervisor.failure)) == "the query died: broken"


def test_only_the_attempt_that_is_meant_is_given_up(starter: Starter, supervise: Any) -> None:
    supervisor = supervise()
    supervisor.give_up(7, SILENT)
    time.sleep(0.02)
    assert (len(starter.queries), starter.queries[0].stopped) == (1, False)


def test_after_its_retries_it_is_given_up_with_the_last_cause(starter: Starter, supervise: Any, tools: Tools) -> None:
    starter.born_dead = RuntimeError("broken for good")
    supervisor = supervise(retries=3)
    failure = tools.until(lambda: supervisor.failure)
    assert str(failure) == "the query died 4 times in a row without progress; the last time: broken for good"
    assert (supervisor.restarts, len(starter.queries)) == (3, 4)


def test_an_event_that_fails_again_in_the_same_way_is_the_end(starter: Starter, supervise: Any, tools: Tools) -> None:
    """It used to be tried six times, to say then what was known after the second."""
    said = "operator 'parse' (app.py:3): ValueError: no such number; on event 41: {'n': 'x'}"
    starter.born_dead = RuntimeError(f"Traceback\npenstock.errors.EngineError: {said}\n\tat Java")
    supervisor = supervise(retries=5)
    failure = tools.until(lambda: supervisor.failure)
    assert str(failure) == f"an event failed in the same way each time: {said}"
    assert (supervisor.restarts, len(starter.queries)) == (1, 2)


LOST_ITS_SENDER = "Lost task 3.0: Connection to streaming shuffle writer 5 closed before termination"
LOST_ITS_READER = "Lost task 0.0 in stage 0.0 (TID 0): io.netty.channel.StacklessClosedChannelException"


@pytest.mark.parametrize("consequence", [LOST_ITS_SENDER, LOST_ITS_READER])
def test_of_tasks_that_fail_one_after_another_the_first_tells_the_cause(
    starter: Starter, supervise: Any, tools: Tools, consequence: str
) -> None:
    """An operator's error was often hidden: those beside it fail right after it, and Spark says what it hears first."""
    supervisor = supervise(retries=0)
    said = "operator 'parse' (app.py:3): ValueError: no; on event 41: {'n': 'x'}"
    starter.said = [consequence, EXITED_LOG, f"Traceback\npenstock.errors.EngineError: {said}\n\tat Java"]
    starter.queries[0].kill(RuntimeError(consequence))
    failure = tools.until(lambda: supervisor.failure)
    assert str(failure) == f"the query died: {said}"


@pytest.mark.parametrize("consequence", [LOST_ITS_SENDER, LOST_ITS_READER])
def test_a_task_that_lost_another_is_all_there_is_to_tell(
    starter: Starter, supervise: Any, tools: Tools, consequence: str
) -> None:
    """A worker that was killed counted as a fault of the program if its sender was heard first."""
    supervisor = supervise(retries=0)
    starter.said = [consequence]
    starter.queries[0].kill(RuntimeError(consequence))
    tools.until(lambda: len(starter.queries) == 2)  # the environment's, as far as is known
    assert (supervisor.cause, supervisor.failure) == (Cause(Kind.CONSEQUENCE, consequence), None)


def test_a_cause_that_cannot_be_looked_up_does_not_end_the_run(starter: Starter, supervise: Any, tools: Tools) -> None:
    supervise(retries=0)
    starter.complaints = lambda _: 1 / 0  # type: ignore[assignment,method-assign]
    starter.queries[0].kill(RuntimeError(LOST_ITS_SENDER))
    tools.until(lambda: len(starter.queries) == 2)


def test_when_spark_has_ended_the_run_has_too(starter: Starter, supervise: Any, tools: Tools) -> None:
    """A signal to the whole process group ends the JVM: what is refused then was tried again, for ever."""
    supervisor = supervise(retries=5)
    starter.there, starter.refuse = False, ConnectionRefusedError(111, "Connection refused")
    starter.queries[0].kill(RuntimeError("Python worker exited unexpectedly"))
    failure = tools.until(lambda: supervisor.failure)
    assert str(failure) == "Spark itself has ended, and the query with it: Python worker exited unexpectedly"
    assert len(starter.programs) == 1


def test_without_retries_the_first_death_is_the_end(starter: Starter, supervise: Any, tools: Tools) -> None:
    supervisor = supervise(retries=0)
    starter.queries[0].kill(None)
    failure = tools.until(lambda: supervisor.failure)
    assert str(failure) == "the query died: it ended without saying why"
    assert len(starter.queries) == 1


def test_a_run_that_gets_on_between_deaths_is_never_given_up(starter: Starter, tools: Tools) -> None:
    """Six deaths within ten minutes used to end a run for good, though it had made checkpoints in between."""
    committed = [0]
    options = RunOptions(retries=1)
    supervisor = Supervisor(starter, lambda generation: generation, options, checkpoints=lambda: committed[0])
    supervisor.start()
    for number in range(20):
        tools.until(lambda number=number: len(starter.queries) == number + 1)
        committed[0] += 1
        starter.queries[-1].kill(RuntimeError("penstock.errors.EngineError: a fault of ours"))
    tools.until(lambda: len(starter.queries) == 21)
    assert (supervisor.failure, supervisor.restarts) == (None, 20)
    supervisor.stop()


def test_a_query_that_cannot_be_started_again_counts_as_dead(starter: Starter, supervise: Any, tools: Tools) -> None:
    supervisor = supervise(retries=2)
    starter.refuse = RuntimeError("no checkpoint")
    starter.queries[0].kill(RuntimeError("x"))
    failure = tools.until(lambda: supervisor.failure)
    last = "it could not be started again: no checkpoint"
    expected = f"the query died 3 times in a row without progress; the last time: {last}"
    assert str(failure) == expected


def test_a_query_that_ends_when_the_sources_are_stopped_has_done_its_work(starter: Starter, supervise: Any) -> None:
    supervisor = supervise()
    starter.finishing = True
    starter.queries[0].kill(RuntimeError("SourcesStopped"))
    supervisor._thread.join(LONG_S)
    assert (len(starter.queries), supervisor.failure, supervisor.restarts) == (1, None, 0)


def test_stopping_stops_the_query_and_starts_no_other(starter: Starter, supervise: Any) -> None:
    supervisor = supervise()
    supervisor.stop()
    assert starter.queries[0].stopped
    assert (len(starter.queries), supervisor.failure) == (1, None)


def test_a_query_that_was_stopped_is_not_renewed(starter: Starter, supervise: Any) -> None:
    """A hand-over that took too long while the run ended had the query started again, with nobody to stop it."""
    supervisor, called = supervise(), []
    supervisor.stop()
    supervisor.renew(lambda: called.append("between"))
    assert (len(starter.queries), called) == (1, [])


def test_a_query_that_is_renewed_while_it_is_stopped_is_stopped(starter: Starter, supervise: Any, tools: Tools) -> None:
    supervisor = supervise()
    stopping = threading.Thread(target=supervisor.stop)

    def between() -> None:
        stopping.start()
        tools.until(supervisor._stopping.is_set)

    supervisor.renew(between)
    stopping.join(LONG_S)
    assert [query.stopped for query in starter.queries] == [True, True]


def test_stopping_does_not_wait_for_the_back_off(
    starter: Starter, supervise: Any, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restarts, "FIRST_PAUSE_S", 10 * LONG_S)
    monkeypatch.setattr(restarts, "LONGEST_PAUSE_S", 10 * LONG_S)
    supervisor = supervise()
    for number in range(2):  # the first restart does not wait
        tools.until(lambda number=number: len(starter.queries) == number + 1)
        starter.queries[number].kill(RuntimeError(f"death {number}"))
        tools.until(lambda number=number: str(supervisor.cause) == f"death {number}")
    before = time.monotonic()
    supervisor.stop()
    assert time.monotonic() - before < LONG_S
    assert len(starter.queries) == 2


def test_a_first_start_that_fails_is_the_callers_to_handle(starter: Starter, supervise: Any) -> None:
    starter.refuse = RuntimeError("no Spark")
    with pytest.raises(RuntimeError, match="no Spark"):
        supervise()


def test_when_spark_itself_is_gone_the_run_fails(starter: Starter, supervise: Any, tools: Tools) -> None:
    """With the JVM dead every look at the query raises; it used to end the watch and leave the run waiting for ever."""

    class Gone:
        @property
        def isActive(self) -> bool:  # noqa: N802 - as Spark names it
            raise ConnectionRefusedError("connection refused")

    supervisor = supervise()
    supervisor._running = Gone()
    failure = tools.until(lambda: supervisor.failure)
    assert str(failure) == "the query can no longer be watched: connection refused"


EXITED_LOG = """Job aborted due to stage failure: Lost task 0.0
org.apache.spark.SparkException: Python worker exited unexpectedly (crashed): java.io.EOFException
\tat org.apache.spark.api.python.BasePythonRunner"""


# ── a query that another has taken over from ────────────────────────────────────────────────────────────────────────


def test_a_query_that_is_left_is_not_started_again_when_it_dies(starter: Starter, supervise: Any, tools: Tools) -> None:
    supervisor = supervise()
    assert supervisor.leave(0)
    assert not supervisor.died
    starter.queries[0].kill(RuntimeError("a worker was killed"))
    tools.until(lambda: supervisor.died)
    assert (len(starter.queries), supervisor.restarts, supervisor.failure) == (1, 0, None)


def test_a_query_is_not_renewed_for_what_has_been_done_meanwhile(starter: Starter, supervise: Any) -> None:
    supervisor = supervise()
    supervisor.renew(lambda: None, unless=lambda: True)
    assert (len(starter.queries), supervisor.generation) == (1, 0)
    supervisor.renew(lambda: None, unless=lambda: False)
    assert (len(starter.queries), supervisor.generation) == (2, 1)


def test_one_that_has_died_cannot_be_left_any_more(starter: Starter, supervise: Any, tools: Tools) -> None:
    """Who takes over from it has to know what is to be done again."""
    supervisor = supervise()
    with supervisor._changing:  # nobody has looked yet
        starter.queries[0].kill(RuntimeError("a worker was killed"))
        leaving = threading.Thread(target=lambda: left.append(supervisor.leave(0)))
        left: list[bool] = []
        leaving.start()
    leaving.join(LONG_S)
    assert left == [False]
    tools.until(lambda: len(starter.queries) == 2)
    assert not supervisor.leave(0)  # of the generation before
    assert supervisor.leave(1)
