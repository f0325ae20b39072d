"""An interval read in columns is, to the last bit, what it is when it is read operator by operator."""

from __future__ import annotations

import math
import pickle
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.metrics.counters import OperatorCounters, ReplicaCounters, RunCounters
from penstock.metrics.execution_time import ExecutionTimes
from penstock.metrics.interval import IntervalRules, difference
from penstock.metrics.snapshot import Declared, Loads, OperatorLoad
from penstock.metrics.table import CounterTable

ORDER = ("a", "b", "c", "d")
DECLARED = {
    "a": Declared(("in",), 0.01),
    "b": Declared(("a", "more"), shares={"a": 0.5, "more": 0.0}, keyed=True),
    "c": Declared(("a", "b"), shares={"b": 0.0}),
}
COUNTS = st.one_of(st.integers(0, 1000), st.sampled_from([math.nan, -3, math.inf]))
GOOD = st.integers(0, 1000)


def senders(name):
    """Those before it, and one that nobody declared."""
    return ["in", "more", "x", *ORDER[: ORDER.index(name)]]


def replicas(name, counts):
    names = st.dictionaries(st.sampled_from(senders(name)), counts, max_size=3)
    return st.builds(
        ReplicaCounters,
        received=names,
        processed=counts,
        emitted=names,
        dropped=names,
        busy_s=st.floats(0, 9),
        cpu_s=st.floats(0, 9),
        queued=st.integers(-1, 50),
        state_bytes=GOOD,
    )


@st.composite
def moments(draw, time_s, counts):
    """Counters at a time: operators and replicas come and go, are stale or missing, and senders hold events."""
    operators = {
        name: OperatorCounters(
            draw(st.dictionaries(st.integers(0, 3), replicas(name, counts), max_size=3)),
            draw(st.sampled_from([(0,), (0, 1), (2, 5)])),
            draw(st.integers(1, 8)),
            draw(counts),
            draw(st.sampled_from([0.0, 0.0, 0.1, 9.0])),
            draw(st.sampled_from([None, (0, 1, 4)])),
            draw(st.just({}) | st.dictionaries(st.sampled_from(senders(name)), st.integers(1, 9), max_size=2)),
        )
        for name in ORDER
        if draw(st.integers(0, 9))
    }
    missing = frozenset(draw(st.sampled_from([(), (), ("a",)])))
    sources = {"in": draw(GOOD), "more": draw(GOOD)}
    return RunCounters(
        time_s, sources, operators, missing=missing, lag=draw(st.sampled_from([{}, {"in": 5, "more": -2}]))
    )


def runs(counts):
    return st.tuples(*(moments(10.0 + 2 * number, counts) for number in range(3)))


def plain_load(name, earlier, later, length_s):
    """One operator, number by number; and why not to trust it."""
    now = later.operators.get(name) or earlier.operators[name]
    before = earlier.operators.get(name) or OperatorCounters({}, (), 0, 0)
    table, doubt = CounterTable.of({name: now}), None
    grown, doubts = table.growth(CounterTable.of({name: before}))
    told, columns = DECLARED.get(name, Declared(())), table.layout.operators[name]
    totals, gone = table.totals(grown)[name], {*before.replicas} - {*now.replicas}
    doubt = doubts.get(name) or (f"replica {min(gone)} says nothing" if gone else None)
    if not 0 <= now.backlog < math.inf:
        doubt = doubt or f"backlog is {now.backlog}"
    outside = sum(max(0, later.lag.get(source, 0)) for source in told.predecessors)
    counts = iter(totals)
    received = {**dict.fromkeys(told.predecessors, 0), **{one: int(next(counts)) for one in columns.senders}}
    for sender in {**before.held_by, **now.held_by}:
        more = now.held_by.get(sender, 0) - before.held_by.get(sender, 0)
        received[sender] = max(0, received.get(sender, 0) + more)
    emitted, dropped = ({one: int(next(counts)) for one in some} for some in (columns.streams, columns.causes))
    processed, busy_s, cpu_s = int(next(counts)), next(counts), next(counts)
    load = OperatorLoad(
        name=name,
        received_by=received,
        processed=processed,
        backlog=(int(now.backlog) if 0 <= now.backlog < math.inf else 0) + outside,
        active=now.active,
        pool=now.pool,
        execution_time_s=busy_s / processed if processed and not doubt else None,
        processed_by={one: int(n) for one, n in zip(now.replicas, table.of_replicas(grown, -3), strict=True)},
        queued_by={one: max(0, counted.queued) for one, counted in now.replicas.items()},
        busy_share={one: n / length_s for one, n in zip(now.replicas, table.of_replicas(grown, -2), strict=True)},
        cpu_share=cpu_s / length_s,
        emitted=emitted,
        dropped=dropped,
        declared_shares=told.shares,
        state_bytes=sum(one.state_bytes for one in now.replicas.values()),
        there=now.there,
        held=sum(now.held_by.values()),
        outside=outside,
        keyed=told.keyed,
    )
    return load, doubt


