"""A policy in the shadow of another, and one that may take over."""

from __future__ import annotations

import pickle

import pytest

from penstock.control.analyze import asks
from penstock.errors import InputError
from penstock.metrics.snapshot import IntervalLatency
from penstock.policy.base import Plan, Target, initial_replicas, inside
from penstock.policy.cba import Cba
from penstock.policy.guards import Canary, Headroom, Shadow, guarded
from penstock.policy.guards.canary import better, parse_canary
from penstock.policy.incremental import Incremental
from penstock.policy.psps import Psps
from penstock.policy.registry import beside, make_policy
from penstock.policy.static import Static
from penstock.testing.loads import load, snapshot


def seen(number, rate, *, replicas=4, late=0, backlog=0, **more):
    """The end of an interval of 5 s, at 20 ms an event."""
    clean = load("clean", {"in": 5 * rate}, execution_time_s=0.02, replicas=replicas, backlog=backlog)
    latency = IntervalLatency(5 * rate, 10.0, 10.0, 10.0, late)
    times = {"time_s": 5.0 * number, "interval_s": 5.0, "td_s": 5.0}
    return snapshot({"in": 5 * rate}, [clean], latency=latency, **times, **more)


def played(guard, rates, **more):
    return [guard.plan(seen(number, rate, **more)) for number, rate in enumerate(rates)]


def changes(plans):
    return [(number, one.beside.policy, one.beside.before) for number, one in enumerate(plans) if one.beside.before]


class Breaks:
    """Fails, always."""

    def plan(self, snapshot, forecast=None):
        raise ValueError("no idea")


class Sees:
    """Keeps what it is shown, to be looked at."""

    def __init__(self):
        self.shown = []

    def plan(self, snapshot, forecast=None):
        self.shown.append(snapshot.operators["clean"])
        return Plan({"clean": Target(2, "two")})


class TestShadow:
    def test_only_the_first_is_carried_out(self):
        plans = played(Shadow(Static(4), Static(1)), [100] * 50)
        assert {one.replicas["clean"] for one in plans} == {4}
        assert {one.beside.targets["clean"].replicas for one in plans} == {1}
        assert changes(plans) == []
        assert plans[0].beside.why == "begins; Static(1) decides in its shadow, and is never carried out"
        assert plans[1].beside.why is None

    def test_it_sees_what_is_there_where_plans_are_alike(self):
        shadow = Sees()
        shadow.own_windows = True
        played(Shadow(Static(2), shadow), [50] * 5, replicas=2)
        assert {one.replicas for one in shadow.shown} == {2}
        assert {one.backlog for one in shadow.shown} == {0}

    def test_it_sees_its_own_replicas_and_what_would_wait_for_them(self):
        """Two replicas do 100 a second of the 150: after each interval 250 more wait."""
        shadow = Sees()
        shadow.own_windows = True
        played(Shadow(Static(4), shadow), [150] * 4)
        assert [one.replicas for one in shadow.shown] == [4, 2, 2, 2]
        assert [one.backlog for one in shadow.shown] == [0, 250, 500, 750]

    def test_one_that_adds_to_what_it_sees_is_not_stuck(self):
        """Shown the other's replicas, it would ask for one more than those again and again."""
        plans = played(Shadow(Static(8), Incremental()), [300] * 20, replicas=8)
        assert all(one.beside.targets["clean"].replicas <= 9 for one in plans)

    def test_its_failure_disturbs_nobody(self):
        (plan,) = played(Shadow(Static(4), Breaks()), [100])
        assert plan.replicas == {"clean": 4}
        assert plan.beside.targets == {}
        assert plan.notes == ("Breaks failed in the shadow: ValueError: no idea",)

    def test_forecasts_are_those_that_either_needs(self):
        assert asks(Shadow(Psps(), Cba(horizon=7)))[0] == 7
        assert asks(Shadow(Cba(horizon=3), Cba(horizon=7)))[0] == 7
        assert asks(Shadow(Psps(), Static(1))) == (1, None)

    def test_what_is_inside_is_who_decides(self):
        guard = guarded(Shadow(Static(4), Static(2)))
        assert initial_replicas(guard, {"clean": 8}, 5.0) == {"clean": 4}
        assert isinstance([*inside(guard)][-1], Static)

    def test_guards_keep_what_is_beside(self):
        plan = guarded(Shadow(Static(9), Static(2)), slots=3).plan(seen(1, 100))
        assert plan.replicas == {"clean": 3}
        assert plan.beside.other == "Static(2)"

    def test_the_same_twice(self):
        with pytest.raises(InputError, match=r"shadow: must be another policy .*; got 'Static\(2\)' twice"):
            Shadow(Static(2), Static(2))


