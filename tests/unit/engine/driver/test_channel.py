"""The control channel between a real server and real agents over loopback: routing, reports, questions, faults."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.plan.program import DriverAddress
from penstock.engine.protocol.messages import (
    Answer,
    AtWork,
    Done,
    Place,
    Places,
    Poll,
    Question,
    Report,
    Restore,
    RestoreQuery,
    Start,
    StartQuery,
    TablesQuery,
    Used,
    Utilisations,
)
from penstock.engine.protocol.progress import Phase
from penstock.engine.worker import agent as agents
from penstock.engine.worker.agent import RESTS_AFTER, agent_for
from penstock.engine.worker.role import Role
from penstock.errors import EngineError
from penstock.metrics.counters import ReplicaCounters
from penstock.state.handover import Table
from penstock.state.segments import Segment
from penstock.topology import Topology
from tests.waiting import LONG_S

from ..made import CREDENTIAL, progress, role, routing

Driver = Any
Tools = SimpleNamespace
pytestmark = pytest.mark.parametrize("driver", [None, CREDENTIAL], ids=["plain", "tls"], indirect=True)


# ── routing down ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_routing_reaches_all_agents_at_once(driver: Driver, tools: Tools) -> None:
    agents_here = [driver.agent(report_every_s=60.0) for _ in range(3)]
    tools.until(lambda: driver.server.answered(0))
    for version in (2, 3):
        driver.server.publish(routing(version))
        tools.until(lambda: {agent.routing.version for agent in agents_here} == {version}, 2.0)  # noqa: B023


def test_an_older_routing_does_not_replace_a_newer_one(driver: Driver, tools: Tools) -> None:
    agent = driver.agent()
    for version in (5, 4):
        driver.server.publish(routing(version))
    driver.server.publish(routing(6))
    tools.until(lambda: agent.routing.version == 6)
    agent._take(routing(5))
    assert agent.routing.version == 6


def test_who_connects_is_told_the_last_of_each_kind(driver: Driver, tools: Tools) -> None:
    """Routing, utilisation, progress and polls are messages of their own; none takes the place of another."""
    used = Utilisations(3, {"clean": Used({0: 0.5}, 0.1, 3)})
    halted = progress(4, Phase.HALTED)
    for message in (progress(2), routing(1), Utilisations(2), routing(2), used, halted):
        driver.server.publish(message)
    poll = driver.server.poll()
    agent = driver.agent()
    tools.until(lambda: driver.server.answered(poll))
    assert (agent.routing, agent.used, agent.progress) == (routing(2), used, halted)


def test_what_is_older_than_what_is_known_is_not_taken(driver: Driver, tools: Tools) -> None:
    agent = driver.agent()
    for message in (progress(5, Phase.HALTED), Utilisations(5), Poll(5)):
        agent._take(message)
    for message in (progress(4), Utilisations(4), Poll(4)):
        agent._take(message)
    assert (agent.progress, agent.used.version, agent._poll) == (progress(5, Phase.HALTED), 5, 5)


def test_a_poll_is_a_message_of_its_own(driver: Driver, tools: Tools) -> None:
    """The whole routing used to travel with every poll."""
    agent = driver.agent()
    taken: list[Any] = []
    take = agent._take
    agent._take = lambda message: (taken.append(message), take(message))[1]  # type: ignore[method-assign]
    tools.until(lambda: driver.server.answered(0))
    poll = driver.server.poll()
    tools.until(lambda: driver.server.answered(poll))
    assert taken == [Poll(poll)]


def test_publishing_after_the_end_is_no_error(driver: Driver, tools: Tools) -> None:
    """A control loop may be in mid-step when its run stops; it used to get 'Event loop is closed'."""
    driver.stop()
    tools.until(lambda: not [t for t in threading.enumerate() if t.name == "penstock-control"])
    driver.server.publish(routing(2))
    driver.server.stop()


# ── reports up ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_new_role_is_reported_at_once(driver: Driver, tools: Tools) -> None:
    agent = driver.agent()
    agent.join(role(processed=7, received={"tweets": 9}))
    found = tools.until(lambda: driver.latest("clean"))
    assert (found.processed, found.received) == (7, {"tweets": 9})


def test_only_what_changed_is_reported_again(driver: Driver, tools: Tools) -> None:
    agent, still, busy = driver.agent(), role("clean", processed=1), role("store", processed=1)
    agent.join(still)
    agent.join(busy)
    tools.until(lambda: driver.latest("store"))
    before = len(driver.heard)
    busy.report.counters.processed = 2
    agent.wake()
    tools.until(lambda: driver.latest("store").processed == 2)
    assert [one.operator for reports in driver.heard[before:] for one in reports.reports] == ["store"]


def test_what_is_done_for_a_checkpoint_is_said_once_and_again_after_a_cut(driver: Driver, tools: Tools) -> None:
    agent, mine = driver.agent(), role("clean")
    agent.join(mine)
    done = Done(
        0, "clean", 0, number=3, counters=ReplicaCounters(processed=5), segments=[Segment(3, 0, 0, 8, 1)], oldest=2
    )
    mine.done = done
    agent.wake()
    tools.until(lambda: driver.done("clean"))
    mine.report.counters.processed = 6
    agent.wake()
    tools.until(lambda: driver.latest("clean").processed == 6)
    assert driver.done("clean") == [done]
    driver.server.cut(True)
    tools.until(lambda: not driver.server.answered(0))
    driver.server.cut(False)
    tools.until(lambda: len(driver.done("clean")) == 2)
    assert driver.done("clean") == [done, done]


def test_reports_come_by_themselves(driver: Driver, tools: Tools) -> None:
    agent, mine = driver.agent(report_every_s=0.02), role(processed=1)
    agent.join(mine)
    tools.until(lambda: driver.latest("clean"))
    mine.report.counters.processed = 2
    tools.until(lambda: driver.latest("clean").processed == 2)


def test_while_nothing_changes_fewer_reports_come_and_then_the_agent_rests(driver: Driver, tools: Tools) -> None:
    """Most of a large pool is idle, and all its signs of life go through one thread of the driver."""
    looks: list[ReplicaCounters] = []
    agent = driver.agent(report_every_s=0.01)
    agent.join(Role(Report(0, 0, "clean", 0, ReplicaCounters()), looks.append))
    tools.until(lambda: agent.resting)
    assert len(looks) >= RESTS_AFTER > 2 * len(driver.heard)
    heard, looked = len(driver.heard), len(looks)
    tools.until(lambda: len(looks) > looked + 20)
    assert len(driver.heard) - heard >= 19  # it looks no more often than it has to give a sign of life
    assert agent.resting


def test_an_agent_that_rests_is_woken_by_what_there_is_to_report(driver: Driver, tools: Tools) -> None:
    agent, mine = driver.agent(report_every_s=0.01), role(processed=1)
    agent.join(mine)
    tools.until(lambda: agent.resting)
    agent.driver = replace(agent.driver, report_every_s=60.0)
    time.sleep(0.1)  # the last short rest is over
    mine.report.counters.processed = 2
    assert agent.resting
    agent.wake()
    tools.until(lambda: driver.latest("clean").processed == 2)
    tools.until(lambda: not agent.resting)


def test_queues_are_looked_at_when_a_report_is_due(driver: Driver, tools: Tools) -> None:
    waiting = iter(range(100, 200))
    report = Report(0, 0, "clean", 0, ReplicaCounters())
    driver.agent().join(Role(report, lambda counters: setattr(counters, "queued", next(waiting))))
    assert tools.until(lambda: driver.latest("clean")).queued >= 100


def test_a_poll_is_answered_by_all_with_counters_no_older_than_it(driver: Driver, tools: Tools) -> None:
    mine = [role(f"o{number}") for number in range(3)]
    for one in mine:
        driver.agent(report_every_s=60.0).join(one)
    tools.until(lambda: all(driver.latest(f"o{n}") for n in range(3)))
    for poll in (1, 2):
        for one in mine:
            one.report.counters.processed = 10 * poll
        assert driver.server.poll() == poll
        tools.until(lambda: driver.server.answered(poll), 2.0)  # noqa: B023
        assert [driver.latest(f"o{n}").processed for n in range(3)] == [10 * poll] * 3
    assert not driver.server.answered(3)


def test_nobody_has_answered_when_nobody_is_there(driver: Driver) -> None:
    assert not driver.server.answered(0)
    assert driver.server.answered(0, least=0)  # as in micro-batch mode, where Spark ends processes that are idle


# ── questions ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_questions_are_answered_at_once(driver: Driver) -> None:
    driver.starts["tweets", 1] = Start({"offset": 42}, sent=40, owed=50)
    driver.tables = {"count": Table(3, (0, 1), before=(0, 0))}
    driver.restores["count"] = Restore(7, [Segment(7, 0, 1, 12, 99)])
    agent = driver.agent(report_every_s=60.0)
    start, tables, restore = StartQuery(0, "tweets", 1), TablesQuery(0), RestoreQuery(0, "count")
    assert agent.ask_start(start) == Start({"offset": 42}, sent=40, owed=50)
    assert agent.ask_tables(tables) == driver.tables
    assert agent.ask_restore(restore) == driver.restores["count"]
    assert driver.questions == [start, tables, restore]


def test_a_question_is_asked_again_after_a_broken_connection(driver: Driver) -> None:
    """The driver hangs up on the first two, as it does on a replica that it has replaced."""
    asked = []

    def answer(question: Question) -> Answer:
        asked.append(question)
        if len(asked) < 3:
            raise EngineError("not yet")
        return Start(5)

    driver.answer = answer
    assert driver.agent().ask_start(StartQuery(0, "tweets", 0)) == Start(5)
    assert len(asked) == 3


def test_a_question_that_is_given_up_is_not_asked_any_more(
    driver: Driver, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It used to be asked again on every new connection, and each time the driver hung up."""
    monkeypatch.setattr(agents, "ANSWER_TIMEOUT_S", 0.05)
    refused = []

    def refuse(question: Question) -> Answer:
        refused.append(question)
        raise EngineError("it has been replaced")

    driver.answer = refuse
    agent = driver.agent()
    tools.until(lambda: driver.server.answered(0))
    with pytest.raises(TimeoutError, match=r"the driver did not answer within 0\.05 s: StartQuery"):
        agent.ask_start(StartQuery(0, "tweets", 0))
    tools.until(lambda: driver.server.answered(0))
    count = len(refused)
    agent.join(role(processed=1))
    tools.until(lambda: driver.latest("clean"))
    assert len(refused) == count > 0


