"""A jump at a source: found at once, and not where there is only chance."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.metrics.jump import Jumps, is_jump

LOOK_S = 0.1


def looks(counts, jumps=None, start_s=0.0):
    """When a jump is told, for events in each tenth of a second."""
    jumps = jumps or Jumps()
    total, told = 0, []
    for number, count in enumerate(counts):
        total += int(count)
        if jumps.look(start_s + LOOK_S * number, {"in": total}):
            told.append(number)
    return told


@pytest.mark.parametrize("rate", [2, 20, 200, 5000])
def test_chance_alone_is_no_jump(rate):
    counts = np.random.default_rng(rate).poisson(rate * LOOK_S, 36_000)  # an hour
    assert len(looks(counts)) <= 36


@pytest.mark.parametrize(("before", "after"), [(20, 150), (200, 400), (2000, 3000), (0, 60)])
def test_a_jump_is_told_within_300_ms_and_once(before, after):
    random, found = np.random.default_rng(1), []
    for _ in range(50):
        counts = [*random.poisson(before * LOOK_S, 50), *random.poisson(after * LOOK_S, 20)]
        found.append(looks(counts))
    first = [told[0] for told in found if told]
    assert len(first) >= 49
    assert sorted(first)[2] >= 50
    assert sorted(first)[-3] <= 52  # 300 ms
    assert sum(len(told) for told in found) <= 60


def test_a_rise_of_a_tenth_can_wait_however_certain_it_is():
    assert looks([100_000] * 40 + [110_000] * 40) == []


def test_a_fall_is_no_jump():
    assert looks([100] * 40 + [5] * 40) == []


def test_before_half_a_second_is_known_nothing_is_said():
    assert looks([0, 0, 0, 50, 50]) == []


def test_counts_that_go_back_begin_anew():
    jumps = Jumps()
    assert looks([20] * 40, jumps) == []
    assert looks([20] * 40, jumps, start_s=10.0) == []
    assert not jumps.look(1.0, {"in": 10**6})  # the clock went back


def test_all_sources_count_together():
    jumps = Jumps()
    told = [jumps.look(LOOK_S * n, {"a": 10 * n, "b": 10 * n + 60 * (n > 40)}) for n in range(60)]
    assert told.index(True) == 41


def test_looks_may_come_at_any_times():
    random, jumps, time_s, total = np.random.default_rng(2), Jumps(), 0.0, 0
    told = []
    while time_s < 100:
        step_s = random.uniform(0.01, 0.3)
        time_s += step_s
        total += int(random.poisson((100 if time_s < 50 else 500) * step_s))
        if jumps.look(time_s, {"in": total}):
            told.append(time_s)
    assert 50 < told[0] < 50.6
    assert len(told) <= 3


def test_no_time_no_jump():
    assert not is_jump(100, 0.0, 1, 1.0)
    assert not is_jump(100, 0.1, 0, 0.0)


def test_settings_are_checked():
    with pytest.raises(InputError, match=r"jumps: before_s must be a number of at least 0.1; got 0.05"):
        Jumps(before_s=0.05)
