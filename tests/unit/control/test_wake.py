"""A loop that is woken steps at once, but not too soon, and what it sees is trusted."""

from __future__ import annotations

import threading
import time

import pytest

from penstock.control.clock import SteadyClock
from penstock.control.loop import Loop, Parts
from penstock.control.monitor import Monitor
from penstock.metrics.interval import IntervalRules
from penstock.policy.guards import guarded
from penstock.policy.psps import Psps
from penstock.testing.clock import ManualClock
from penstock.testing.plant import FakeOperator, FakePlant
from tests.waiting import LONG_S


class WakingClock(ManualClock):
    """Wakes a loop at given times: whoever sleeps then goes on. It says that 600 events a second come."""

    def __init__(self) -> None:
        super().__init__()
        self.loop: Loop | None = None
        self.wakes_s: list[float] = []

    def wake(self) -> None:
        """Who sleeps goes on anyway."""

    def sleep_until(self, time_s: float) -> None:
        if self.wakes_s and self.wakes_s[0] <= time_s:
            super().sleep_until(self.wakes_s.pop(0))
            self.loop.wake({"in": 600.0})
        else:
            super().sleep_until(time_s)


def played(*wakes_s: float, until_s: float = 16.0, td_s: float = 5.0):
    """The steps of a loop that is woken at these times; the rate jumps from 50 to 500 after 5.1 s."""
    clock = WakingClock()
    plant = FakePlant([FakeOperator("a", {"in": 1.0}, 0.05)], clock)
    clock.listen(lambda _: plant.rates.update({"in": 50.0 if clock.now() < 5.1 else 500.0}))
    plant.rates["in"] = 50.0
    monitor = Monitor(plant, IntervalRules(td_s, plant.declared()))
    loop = clock.loop = Loop(Parts(monitor, guarded(Psps()), plant), clock)
    clock.wakes_s, steps = list(wakes_s), []
    stepped = loop.step
    loop.step = lambda *given, **more: steps.append(stepped(*given, **more))
    loop.run(lambda: clock.now() >= until_s)
    return steps


def times_of(steps):
    return [pytest.approx(step.time_s) for step in steps]


def test_it_steps_when_woken_and_then_when_it_was_due_anyway():
    assert times_of(played(6.5)) == [0.0, 5.0, 6.5, 10.0, 15.0]


def test_not_within_a_fifth_of_a_second_of_the_last_step():
    assert times_of(played(5.05, 5.1)) == [0.0, 5.0, 5.2, 10.0, 15.0]


def test_what_is_due_right_after_is_left_out():
    assert times_of(played(9.9)) == [0.0, 5.0, 9.9, 15.0]


def test_a_step_that_was_woken_and_the_one_after_are_trusted_and_rates_are_by_their_length():
    steps = played(6.5)
    woken, after = steps[2].snapshot, steps[3].snapshot
    assert (woken.interval_s, after.interval_s) == (pytest.approx(1.5), pytest.approx(3.5))
    assert woken.incomplete == after.incomplete == {}
    assert steps[2].plan.replicas["a"] > steps[1].plan.replicas["a"]


def test_what_wakes_it_may_say_how_much_comes_now():
    """Else the part of the interval before the jump would hide it."""
    steps = played(6.5)
    assert "3000 entering" in steps[2].plan.targets["a"].reason
    assert "entering" in steps[3].plan.targets["a"].reason
    assert "3000 entering" not in steps[3].plan.targets["a"].reason


def test_intervals_are_numbered_without_gaps():
    assert [step.number for step in played(6.5, 7.0)] == [0, 1, 2, 3, 4, 5]


def test_a_clock_that_was_not_woken_is_still_distrusted():
    clock = ManualClock()
    plant = FakePlant([FakeOperator("a", {"in": 1.0}, 0.05)], clock)
    loop = Loop(Parts(Monitor(plant, IntervalRules(5.0, plant.declared())), guarded(Psps()), plant), clock)
    loop.step(clock.now())
    clock.advance(1.0)
    assert loop.step(clock.now()).snapshot.incomplete


def test_the_real_clock_is_woken_and_stopped():
    stopped = threading.Event()
    clock = SteadyClock(stopped)
    for end in (clock.wake, stopped.set):
        timer = threading.Timer(0.05, end)
        begun = time.monotonic()
        timer.start()
        clock.sleep_until(clock.now() + 10 * LONG_S)
        assert time.monotonic() - begun < LONG_S
        timer.join()
