"""A source's slot that is to stand still: what it sends all the same, and what it says of it."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.engine.protocol.messages import Report, Start
from penstock.engine.protocol.progress import Phase

from .source_world import AtWork, Driver, Numbers, Tools, standing_still


@pytest.mark.parametrize("phase", [Phase.HALTED, Phase.FINISHING])
def test_a_slot_stands_still_behind_its_barrier(start: Any, phase: Phase) -> None:
    at_work = start(there=3)
    at_work.await_sent(3)
    at_work.tell(2, phase, barrier=9)
    assert at_work.done(9).cursor == {"at": 3}
    with standing_still(at_work):
        Numbers.there = 10
    assert at_work.order() == ["n0", "n1", "n2", "b9", "b9"]


def test_a_slot_may_go_on_after_all(start: Any) -> None:
    """The next shift could not take over."""
    at_work = start(there=3)
    at_work.await_sent(3)
    at_work.tell(2, Phase.HALTED, barrier=9)
    at_work.done(9)
    Numbers.there = 5
    at_work.tell(3, barrier=9)
    assert at_work.await_sent(5) == [0, 1, 2, 3, 4]
    assert at_work.order().count("b9") == 2


def test_what_had_been_sent_before_the_query_died_is_sent_though_sources_stand_still(
    driver: Driver, start: Any
) -> None:
    driver.starts["events", 0] = Start({"at": 2}, sent=2, owed=5)
    at_work = start(there=10, phase=Phase.HALTED)
    assert at_work.await_sent(3) == [2, 3, 4]
    with standing_still(at_work):
        pass


def test_a_barrier_waits_for_what_is_owed(driver: Driver, start: Any) -> None:
    """A poll without events is not the end: what came after the last barrier of a shift, the next one sent again."""
    driver.starts["events", 0] = Start({"at": 2}, sent=2, owed=5)
    at_work = start(there=4, phase=Phase.HALTED, barrier=9)
    at_work.await_sent(2)
    with standing_still(at_work):
        pass
    Numbers.there = 10
    assert at_work.done(9).cursor == {"at": 5}
    assert at_work.order() == ["n2", "n3", "n4", "b9", "b9"]


def test_a_barrier_does_not_wait_for_what_a_source_no_longer_has(driver: Driver, start: Any) -> None:
    driver.starts["events", 0] = Start({"at": 2}, sent=2, owed=5)
    at_work = start(total=4, there=4, phase=Phase.HALTED, barrier=9)
    done = at_work.done(9)
    assert (done.cursor, done.sent, done.counters.dropped) == ({"at": 4}, 5, {"expired": 1})


def test_a_barrier_does_not_wait_for_what_has_expired_meanwhile(driver: Driver, start: Any) -> None:
    """A run whose query died, and whose records expired before they were read again, could not be stopped.

    Its slot waited for as many events as had been sent before, and they never came.
    """
    driver.starts["events", 0] = Start({"at": 2}, sent=2, owed=9)
    at_work = start(there=5, phase=Phase.HALTED, barrier=9)
    at_work.await_sent(3)
    with standing_still(at_work):
        pass
    Numbers.knows = True
    done = at_work.done(9)
    assert (done.cursor, done.sent, done.counters.dropped) == ({"at": 5}, 9, {"expired": 4})


def test_a_source_that_has_caught_up_sends_on_and_counts_nothing_as_expired_twice(driver: Driver, start: Any) -> None:
    driver.starts["events", 0] = Start({"at": 2}, sent=2, owed=9)
    Numbers.knows = True
    at_work = start(there=5)
    at_work.await_sent(3)
    Numbers.there = 8
    at_work.await_sent(6)
    assert at_work.slot._counters.dropped == {"expired": 4}


def last_report(driver: Driver) -> Report | None:
    said: list[Report] = [report for reports in list(driver.heard) for report in reports.reports]
    return said[-1] if said else None


def reported(at_work: AtWork, driver: Driver) -> Report:
    """What the slot says when it is asked; the driver asks by a poll."""
    poll = driver.server.poll()
    at_work._tools.until(lambda: driver.heard and driver.heard[-1].poll == poll)
    report = last_report(driver)
    assert report is not None
    return report


def test_a_slot_says_that_it_stands_still_once_it_has_sent_all_that_it_had_polled(driver: Driver, start: Any) -> None:
    """A poll that lasts is answered for by the agent: that a slot was told to stop does not mean that it has."""
    at_work = start(there=2)
    at_work.await_sent(2)
    assert not reported(at_work, driver).still
    with Numbers.held():
        at_work._tools.until(lambda: Numbers.holds)
        Numbers.there = 3
        at_work.tell(2, Phase.HALTED)
        assert not reported(at_work, driver).still
    at_work._tools.until(lambda: reported(at_work, driver).still)
    assert reported(at_work, driver).counters.processed == len(at_work.sent) == 3


def test_a_slot_that_goes_on_after_all_says_so_before_it_polls(driver: Driver, start: Any) -> None:
    at_work = start(there=2, phase=Phase.HALTED)
    at_work._tools.until(lambda: last_report(driver) and reported(at_work, driver).still)
    with Numbers.held():
        at_work.tell(2)
        at_work._tools.until(lambda: Numbers.holds)
        assert not reported(at_work, driver).still


def test_a_slot_that_owes_events_does_not_say_that_it_stands_still(driver: Driver, tools: Tools, start: Any) -> None:
    driver.starts["events", 0] = Start({"at": 2}, sent=2, owed=5)
    at_work = start(there=4, phase=Phase.HALTED)
    at_work.await_sent(2)
    with standing_still(at_work):
        pass
    assert not reported(at_work, driver).still
    Numbers.there = 10
    tools.until(lambda: reported(at_work, driver).still)