# ── faults ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_after_a_cut_the_agent_comes_back_and_says_everything_again(driver: Driver, tools: Tools) -> None:
    agent, mine = driver.agent(), [role("clean", processed=1), role("store", processed=2)]
    for one in mine:
        agent.join(one)
    tools.until(lambda: driver.latest("clean") and driver.latest("store"))
    driver.server.cut(True)
    tools.until(lambda: not driver.server.answered(0))
    before = len(driver.heard)
    mine[0].report.counters.processed = 5
    agent.wake()
    driver.server.publish(routing(7))  # nobody hears it now
    time.sleep(5 * agents.RETRY_S)
    assert (len(driver.heard), agent.routing.version) == (before, 0)
    driver.server.cut(False)
    tools.until(lambda: agent.routing.version == 7)
    tools.until(lambda: driver.server.answered(0))
    again = [(one.operator, one.counters.processed) for heard in driver.heard[before:] for one in heard.reports]
    assert again == [("clean", 5), ("store", 2)]


def test_who_listens_where_is_known_while_the_channel_is_cut(driver: Driver, tools: Tools) -> None:
    """A sender used to ask for it with its first bundle; with the channel cut just then, the attempt died."""
    agent, here = driver.agent(), ("127.0.0.1", 4000)
    driver.server.publish(Places(1, {3: [Place("clean", 0, here)]}))
    tools.until(lambda: agent.places.version == 1)
    driver.server.cut(True)
    tools.until(lambda: not driver.server.answered(0))
    assert agent.listening(3) == {("clean", 0): here}
    assert agent.listening(4) == {}


