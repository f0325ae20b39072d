"""The online shuffle over the control channel: senders and replicas in this process, the driver over loopback."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from queue import SimpleQueue
from threading import Thread, Timer
from types import SimpleNamespace
from typing import Any

import numpy as np

from penstock.engine.online.exchange import Exchange
from penstock.engine.online.mailbox import Mailbox
from penstock.engine.protocol.bundle import Unpacker
from penstock.engine.protocol.messages import OnlineNews, ReplyTo, Report, Reports
from penstock.engine.worker import agent as agents
from penstock.engine.worker.replica import OperatorReplica
from penstock.engine.worker.role import Role
from penstock.engine.worker.source_slot import SourceSlot
from penstock.grouping.online_shuffle import Sketch
from penstock.metrics.counters import ReplicaCounters
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant
from tests.waiting import LONG_S

from ..made import progress

Driver = Any
Tools = SimpleNamespace


def sketch(cell: float = 1.0) -> Sketch:
    return Sketch.of(np.full((2, 3, 54), cell))


def role(name: str, replica: int = 0, batch: int = 0) -> Role:
    return Role(Report(0, batch, name, replica, ReplicaCounters()), lambda _: None, Mailbox())


def exchanging(driver: Driver) -> Exchange:
    """Let the driver hand on what it hears."""
    exchange = Exchange()

    def hear(reports: Reports) -> list[OnlineNews]:
        driver.heard.append(reports)
        return exchange.enter(reports)

    driver.hear = hear
    return exchange


def test_what_a_replica_tells_reaches_its_sender_in_another_process(driver: Driver, tools: Tools) -> None:
    exchanging(driver)
    source, bolt = role("source"), role("bolt", 2)
    news = source.mail.subscribe("bolt")
    driver.agent(report_every_s=0.02).join(source)
    driver.agent(report_every_s=0.02).join(bolt)
    bolt.mail.tell(sketch(5.0), [ReplyTo("source", 0, 3, 0.25), ReplyTo("source", 1, 3, 9.0)])
    tools.until(lambda: news.sketches and news.replies)
    assert news.sketches == {2: sketch(5.0)}
    assert [(one.replica, one.epoch, one.delta_s) for one in news.replies] == [(2, 3, 0.25)]


def test_nothing_is_told_twice(driver: Driver, tools: Tools) -> None:
    """A sketch goes up once, and does not come down any more once it is known, however often is reported."""
    exchanging(driver)
    source, bolt = role("source"), role("bolt")
    news = source.mail.subscribe("bolt")
    sending, working = driver.agent(report_every_s=0.01), driver.agent(report_every_s=0.01)
    taken: list[Any] = []
    take = sending._take
    sending._take = lambda message: (taken.append(message), take(message))[1]
    sending.join(source)
    working.join(bolt)
    bolt.mail.tell(sketch(), [])
    tools.until(lambda: news.sketches)
    tools.until(lambda: any(one.known for one in driver.heard[-1].online))  # the driver has been told that it is known
    told, heard = sum(isinstance(message, OnlineNews) for message in taken), len(driver.heard)
    tools.until(lambda: len(driver.heard) > heard + 20)
    assert sum(one.sketch is not None for reports in driver.heard for one in reports.online) == 1
    assert sum(isinstance(message, OnlineNews) for message in taken) == told


def test_while_the_channel_is_cut_mail_waits_and_then_the_newest_sketch_is_told(driver: Driver, tools: Tools) -> None:
    exchanging(driver)
    source, bolt = role("source"), role("bolt")
    news = source.mail.subscribe("bolt")
    for one in (source, bolt):
        driver.agent(report_every_s=0.02).join(one)
    tools.until(lambda: driver.server.answered(0))
    driver.server.cut(True)
    tools.until(lambda: not driver.server.answered(0))
    for cell in (1.0, 2.0, 3.0):
        bolt.mail.tell(sketch(cell), [])
    time.sleep(3 * agents.RETRY_S)
    assert not news.sketches
    driver.server.cut(False)
    tools.until(lambda: news.sketches)
    assert news.sketches == {0: sketch(3.0)}


def test_a_sketch_that_went_down_with_the_connection_is_told_again(driver: Driver, tools: Tools) -> None:
    heard = driver.heard
    bolt = role("bolt")
    driver.agent(report_every_s=0.02).join(bolt)
    bolt.mail.tell(sketch(7.0), [])

    def told() -> int:
        return sum(one.sketch == sketch(7.0) for reports in heard for one in reports.online)

    tools.until(lambda: told() == 1)
    driver.server.cut(True)
    tools.until(lambda: not driver.server.answered(0))
    driver.server.cut(False)
    tools.until(lambda: told() == 2)


def test_one_who_has_finished_its_batch_wants_nothing_any_more(driver: Driver, tools: Tools) -> None:
    exchange = exchanging(driver)
    source = role("source")
    news = source.mail.subscribe("bolt")
    agent = driver.agent(report_every_s=0.02)
    agent.join(source)
    tools.until(lambda: exchange._states)
    source.mail.close()
    tools.until(lambda: not driver.heard[-1].online)
    exchange.enter(Reports("host", 1, 0, [], [bolt_report()]))
    before = len(driver.heard)
    tools.until(lambda: len(driver.heard) > before + 3)
    assert not news.sketches


def bolt_report() -> Any:
    mail = Mailbox()
    mail.tell(sketch(), [])
    return mail.collect(Report(0, 0, "bolt", 0, ReplicaCounters()))


# ── a source and two replicas, without Spark ────────────────────────────────────────────────────────────────────────


class Feed:
    """A stream that goes on until it is ended, as Spark hands it to Python."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._bundles: SimpleQueue[bytes | None] = SimpleQueue()

    def __iter__(self) -> Iterator[Any]:
        while (bundle := self._bundles.get()) is not None:
            yield self._tools.Batch([bundle])

    def put(self, bundle: bytes) -> None:
        self._bundles.put(bundle)

    def end(self) -> None:
        self._bundles.put(None)


