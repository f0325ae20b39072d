"""`psps` and its guards decide in columns; to the last bit as they do operator by operator."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.metrics.shares import propagate
from penstock.metrics.snapshot import Snapshot
from penstock.policy.base import Plan, share_slots
from penstock.policy.guards import Bounded, Calm, Cooldown, RefuseIncomplete
from penstock.policy.guards.calm import BURST_S, MOVE_BYTES_PER_S, MOVE_LATENCY_S, MOVING
from penstock.policy.parts.expected import SHARE_S, Expected, SourceRates, faded, horizon_s, movable
from penstock.policy.psps import Psps
from penstock.testing.loads import load

NAMES = ("a", "b", "c")
COUNTS = st.integers(0, 200)


@st.composite
def seen(draw, number):
    """A snapshot: operators come and go, keep state, have queues, are doubted, and take a time or none."""
    loads = {}
    for place, name in enumerate(NAMES):
        if draw(st.integers(0, 7)):
            loads[name] = load(
                name,
                draw(st.dictionaries(st.sampled_from(["in", "more", "x", *NAMES[:place]]), COUNTS, max_size=3)),
                draw(COUNTS),
                backlog=draw(COUNTS),
                replicas=draw(st.integers(1, 4)),
                pool=draw(st.integers(1, 6)),
                execution_time_s=draw(st.sampled_from([None, 0.01, 0.07])),
                queued_by=draw(st.sampled_from([{}, {0: 30}, {0: 3, 1: 90, 3: 7}])),
                declared_shares=draw(st.sampled_from([{}, {"a": 0.3, "in": 0.0}])),
                state_bytes=draw(st.sampled_from([0, 0, 10**6, 10**8])),
            )
    return Snapshot(
        time_s=number * 0.6,
        interval_s=draw(st.sampled_from([0.2, 1.0, 6.0])),
        td_s=draw(st.sampled_from([0.2, 1.0, 6.0])),
        source_input={"in": draw(COUNTS), "more": draw(COUNTS)},
        operators=loads,
        incomplete=draw(st.sampled_from([{}, {}, {"b": "stale"}, {"in": "stale"}])),
    )


class PlainPsps:
    """`psps`, operator by operator."""

    def __init__(self):
        self.rates, self.known, self.sums = SourceRates(), {}, {}

    def plan(self, snapshot, forecast=None):
        over_s = horizon_s(snapshot.td_s)
        entering = {source: rate * over_s for source, rate in self.rates.learn(snapshot).items()}
        self.known = {name: self.shares(one, snapshot) for name, one in snapshot.operators.items()}
        own = {name: movable(one, over_s) for name, one in snapshot.operators.items()}
        new, waiting, total = flow(entering, self.known), flow(own, self.known), sum(entering.values())
        return Plan(
            {
                name: Expected(new[name], waiting[name], total, one.backlog - own[name]).target(one, over_s)
                for name, one in snapshot.operators.items()
            }
        )

    def shares(self, one, snapshot):
        known, shares, fade = self.known.get(one.name, {}), {}, faded(snapshot.interval_s, SHARE_S)
        for predecessor, received in one.received_by.items():
            sender, declared = snapshot.operators.get(predecessor), one.declared_shares.get(predecessor, 1.0)
            sent = sender.processed if sender else snapshot.source_input.get(predecessor, 0)
            if predecessor in snapshot.source_input and declared > 0:
                shares[predecessor] = 1.0
            elif sent > 0 and not {one.name, predecessor} & snapshot.incomplete.keys():
                before = self.sums.get((one.name, predecessor), (0.0, 0.0)) if fade else (0.0, 0.0)
                sums = self.sums[one.name, predecessor] = fade * before[0] + received, fade * before[1] + sent
                shares[predecessor] = sums[0] / sums[1]
            else:
                shares[predecessor] = known.get(predecessor, declared)
        return shares


def flow(own, edges):
    amounts = dict(own)
    for operator, shares in edges.items():
        amount = own.get(operator, 0.0)
        for predecessor, share in shares.items():
            amount += share * amounts.get(predecessor, 0.0)
        amounts[operator] = amount
    return amounts


class PlainGuards:
    """`Bounded(Cooldown(Calm(RefuseIncomplete(…))))`, operator by operator."""

    def __init__(self, policy, slots):
        self.policy, self.slots = RefuseIncomplete(policy), slots
        self.time_s, self.seen, self.left, self.changed_s = None, {}, {}, {}

    def plan(self, snapshot, forecast=None):
        targets = dict(self.policy.plan(snapshot).targets)
        before_s = snapshot.time_s if self.time_s is None else self.time_s
        left, changed_s = {}, {}
        for name, one in snapshot.operators.items():
            now, before = one.replicas, self.seen.get(name, one.replicas)
            move_s = MOVE_LATENCY_S + one.state_bytes / MOVE_BYTES_PER_S
            rate = min(12.0, 60 * MOVING / move_s) if one.state_bytes > 0 else 12.0
            most = max(1.0, rate * BURST_S / 60)
            grown = self.left.get(name, most) + rate * (snapshot.time_s - before_s) / 60
            left[name] = min(most, grown) - (before != now)
            if before != now:
                changed_s[name] = before_s
            elif name in self.changed_s:
                changed_s[name] = self.changed_s[name]
            if targets[name].replicas < now and left[name] < 1 - 1e-9:
                why = f"scale-in waits: {rate:.3g} changes a minute are enough"
                targets[name] = targets[name].limited(now, why)
            passed_s = snapshot.time_s - changed_s.get(name, -1e9)
            down, wait_s = (True, 2.0) if targets[name].replicas < now else (False, 1.0)
            if targets[name].replicas != now and passed_s < wait_s:
                what = "scale-in" if down else "scale-out"
                why = f"{what} waits until {wait_s:g} s after the last change, {passed_s:.4g} s ago"
                targets[name] = targets[name].limited(now, why)
            if targets[name].replicas > one.pool:
                targets[name] = targets[name].limited(one.pool, f"the pool has {one.pool}")
        self.time_s, self.left, self.changed_s = snapshot.time_s, left, changed_s
        self.seen = {name: one.replicas for name, one in snapshot.operators.items()}
        return Plan(self.within_slots(targets, snapshot))

    def within_slots(self, targets, snapshot):
        wanted = {name: one.replicas for name, one in targets.items()}
        if sum(wanted.values()) <= self.slots:
            return targets
        active = {name: one.replicas if snapshot.incomplete else 1 for name, one in snapshot.operators.items()}
        floor = {name: min(count, active[name]) for name, count in wanted.items()}
        why = f"{self.slots} slots are shared by need, {sum(wanted.values())} were wanted"
        given = share_slots(wanted, floor, self.slots)
        return {
            name: one.limited(given[name], why) if given[name] < wanted[name] else one for name, one in targets.items()
        }


RUNS = st.tuples(*(seen(number) for number in range(6)))


@given(RUNS)
@settings(max_examples=40, deadline=None)
def test_psps_is_that_of_the_operators_one_by_one(run):
    policy, plain = Psps(predecessor_backlog=True), PlainPsps()
    for snapshot in run:
        plan, expected = policy.plan(snapshot), plain.plan(snapshot)
        assert plan.targets == expected.targets
        assert plan.replicas == expected.replicas
        assert policy._shares._known == plain.known
        assert propagate({"in": 1.0}, policy._shares._known) == flow({"in": 1.0}, plain.known)


@given(RUNS, st.integers(3, 12))
@settings(max_examples=40, deadline=None)
def test_so_are_its_guards(run, slots):
    inner = Calm(RefuseIncomplete(Psps(predecessor_backlog=True)), per_minute=12.0)
    guards = Bounded(Cooldown(inner, scale_in_s=2.0, scale_out_s=1.0), slots=slots)
    plain = PlainGuards(PlainPsps(), slots)
    plans = [(guards.plan(snapshot), plain.plan(snapshot)) for snapshot in run]
    for plan, expected in plans:  # looked at when all are made: no plan changes with what comes after it
        assert plan.targets == expected.targets
        assert list(plan.targets) == list(expected.targets)
        assert plan.replicas == expected.replicas