def test_replicas_never_wait_for_an_agent_that_cannot_reach_the_driver(driver: Driver) -> None:
    """Some hundred wake-ups used to fill the socket between them; the next one blocked the replica."""
    driver.server.cut(True)
    agent = driver.agent()
    done = threading.Event()

    def wake_often() -> None:
        for _ in range(5000):
            agent.wake()
        done.set()

    threading.Thread(target=wake_often, daemon=True).start()
    assert done.wait(LONG_S)


def test_a_run_that_is_carried_on_has_agents_of_its_own(driver: Driver, tools: Tools) -> None:
    """A process that Spark used again kept the agent of the last driver, and was never heard."""
    topology = Topology("app")
    topology.operator("clean", len, inputs=topology.source("tweets"))
    program = driver.program(topology)
    elsewhere = DriverAddress("127.0.0.1", 1, b"the last driver's", 60.0)
    last = agent_for(replace(program, driver=elsewhere))
    agent = agent_for(program)
    assert agent is not last
    assert agent_for(program) is agent
    tools.until(
        lambda: len([t for t in threading.enumerate() if t.name == "penstock-agent"]) == 1
    )  # the last has ended
    assert agent.wait_for_routing(30)


def test_an_agent_ends_with_its_run(driver: Driver, tools: Tools) -> None:
    """In a worker process that Spark uses again it used to go on knocking at the old run's port for ever."""
    topology = Topology("app")
    topology.operator("clean", len, inputs=topology.source("tweets"))
    program = driver.program(topology)
    agent = agent_for(program)
    assert agent_for(program) is agent
    driver.server.publish(progress(2, closing=True))
    tools.until(lambda: agent.progress.closing)
    poll = driver.server.poll()
    tools.until(lambda: driver.server.answered(poll))  # it still reports until the channel is closed
    driver.server.stop()
    tools.until(lambda: not [t for t in threading.enumerate() if t.name == "penstock-agent"])
    assert driver.run not in agents._agents
    agent.wake()
    agent.join(role())


def test_many_threads_say_things_at_once(driver: Driver, tools: Tools) -> None:
    """Frames of the replica's own thread and of the agent's go over one connection."""
    agent = driver.agent(report_every_s=0.001)
    agent.join(role())
    tools.until(lambda: driver.heard)
    for number in range(2000):
        agent.tell(AtWork(1, "parse", 0, f"{number:0500}"))
        agent.wake()
    (writer,) = driver.server._writers
    tools.until(lambda: driver.server._at_work[writer].event_id == f"{1999:0500}")
