from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.metrics.counters import total
from penstock.testing.clock import ManualClock
from penstock.testing.plant import FakeOperator, FakePlant


@given(
    st.lists(st.tuples(st.floats(0, 300), st.floats(0.1, 5), st.integers(1, 8)), min_size=1, max_size=8),
    st.floats(0, 3),
)
@settings(max_examples=40, deadline=None)
def test_no_event_is_lost_or_made(phases, share):
    clock = ManualClock()
    plant = FakePlant([FakeOperator("a", {"in": 1.0}, 0.03), FakeOperator("b", {"a": share}, 0.02)], clock)
    for rate, seconds, replicas in phases:
        plant.rates["in"] = rate
        plant.set_replicas("a", tuple(range(replicas)))
        clock.advance(seconds)
    counters = plant.counters()
    sums = {name: total(one.replicas.values()) for name, one in counters.operators.items()}
    for name, one in counters.operators.items():
        assert sum(sums[name].received.values()) == sums[name].processed + one.backlog
    assert sums["a"].received["in"] == counters.sources["in"]
    assert sums["b"].received["a"] == pytest.approx(sums["a"].processed * share, abs=1)


def test_replicas_process_what_they_have_time_for():
    clock = ManualClock()
    plant = FakePlant([FakeOperator("a", {"in": 1.0}, 0.1)], clock)
    plant.queue("a", 100)
    plant.set_replicas("a", (0, 2))
    clock.advance(1.0)
    replicas = plant.counters().operators["a"].replicas
    assert [replicas[n].processed for n in range(3)] == [10, 0, 10]
    assert replicas[0].busy_s == pytest.approx(1.0)


def test_counters_that_were_handed_out_do_not_change():
    clock = ManualClock()
    plant = FakePlant([FakeOperator("a", {"in": 1.0}, 0.1)], clock)
    before = plant.counters()
    plant.rates["in"] = 5.0
    clock.advance(1.0)
    assert before.operators["a"].total.processed == 0


@pytest.mark.parametrize("replicas", [(), (4,), (-1, 0)])
def test_replicas_are_some_of_the_pool(replicas):
    plant = FakePlant([FakeOperator("a", {"in": 1.0}, 0.1, pool=4)], ManualClock())
    with pytest.raises(InputError, match=r"operator 'a': replicas must be some of 0\.\.3; got"):
        plant.set_replicas("a", replicas)


def test_a_clock_set_by_hand_lets_no_time_pass():
    clock = ManualClock(10.0)
    passed = []
    clock.listen(passed.append)
    clock.jump(-3.0)
    clock.sleep_until(9.0)
    assert (clock.now(), passed) == (9.0, [2.0])
