"""What happens in a round of the fault campaign is drawn by its seed, and nothing else."""

from __future__ import annotations

from itertools import pairwise

from faults_checker import DEAD_LETTER, DROPPED
from faults_plan import MOVES, POISONED, Step, duration_s, payloads, planned, wanted

KINDS = ("kill_worker", "stop_worker", "channel_cut", "poison")
REAL = [{"client": "10.0.0.1", "query": "a.example.org"}, {"client": "10.0.0.2", "query": "example.org"}]


def test_every_kind_comes_before_one_comes_again() -> None:
    faults = [step.kind for step in planned(5, 4, KINDS) if step.kind not in MOVES]
    assert sorted(faults) == sorted(KINDS)


def test_what_few_rounds_can_have_is_in_each_that_can() -> None:
    rare = ("kill_broker", "clock_back", "kill_master")
    for seed in range(30):
        struck = [step.kind for step in planned(seed, 4, [*KINDS, *rare[:2]], rare=rare) if step.kind not in MOVES]
        assert len(struck) == 4
        assert set(rare[:2]) < set(struck)
    assert len([one for one in planned(1, 5, rare, rare=rare) if one.kind not in MOVES]) == 5


def test_over_many_seeds_faults_come_at_once_soon_after_each_other_and_amid_moves() -> None:
    gaps, moves = [], 0
    for seed in range(50):
        steps = planned(seed, 10, KINDS)
        assert [step.at_s for step in steps] == sorted(step.at_s for step in steps)
        gaps += [after.at_s - before.at_s for before, after in pairwise(steps)]
        moves += sum(step.kind in MOVES for step in steps)
    assert min(gaps) == 0.0
    assert any(0.5 < gap < 5 for gap in gaps)
    assert max(gaps) > 6
    assert 200 < moves < 300


def test_no_fault_lasts_longer_than_it_may() -> None:
    assert max(step.length_s for seed in range(20) for step in planned(seed, 10, KINDS, longest_s=4.0)) <= 4.0


def test_events_are_poisoned_where_the_plan_says() -> None:
    steps = [Step(2.0, "poison", 0.0, 1), Step(3.0, "kill_worker", 0.0, 2)]
    events = payloads(REAL, steps, rate=50.0)
    assert len(events) == round(duration_s(steps) * 50)
    assert [one["number"] for one in events] == list(range(len(events)))
    poisoned = [one["number"] for one in events if one["poison"]]
    assert poisoned == list(range(100, 100 + POISONED))
    assert {one.fate for one in wanted(events)[100:120]} == {DEAD_LETTER, DROPPED}
    assert {one["domain"] for one in events} == {"example.org"}