class TestCanary:
    def test_a_cheaper_one_that_is_on_time_takes_over(self):
        plans = played(Canary(Static(8), Static(4), minutes=2), [100] * 40)
        assert changes(plans) == [(24, "Static(4)", "Static(8)")]
        assert [one.replicas["clean"] for one in plans] == [8] * 24 + [4] * 16
        assert plans[24].beside.why == (
            "took over: over 2 min Static(4) would have cost 50 % less than Static(8), with 0 % of the events late; "
            "with Static(8) it is 0 %"
        )

    def test_one_that_would_be_late_is_not_let_in(self):
        assert changes(played(Canary(Static(4), Static(1), minutes=2), [100] * 200)) == []

    def test_one_that_got_in_is_taken_back_when_more_is_late_than_promised(self):
        """12,000 events come in its 2 min: 1 % of them may be late."""
        guard = Canary(Static(8), Static(4), minutes=2)
        played(guard, [100] * 30)
        assert guard.in_charge
        plans = [guard.plan(seen(number, 100, late=late)) for number, late in ((31, 60), (32, 59), (33, 3), (34, 3))]
        assert changes(plans) == [(2, "Static(8)", "Static(4)")]
        assert plans[2].beside.why.startswith("took back: Static(4) was late with 122 events in 40 s, where Static(8)")
        assert plans[2].replicas == {"clean": 8}

    def test_once_taken_back_it_stays_in_the_shadow(self):
        guard = Canary(Static(8), Static(4), minutes=2)
        played(guard, [100] * 30)
        guard.plan(seen(31, 100, late=400))
        assert not guard.in_charge
        assert changes(played(guard, [100] * 100)) == []

    def test_what_waited_when_it_took_over_is_not_its_doing(self):
        guard = Canary(Static(1), Static(4), minutes=2)
        plans = played(guard, [100] * 40, late=300, backlog=9000)
        assert changes(plans)[0][1] == "Static(4)"
        assert len(changes(plans)) == 1

    def test_one_that_fails_in_the_shadow_is_never_let_in(self):
        """It has no plans, so it seemed to cost nothing."""
        assert changes(played(Canary(Static(4), Breaks(), minutes=1), [100] * 60)) == []

    def test_one_that_fails_when_it_decides_is_taken_back_at_once(self):
        class Tires:
            own_windows = True

            def plan(self, snapshot, forecast=None):
                if snapshot.time_s > 200:
                    raise ValueError("no idea")
                return Plan({"clean": Target(3, "three")})

        plans = played(Canary(Static(4), Tires(), minutes=1), [100] * 60)
        assert changes(plans) == [(12, "Tires", "Static(4)"), (41, "Static(4)", "Tires")]
        assert plans[41].beside.why == "took back: Tires failed: ValueError: no idea"
        assert plans[41].replicas == {"clean": 4}

    def test_who_decides_and_fails_is_heard(self):
        with pytest.raises(ValueError, match="no idea"):
            played(Canary(Breaks(), Static(4), minutes=1), [100])

    def test_begins_once_where_no_execution_time_is_known(self):
        guard = Canary(Static(8), Static(4), minutes=1)
        seen_ = [snapshot({"in": 5}, [load("clean", {"in": 5})], time_s=float(number)) for number in range(3)]
        assert [guard.plan(one).beside.why is None for one in seen_] == [False, True, True]

    def test_one_that_turns_out_to_cost_more_is_taken_back(self):
        """At little load `psps` takes less than four; then comes more, and four are still enough for it."""

        class Grows:
            own_windows = True

            def plan(self, snapshot, forecast=None):
                count = 2 if snapshot.time_s < 200 else 20
                return Plan({"clean": Target(count, "as it likes")})

        plans = played(Canary(Static(4), Grows(), minutes=2), [80] * 120, replicas=4)
        (_, first, _), (number, second, _) = changes(plans)
        assert (first, second) == ("Grows", "Static(4)")
        assert 40 <= number <= 70
        assert "Static(4) would have cost" in plans[number].beside.why

    def test_numbers_that_are_not_to_be_trusted_are_not_judged(self):
        guard = Canary(Static(8), Static(4), minutes=2)
        plans = played(guard, [100] * 60, incomplete={"clean": "stale"})
        assert changes(plans) == []

    def test_is_the_same_after_it_was_pickled(self):
        guard = Canary(Psps(), Headroom(Psps(), 0.5), minutes=2)
        played(guard, [100] * 20)
        again = pickle.loads(pickle.dumps(guard))
        assert played(again, [120] * 20) == played(guard, [120] * 20)

    def test_memory_is_bounded(self):
        guard = Canary(Static(8), Static(7), minutes=1)
        for number in range(3000):
            clean = load("clean", {"in": 20}, execution_time_s=0.02)
            guard.plan(snapshot({"in": 20}, [clean], time_s=0.2 * number, interval_s=0.2, td_s=0.2))
        assert len(guard._window) <= 62


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ((0.0, 97.0), (0.0, 100.0), True),
        ((0.0, 99.0), (0.0, 100.0), False),  # not worth a change
        ((0.005, 50.0), (0.0, 100.0), True),  # within 0.6 of the promise
        ((0.008, 50.0), (0.0, 100.0), False),
        ((0.02, 500.0), (0.2, 100.0), True),  # keeps less of the promise broken
    ],
)
def test_what_is_better(one, other, said):
    assert better(one, other, 0.01) is said


class TestNames:
    def test_minutes_among_the_options(self):
        assert parse_canary("cba:12,predict=sources,minutes=3") == ("cba:12,predict=sources", 3.0)

    @pytest.mark.parametrize("text", ["psps:minutes=soon", "psps:minutes=0", "psps:minutes=-1"])
    def test_minutes_that_are_none(self, text):
        with pytest.raises(InputError, match="minutes must be"):
            parse_canary(text)

    def test_one_way_only(self):
        with pytest.raises(InputError, match="give one of shadow and canary"):
            beside("psps", make_policy, {"late": 0.01, "target_ms": 500.0}, shadow="static:1", canary="static:2")

    def test_by_name(self):
        promise = {"late": 0.02, "target_ms": 500.0}
        found = beside("psps", make_policy, promise, canary="static:1,minutes=5")
        assert (found.names, found.minutes, found.late, found.target_ms) == (("psps", "static:1"), 5.0, 0.02, 500.0)
        assert isinstance(beside("psps", make_policy, promise), Psps)
