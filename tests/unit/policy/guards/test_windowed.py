"""A policy sees no less than a second at a time."""

from __future__ import annotations

import pytest

from penstock.policy.base import Plan
from penstock.policy.guards import Windowed, guarded
from penstock.policy.incremental import Incremental
from penstock.policy.psps import Psps
from penstock.testing.loads import load, snapshot


class Sees:
    """Keeps what it is shown."""

    def __init__(self) -> None:
        self.seen = []

    def plan(self, snapshot, forecast=None):
        self.seen.append(snapshot)
        return Plan({})


def short(count, *, busy=0.5, length_s=0.2, incomplete=None, processed=None):
    clean = load("clean", {"in": count}, processed, busy_share={0: busy}, cpu_share=busy / 2)
    return snapshot({"in": count}, [clean], interval_s=length_s, td_s=length_s, incomplete=incomplete or {})


def shown(*snapshots):
    policy = Sees()
    windowed = Windowed(policy)
    for one in snapshots:
        windowed.plan(one)
    return policy.seen


def test_the_last_second_is_shown_as_one_interval():
    last = shown(*(short(count, busy=busy) for count, busy in [(9, 0.9), *[(20, 0.4), (21, 0.6)] * 3]))[-1]
    clean = last.operators["clean"]
    assert (last.interval_s, last.td_s) == (pytest.approx(1.0), pytest.approx(1.0))
    assert last.source_input == {"in": 103}
    assert (clean.received, clean.processed) == (103, 103)
    assert clean.busy_share[0] == pytest.approx(0.52)
    assert clean.cpu_share == pytest.approx(0.26)


def test_the_first_intervals_are_as_long_as_they_are():
    seen = shown(short(20), short(20), short(20))
    assert [one.interval_s for one in seen] == pytest.approx([0.2, 0.4, 0.6])


def test_after_a_jump_only_what_came_since():
    seen = shown(*[short(20)] * 6, short(90), short(90))
    assert [one.source_input["in"] for one in seen[-3:]] == [100, 90, 180]
    assert seen[-1].interval_s == pytest.approx(0.4)


def test_intervals_of_a_second_and_more_are_left_as_they_are():
    whole = short(100, length_s=1.0)
    assert shown(short(20), whole) == [shown(short(20))[0], whole]


def test_an_incomplete_one_is_shown_as_it_is_and_forgets_the_others():
    bad = short(3, incomplete={"clean": "stale"})
    seen = shown(short(20), bad, short(20))
    assert seen[1] == bad
    assert seen[2].source_input == {"in": 20}


def test_those_with_windows_of_their_own_are_left_alone():
    assert "Windowed" not in repr(guarded(Psps()))
    assert "RefuseIncomplete(Windowed(Incremental(" in repr(guarded(Incremental()))
