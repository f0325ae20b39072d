"""A state played on: what waits, what comes, and what more replicas change of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.simulator.what_if import Earlier, Standing, StateAtHand, played_on


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


def test_what_waits_has_its_age_when_the_past_is_known():
    """Counted as new, what had waited for 9 s was not late when it was done a second later."""
    past = tuple(Earlier({"in": 11.0}, {"work": 1}, {"work": waited}) for waited in range(10))
    known = replace(state(backlog=10, rates=(0.0,) * 10), td_s=1.0, target_s=0.5, past=past)
    assert played_on(replace(known, past=()), {"work": 1}).late == 6
    found = played_on(known, {"work": 1})
    assert found.late == found.events
    assert found.events in (10, 11)  # one comes just then


def test_what_waits_is_with_whom_it_was_sent_to():
    """Spread over all four, 40 events of 0.1 s were done within a second; the first replica has them all, for four."""
    past = (Earlier({"in": 40.0}, {"work": 1}, {"work": 0}), Earlier({"in": 0.0}, {"work": 4}, {"work": 30}))
    here = state(backlog=20, replicas=4, rates=(0.0,) * 10)
    here = replace(here, td_s=1.0, target_s=1.5)
    assert played_on(here, {"work": 4}).late == 0
    assert played_on(replace(here, past=past), {"work": 4}).late >= 18


def test_what_is_missing_at_the_end_of_the_past_is_added_once():
    """What waited at the second operator is still at the first where it is played: it is not there twice."""
    operators = {
        "a": Standing(execution_time_s=0.1, pool=4, replicas=1, backlog=10, shares={"in": 1.0}),
        "b": Standing(execution_time_s=0.1, pool=4, replicas=1, backlog=20, shares={"a": 1.0}),
    }
    past = (Earlier({"in": 30.0}, {"a": 1, "b": 1}, {"a": 0, "b": 0}),)
    found = played_on(StateAtHand(operators, {"in": (0.0,)}, 1.0, 2.0, past=past), {"a": 1, "b": 1})
    assert found.events == 30


@given(st.integers(0, 60), st.integers(0, 40), st.integers(1, 4))
@settings(max_examples=15, deadline=None)
def test_more_replicas_are_never_later(backlog, rate, replicas):
    known = state(rates=(float(rate),), backlog=backlog, replicas=replicas)
    outcomes = [played_on(known, {"work": count}) for count in range(replicas, 5)]
    late = [one.late for one in outcomes]
    assert late == sorted(late, reverse=True)
    assert all(one.events == backlog + 10 * rate for one in outcomes)