def plain_absence(name, counters, rules):
    if name not in counters.operators:
        return f"no counters at {counters.time_s:.6g} s"
    if name in counters.missing:
        return f"a replica said nothing at {counters.time_s:.6g} s"
    age_s = counters.operators[name].age_s
    stale = f"at {counters.time_s:.6g} s last heard of {age_s:.3g} s before; stale after {rules.oldest_s:g} s"
    return None if age_s <= rules.oldest_s else stale


def plain_output(later, processed):
    """The sinks' events by their share of what entered, edge by edge."""
    sent, edges = dict(later.sources), {}
    for name, one in later.operators.items():
        told, received = DECLARED.get(name, Declared(())), {}
        for replica in one.replicas.values():
            for sender, count in replica.received.items():
                received[sender] = received.get(sender, 0) + count
        for sender, count in one.held_by.items():
            received[sender] = received.get(sender, 0) + count
        sent[name] = sum(replica.processed for replica in one.replicas.values())
        edges[name] = {p: told.shares.get(p, 1.0) for p in told.predecessors}
        for sender, count in received.items():
            if sender in later.sources and edges[name].get(sender, 1.0) > 0:
                edges[name][sender] = 1.0
            elif sent.get(sender, 0) > 0:
                edges[name][sender] = count / sent[sender]
    reaching = dict(later.sources)
    for name, shares in edges.items():
        reaching[name] = sum((share * reaching.get(p, 0.0) for p, share in shares.items()), 0.0)
    shares_of = {name: DECLARED.get(name, Declared(())).shares for name in edges}
    read = {p for name, shares in edges.items() for p in shares if shares_of[name].get(p, 1.0) > 0}
    sinks, total = [name for name in edges if name not in read], sum(later.sources.values())
    expected = sum(reaching[sink] for sink in sinks)
    output = sum(processed[sink] for sink in sinks) * total / expected if total and expected > 0 else 0.0
    return output if math.isfinite(output) else 0.0


def check(ends, *, estimated, doubt=None):
    rules = IntervalRules(2.0, DECLARED)
    times, plain_times = (ExecutionTimes({"a": 0.01}) if estimated else None for _ in range(2))
    for earlier, later in pairwise(ends):
        seen = difference(earlier, later, rules, times=times, doubt=doubt)
        known = {**earlier.operators, **later.operators}
        assert list(seen.operators) == [name for name in (*DECLARED, "d") if name in known]
        expected, incomplete = {}, {}
        for name in seen.operators:
            load, why = plain_load(name, earlier, later, 2.0)
            absent = plain_absence(name, later, rules) or plain_absence(name, earlier, rules)
            if plain_times is not None:
                learnt_s = 0.0 if doubt or absent or why else (load.execution_time_s or 0.0) * load.processed
                load.execution_time_s = plain_times.learn(name, learnt_s, load.processed, 2.0)
            expected[name] = load
            if absent or why:
                incomplete[name] = absent or why
        doubted = dict.fromkeys(("in", "more", *expected), doubt) if doubt else incomplete
        assert {name: why for name, why in seen.incomplete.items() if doubt or name in expected} == doubted
        assert seen.operators == expected
        assert {name: [*load.received_by] for name, load in seen.operators.items()} == {
            name: [*load.received_by] for name, load in expected.items()
        }
        output = plain_output(later, {name: load.processed for name, load in expected.items()})
        assert seen.source_output == pytest.approx(output, rel=1e-12)
        check_columns(seen.operators, Loads(expected))


def check_columns(columns, plain):
    for what in ("active", "replicas", "pool", "processed", "backlog", "booked", "execution_time_s", "state_bytes"):
        assert getattr(columns, what) == getattr(plain, what), what
    assert columns.received == plain.received
    assert columns.received.graph.edges == plain.received.graph.edges
    assert columns.declared.tolist() == plain.declared.tolist()
    assert pickle.loads(pickle.dumps(columns)) == plain


@given(runs(GOOD), st.booleans())
@settings(max_examples=20, deadline=None)
def test_columns_are_the_loads_one_by_one(ends, estimated):
    check(ends, estimated=estimated)


@given(runs(COUNTS), st.booleans())
@settings(max_examples=20, deadline=None)
def test_so_they_are_where_counters_are_broken(ends, estimated):
    check(ends, estimated=estimated)


@given(runs(GOOD))
@settings(max_examples=8, deadline=None)
def test_from_an_interval_that_is_not_to_be_trusted_nothing_is_learnt(ends):
    check(ends, estimated=True, doubt="the clock jumped")


def test_a_layout_in_another_order_is_another_layout():
    """Two tables with the same operators in another order were taken for alike, and cells for each other's."""
    one, two = ({0: ReplicaCounters(processed=count)} for count in (5, 9))
    forth = {"a": OperatorCounters(one, (0,), 1, 0), "b": OperatorCounters(two, (0,), 1, 0)}
    before, now = CounterTable.of(forth), CounterTable.of(dict(reversed(forth.items())))
    now.keep_layout(before)
    assert now.layout is not before.layout
    assert now.growth(before)[0].tolist() == [0.0] * 6
