"""A state played on: what waits, what comes, and what more replicas change of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.simulator.what_if import Standing, StateAtHand, played_on


def state(rates=(0.0, 0.0), grouping="shuffle", **changes):
    given = {"execution_time_s": 0.1, "pool": 4, "replicas": 1, "backlog": 100, "shares": {"in": 1.0}, **changes}
    return StateAtHand({"work": Standing(**given)}, {"in": rates}, td_s=10.0, target_s=2.0, grouping=grouping)


def test_what_waits_is_late_where_it_waits_too_long():
    """100 events of 0.1 s: the 20th is done after 2 s, and a hop."""
    found = played_on(state(), {"work": 1})
    assert (found.events, found.late, found.backlog) == (100, 81, 0)
    assert found.replica_seconds == pytest.approx(20.0, abs=0.1)


def test_what_has_been_sent_is_not_shared_out_unless_it_is_bound_late():
    assert played_on(state(), {"work": 4}).late == 81
    assert played_on(state(grouping="pull"), {"work": 4}).late < 40


def test_what_comes_is_for_all_replicas():
    many = state(rates=(30.0, 30.0), backlog=0)
    alone, helped = (played_on(many, {"work": count}) for count in (1, 4))
    assert alone.events == helped.events == 600
    assert alone.late > 450
    assert (helped.late, helped.backlog < 5) == (0, True)
    assert helped.replica_seconds == pytest.approx(4 * alone.replica_seconds, rel=0.01)


def test_a_backlog_in_the_middle_goes_on_to_who_reads_it():
    operators = {
        "split": Standing(execution_time_s=0.001, pool=2, replicas=1, backlog=10, shares={"lines": 1.0}),
        "count": Standing(execution_time_s=0.001, pool=2, replicas=1, backlog=7, shares={"split": 3.0}),
    }
    found = played_on(StateAtHand(operators, {"lines": (10.0,)}, 1.0, 2.0), {"split": 1, "count": 1})
    assert found.events == 10 + 10 + 7
    assert (found.late, found.backlog <= 3) == (0, True)


def test_a_graph_with_two_ways_and_an_unknown_time():
    operators = {
        "a": Standing(execution_time_s=None, pool=2, replicas=1, backlog=0, shares={"in": 1.0}),
        "b": Standing(execution_time_s=0.002, pool=2, replicas=1, backlog=3, shares={"a": 0.5}),
        "c": Standing(execution_time_s=0.002, pool=2, replicas=2, backlog=0, shares={"a": 0.5, "b": 1.0}),
    }
    found = played_on(StateAtHand(operators, {"in": (100.0, 50.0)}, 1.0, 2.0), {"a": 1, "b": 2, "c": 1})
    assert found.events == 153
    assert found.late == 0


def test_things_may_be_called_anything():
    """A keeper's store calls a query's source `clicks (source)`, which no topology takes."""
    plain = {
        "a": Standing(execution_time_s=0.01, pool=4, replicas=1, backlog=5, shares={"in": 1.0}),
        "b": Standing(execution_time_s=0.02, pool=4, replicas=2, backlog=0, shares={"a": 2.0}),
    }
    strange = {
        "my clicks.v2": replace(plain["a"], shares={"my clicks.v2 (source)": 1.0}),
        "1st": replace(plain["b"], shares={"my clicks.v2": 2.0}),
    }
    rates = (10.0, 30.0)
    wanted = played_on(StateAtHand(plain, {"in": rates}, 5.0, 2.0), {"a": 1, "b": 2})
    found = played_on(
        StateAtHand(strange, {"my clicks.v2 (source)": rates, "nobody's": rates}, 5.0, 2.0),
        {"my clicks.v2": 1, "1st": 2},
    )
    assert found == wanted
    assert wanted.events > 200


def test_of_a_source_that_is_not_known_nothing_comes():
    operators = {
        "known": Standing(execution_time_s=0.01, pool=4, replicas=1, backlog=0, shares={"in": 1.0}),
        "unknown": Standing(execution_time_s=None, pool=4, replicas=1, backlog=3, shares={"lost": 1.0}),
    }
    found = played_on(StateAtHand(operators, {"in": (10.0, 10.0)}, 5.0, 2.0), {"known": 1, "unknown": 1})
    assert (found.events, found.late) == (103, 0)


@given(st.integers(0, 60), st.integers(0, 40), st.integers(1, 4))
@settings(max_examples=15, deadline=None)
def test_more_replicas_are_never_later(backlog, rate, replicas):
    known = state(rates=(float(rate),), backlog=backlog, replicas=replicas)
    outcomes = [played_on(known, {"work": count}) for count in range(replicas, 5)]
    late = [one.late for one in outcomes]
    assert late == sorted(late, reverse=True)
    assert all(one.events == backlog + 10 * rate for one in outcomes)
