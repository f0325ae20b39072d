"""Processes that fall silent, or are lost: whom the driver gives up, and what it knows of what they were at."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from penstock.engine.protocol.messages import AtWork

from ..made import progress, role

Driver = Any
Tools = SimpleNamespace


def test_a_process_that_says_nothing_is_given_up(driver: Driver, tools: Tools) -> None:
    """Its machine has lost its power: nothing closes the connection, and every poll waited for it."""
    driver.server._silent_s = 0.2
    driver.agent(report_every_s=0.02)
    tools.until(lambda: driver.server.answered(0))
    silent = driver.agent(report_every_s=60.0)
    tools.until(lambda: len(driver.server._writers) == 2)
    silent.progress = progress(1 << 40, closing=True)  # does not come back
    tools.until(lambda: len(driver.server._writers) == 1)
    poll = driver.server.poll()
    tools.until(lambda: driver.server.answered(poll))
    assert driver.silent == []  # it had never said whose process it is


def test_who_was_at_work_and_says_nothing_any_more_is_told_of(driver: Driver, tools: Tools) -> None:
    """Stopped, or stuck in a call: its connection is there, but the attempt would wait for it for ever."""
    driver.server._silent_s = 0.2
    agent = driver.agent(report_every_s=0.02)
    agent.join(role())
    tools.until(lambda: any(one.reports for one in driver.heard))
    agent.driver = replace(agent.driver, report_every_s=60.0)
    tools.until(lambda: driver.silent)
    report = next(one for heard in driver.heard for one in heard.reports)
    assert driver.silent[0] == AtWork(report.generation, report.operator, report.replica, None)


def test_nobody_was_silent_while_the_driver_stood_still(driver: Driver, tools: Tools) -> None:
    """Suspended for longer than it takes to be given up, it took all its processes for dead."""
    driver.server._silent_s = 0.5
    agent = driver.agent(report_every_s=0.02)
    agent.join(role())
    tools.until(lambda: driver.heard)
    looks = driver.server._looks
    tools.until(lambda: driver.server._looks > looks)
    driver.server._soon(time.sleep, 1.5)
    heard = len(driver.heard)
    tools.until(lambda: len(driver.heard) > heard + 5)
    assert driver.silent == []


def test_who_is_about_to_fail_says_so_before_it_is_lost(driver: Driver, tools: Tools) -> None:
    agent = driver.agent()
    tools.until(lambda: agent._connection)
    agent.tell(AtWork(4, "parse", 1, fails=True))  # a standby, whose number is higher
    agent.tell(AtWork(3, "parse", 1, fails=True))
    tools.until(lambda: driver.server.fails(3))
    assert [driver.server.fails(one) for one in (2, 4)] == [False, True]


def test_of_a_process_that_is_lost_the_driver_knows_what_it_was_at(driver: Driver, tools: Tools) -> None:
    silent, crashed = driver.agent(), driver.agent()
    silent.join(role())
    tools.until(lambda: any(one.reports for one in driver.heard) and crashed._connection)
    for event_id in ("40", "41"):
        crashed.tell(AtWork(3, "parse", 1, event_id))
    for one in (silent, crashed):
        one.progress = progress(1 << 40, closing=True)
        one.retire()
    tools.until(lambda: len(driver.gone) == 2)
    report = next(one for heard in driver.heard for one in heard.reports)
    assert AtWork(3, "parse", 1, "41") in driver.gone
    assert AtWork(report.generation, report.operator, report.replica, None) in driver.gone
    crashed.tell(AtWork(3, "parse", 1, "42"))  # nobody is there to hear it