def quick_or_slow(event: dict[str, int]) -> None:
    time.sleep(event["ms"] / 1000)


def test_a_source_learns_from_its_replicas(driver: Driver, tools: Tools) -> None:
    """Round robin gives replica 1 every slow event. When the source has learnt, replica 0 gets many of them.

    Even so replica 1 is busy less than half of its time: on a loaded machine it fell behind, nobody ever learnt, and
    the test waited for ever.
    """
    exchange = exchanging(driver)
    topology = Topology("app", pool=2)
    events = topology.source("events")
    topology.operator("op", quick_or_slow, inputs=events, grouping="online_shuffle:window=8,mu=9", cost_by="ms")
    source = TraceSource(constant(150.0, 200.0), [{"ms": (1, 6)[n % 2]} for n in range(4000)])
    made = driver.program(
        topology, active={"op": (0, 1)}, sources={"events": source}, progress=progress(1, epoch_s=time.time())
    )
    program = replace(made, driver=driver.address(report_every_s=0.05))
    feeds = {replica: Feed(tools) for replica in (0, 1)}
    at_work = [OperatorReplica(program, 1, "op", replica, 1) for replica in feeds]
    threads = [Thread(target=lambda one, feed: list(one.run(feed)), args=pair) for pair in zip(at_work, feeds.values())]  # noqa: B905
    for thread in threads:
        thread.start()
    end, to = Feed(tools), list[int]()
    learnt = 0  # slow events until then
    at_last = Timer(120.0, end.end)  # also where the source has no more events before enough is learnt
    at_last.start()
    for rows in SourceSlot(program, "events", 0, batch=1).run(end):
        for row in rows.to_pylist():
            feeds[row["partition"]].put(row["bundle"])
            to += [row["partition"] for event in Unpacker()(row["bundle"]).events if event["ms"] == 6]
        if exchange.states().get("op", {}).keys() & {"WAIT_ALL", "RUN"}:
            learnt = learnt or len(to)
            if len(to) > 3 * learnt + 100:  # it makes up for what replica 0 got less until then
                end.end()
    at_last.cancel()
    for feed, thread in zip(feeds.values(), threads, strict=True):
        feed.end()
        thread.join(LONG_S)
    assert set(to[:10]) == {1}
    assert learnt
    assert to[learnt:].count(0) / len(to[learnt:]) > 0.2  # round robin: none
    assert exchange.states()["op"].keys() <= {"SEND_ALL", "WAIT_ALL", "RUN"}
