"""What the fault campaign reads out of what it has seen: how long events stood still, and how memory grows."""

from __future__ import annotations

import pytest
from faults_watch import OLD_S, YOUNG_S, Memory, slopes_mb_per_hour, stood_still_s


def every(step_s: float, *, until_s: float, but: tuple[float, float] = (0.0, 0.0)) -> list[float]:
    times = [step_s * n for n in range(round(until_s / step_s))]
    return [one for one in times if not but[0] < one < but[1]]


def test_a_fault_that_nobody_notices() -> None:
    assert stood_still_s(every(0.25, until_s=60), [20.0]) == [0.25]


def test_standing_still_belongs_to_the_fault_that_began_it() -> None:
    came = every(0.25, until_s=100, but=(20.0, 45.0))
    assert stood_still_s(came, [20.1, 30.0, 60.0]) == [25.0, None, 0.25]


def test_two_at_once_have_both_begun_it() -> None:
    came = every(0.25, until_s=100, but=(20.0, 45.0))
    assert stood_still_s(came, [20.1, 20.1, 70.0]) == [25.0, 25.0, 0.25]


def test_results_that_come_together_had_stopped_before_the_fault() -> None:
    came = every(2.0, until_s=100, but=(20.0, 40.0))
    assert stood_still_s(came, [21.5]) == [20.0]


def test_what_came_before_a_fault_is_not_its_own() -> None:
    came = every(0.25, until_s=100, but=(20.0, 28.0))
    assert stood_still_s(came, [29.0]) == [0.25]


def life(pid: int, begin_s: float, length_s: float, grows_mb_per_s: float) -> list[Memory]:
    """A driver that is large at once, and then grows."""
    return [
        Memory(begin_s + second, pid, 100.0 + grows_mb_per_s * second, 50.0, 10.0 * min(second, YOUNG_S), 9)
        for second in range(round(length_s))
    ]


def test_memory_is_judged_over_the_longest_life_but_for_its_beginning() -> None:
    long_s = YOUNG_S + OLD_S + 50
    seen = [*life(1, 0.0, long_s, 0.01), *life(2, long_s, YOUNG_S + 20, 5.0)]
    found = slopes_mb_per_hour(seen)
    assert found["driver"] == pytest.approx(36.0)
    assert found["jvm"] == found["workers"] == 0.0
    assert found["over_s"] == pytest.approx(OLD_S + 50, abs=2)


def test_short_lives_say_nothing_of_memory() -> None:
    assert slopes_mb_per_hour(life(1, 0.0, YOUNG_S + OLD_S - 5, 1.0)) == {}
    assert slopes_mb_per_hour([]) == {}
