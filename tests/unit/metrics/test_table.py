"""Counters as arrays: sums and growth are those of the counters one by one, whatever comes, goes or is broken."""

from __future__ import annotations

import math
from functools import reduce
from operator import add

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.metrics.counters import OperatorCounters, ReplicaCounters, RunCounters
from penstock.metrics.table import BUSY_S, PROCESSED, CounterTable

NAMES = st.dictionaries(st.sampled_from(["in", "a", "b"]), st.integers(0, 10**12), max_size=3)
REPLICAS = st.builds(
    ReplicaCounters,
    received=NAMES,
    processed=st.integers(0, 10**12),
    emitted=NAMES,
    dropped=NAMES,
    busy_s=st.floats(0, 1e9),
    cpu_s=st.floats(0, 1e9),
    queued=st.integers(0, 1000),
)
OPERATORS = st.dictionaries(
    st.sampled_from(["a", "b", "c"]), st.dictionaries(st.integers(0, 9), REPLICAS, max_size=4), max_size=3
)


def table_of(operators):
    return CounterTable.of({name: OperatorCounters(some, tuple(some), 10, 0) for name, some in operators.items()})


@given(OPERATORS)
def test_totals_are_those_of_the_replicas_one_after_another(operators):
    table = table_of(operators)
    totals = table.totals(table.cells)
    for name, replicas in operators.items():
        columns = table.layout.operators[name]
        assert columns.replicas == tuple(replicas)
        for place, sender in enumerate(columns.senders):
            assert totals[name][place] == sum(one.received.get(sender, 0) for one in replicas.values())
        assert totals[name][PROCESSED] == sum(one.processed for one in replicas.values())
        assert totals[name][BUSY_S] == reduce(add, (one.busy_s for one in replicas.values()), 0.0)  # to the last bit
        first, last = table.layout.rows[name]
        assert table.of_replicas(table.cells, PROCESSED)[first:last].tolist() == [
            one.processed for one in replicas.values()
        ]


@given(OPERATORS, OPERATORS)
def test_growth_goes_by_names_where_replicas_or_streams_have_changed(before, now):
    grown, doubts = table_of(now).growth(table_of(before))
    table = table_of(now)
    done = table.of_replicas(grown, PROCESSED)
    for name, replicas in now.items():
        first, _ = table.layout.rows[name]
        for row, (number, one) in enumerate(replicas.items()):
            last = before.get(name, {}).get(number, ReplicaCounters())
            expected = one.processed - last.processed
            assert done[first + row] == max(0, expected)
            assert expected >= 0 or name in doubts


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1])
@pytest.mark.parametrize("field", ["processed", "busy_s", "cpu_s"])
def test_what_is_no_count_has_not_grown_and_is_named(field, bad):
    good = {0: ReplicaCounters({"in": 5}, 5, busy_s=1.0), 1: ReplicaCounters({"in": 5}, 5)}
    broken = {0: ReplicaCounters({"in": 9}, 9, busy_s=2.0), 1: ReplicaCounters({"in": 9}, 9)}
    setattr(broken[1], field, bad)
    table = table_of({"a": broken, "b": good})
    grown, doubts = table.growth(table_of({"a": good, "b": good}))
    assert set(doubts) == {"a"}
    assert (grown >= 0).all()
    assert table.totals(grown)["a"][0] == 8


def test_a_run_without_operators_has_an_empty_table():
    empty = RunCounters(0.0, {}, {})
    assert empty.table.growth(empty.table)[1] == {}
    assert empty.latency.count == 0
