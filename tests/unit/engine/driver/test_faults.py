"""How long events stood still at a fault, from what replicas report before and after it."""

from __future__ import annotations

from penstock.engine.driver.faults import Fault, Faults


def always() -> bool:
    return True


def made(*heard: tuple[float, int]) -> Faults:
    faults = Faults()
    for now_s, count in heard:
        faults.deliver(now_s, count, always)
    return faults


def test_from_the_last_event_before_to_the_first_that_is_new() -> None:
    faults = made((9.5, 90), (10.0, 100))
    faults.died(10.4, "killed")
    assert faults.all == [Fault(1, 10.4, "killed")]
    for now_s, count in ((12.0, 60), (12.5, 80), (13.0, 99)):  # done again, from the last checkpoint on
        faults.deliver(now_s, count, always)
    assert faults.all[0].seconds is None
    faults.deliver(13.5, 104, always)
    faults.deliver(14.0, 110, always)
    assert faults.all == [Fault(1, 10.4, "killed", 3.5)]


def test_a_stream_that_was_idle_stood_still_only_from_the_death_on() -> None:
    faults = made((10.0, 100))
    faults.died(500.0, "killed")
    faults.deliver(503.0, 100, lambda: False)  # not all replicas are there
    assert faults.all[0].seconds is None
    faults.deliver(504.0, 100, always)
    assert faults.all[0].seconds == 4.0


def test_one_that_dies_again_before_it_has_come_back_is_one_fault() -> None:
    faults = made((10.0, 100))
    faults.died(10.1, "killed")
    faults.deliver(12.0, 80, always)
    faults.died(12.1, "killed again")
    faults.deliver(14.0, 101, always)
    assert faults.all == [Fault(1, 10.1, "killed", 4.0, deaths=2)]
    faults.died(20.0, "once more")
    assert [(one.number, one.cause, one.seconds) for one in faults.all] == [(1, "killed", 4.0), (2, "once more", None)]


def test_what_is_heard_while_nothing_is_wrong_opens_nothing() -> None:
    assert made((1.0, 5), (2.0, 5), (9.0, 7)).all == []


def test_it_lasts_until_sinks_have_as_much_as_they_had() -> None:
    faults = made((10.0, 100))
    assert not faults.lasting
    faults.died(10.1, "killed")
    faults.deliver(11.0, 99, always)
    assert faults.lasting
    faults.deliver(11.5, 100, always)
    assert not faults.lasting
