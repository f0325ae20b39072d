"""What issue 3 asks of psps for every input, held on random topologies."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.forecast.base import Forecast
from penstock.metrics.paper import replicas_for
from penstock.policy.guards import guarded
from penstock.policy.psps import Psps
from penstock.testing.loads import load, snapshot

counts = st.integers(0, 100_000)
times_s = st.one_of(st.none(), st.floats(1e-6, 2.0))
options = st.fixed_dictionaries({"predecessor_backlog": st.booleans(), "use_forecast": st.booleans()})


@st.composite
def snapshots(draw):
    """A random DAG of up to 8 operators and 2 sources, with any counts."""
    sources = ["s0", "s1"][: draw(st.integers(1, 2))]
    loads = []
    for number in range(draw(st.integers(1, 8))):
        known = sources + [one.name for one in loads]
        senders = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True))
        pool = draw(st.integers(1, 32))
        loads.append(
            load(
                f"o{number}",
                {sender: draw(counts) for sender in senders},
                draw(counts),
                backlog=draw(counts),
                pool=pool,
                replicas=draw(st.integers(1, pool)),
                execution_time_s=draw(times_s),
            )
        )
    names = sources + [one.name for one in loads]
    bad = draw(st.lists(st.sampled_from(names), max_size=3, unique=True))
    source_input = {source: draw(counts) for source in sources}
    return snapshot(source_input, loads, td_s=draw(st.floats(1, 60)), incomplete=dict.fromkeys(bad, "stale"))


@given(snapshots(), options, st.integers(1, 100))
@settings(max_examples=150, deadline=None)
def test_never_below_one_nor_above_the_pool(seen, option, slots):
    plan = guarded(Psps(**option), slots=slots).plan(seen)
    assert plan.targets.keys() == seen.operators.keys()
    for name, target in plan.targets.items():
        assert 1 <= target.replicas <= seen.operators[name].pool
        assert target.reason


@given(snapshots(), options, st.dictionaries(st.sampled_from(["s0", "s1"]), counts))
@settings(max_examples=150, deadline=None)
def test_more_input_never_means_fewer_replicas(seen, option, more):
    fuller = replace(seen, source_input={s: n + more.get(s, 0) for s, n in seen.source_input.items()})
    less, plenty = (guarded(Psps(**option)).plan(one).replicas for one in (seen, fuller))
    assert all(plenty[name] >= less[name] for name in less)


@given(snapshots(), st.floats(0, 1e5), st.floats(0, 1e5))
@settings(max_examples=100, deadline=None)
def test_a_higher_forecast_never_means_fewer_replicas(seen, rate, more):
    low, high = (Forecast("given", {"s0": (one,)}) for one in (rate, rate + more))
    less, plenty = (Psps(use_forecast=True).plan(seen, one).replicas for one in (low, high))
    assert all(plenty[name] >= less[name] for name in less)


@given(snapshots(), st.booleans(), counts)
@settings(max_examples=100, deadline=None)
def test_more_backlog_never_means_fewer_replicas(seen, predecessor_backlog, more):
    fuller = replace(
        seen, operators={name: replace(one, backlog=one.backlog + more) for name, one in seen.operators.items()}
    )
    less, plenty = (Psps(predecessor_backlog=predecessor_backlog).plan(one).replicas for one in (seen, fuller))
    assert all(plenty[name] >= less[name] for name in less)


def chain_after(entered, processed, execution_times_s, head_backlog=0):
    """A chain without filters in which `entered` came in and every operator processed `processed`."""
    loads, sender, received = [], "in", entered
    for number, time_s in enumerate(execution_times_s):
        backlog = head_backlog if number == 0 else 0
        loads.append(load(f"o{number}", {sender: received}, processed, backlog=backlog, execution_time_s=time_s))
        sender, received = f"o{number}", processed
    return snapshot({"in": entered}, loads)


chain_times_s = st.lists(st.floats(1e-4, 0.5), min_size=5, max_size=5)


@given(st.integers(1, 500), st.integers(2, 50), chain_times_s)
@settings(max_examples=100, deadline=None)
def test_a_chain_of_five_reaches_its_size_in_one_step_after_a_jump(before, factor, times):
    """The jump is seen at the source alone: downstream still has the old rate, and no backlog yet."""
    entered = before * factor
    replicas = Psps().plan(chain_after(entered, before, times)).replicas
    assert list(replicas.values()) == [replicas_for(entered * time_s) for time_s in times]


@given(st.integers(1, 500), st.integers(0, 5000), chain_times_s)
@settings(max_examples=100, deadline=None)
def test_with_predecessor_backlog_also_with_a_backlog_at_its_head(entered, backlog, times):
    seen = chain_after(entered, entered, times, backlog)
    replicas = Psps(predecessor_backlog=True).plan(seen).replicas
    assert list(replicas.values()) == [replicas_for((entered + backlog) * time_s) for time_s in times]


@given(snapshots(), options)
@settings(max_examples=100, deadline=None)
def test_the_same_input_gives_the_same_plan(seen, option):
    assert Psps(**option).plan(seen) == Psps(**option).plan(seen)


@given(st.floats(0, 1e6))
def test_replicas_suffice_and_one_fewer_would_not(load_):
    replicas = replicas_for(load_)
    assert replicas * (1 + 1e-8) >= load_
    assert replicas == 1 or replicas - 1 < load_
    assert replicas == max(1, math.ceil(load_)) or abs(load_ - round(load_)) <= 1e-9 * max(1, load_)
