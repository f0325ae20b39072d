from __future__ import annotations

import pytest

from penstock.metrics.counters import OperatorCounters, ReplicaCounters, RunCounters
from penstock.metrics.shares import counted_edges, declared_edges, propagate, shares_of, source_output
from penstock.metrics.snapshot import Declared

DIAMOND = {"o1": {"in": 1}, "o2": {"o1": 0.7}, "o3": {"o1": 0.3}, "o4": {"o2": 0.4, "o3": 1}}


def test_the_papers_diamond():
    assert shares_of(DIAMOND, "in") == pytest.approx({"o1": 1, "o2": 0.7, "o3": 0.3, "o4": 0.58})


def test_amounts_at_operators_flow_down_only():
    assert propagate({"o2": 10}, DIAMOND) == pytest.approx({"o1": 0, "o2": 10, "o3": 0, "o4": 4})


def counted(sources, **operators):
    return RunCounters(
        0.0,
        sources,
        {name: OperatorCounters({0: ReplicaCounters(*one)}, (0,), 1, 0) for name, one in operators.items()},
    )


def test_shares_counted_over_a_run():
    counters = counted({"in": 100}, a=({"in": 100}, 80), b=({"a": 40}, 40))
    assert counted_edges(counters, {}) == {"a": {"in": 1.0}, "b": {"a": 0.5}}


def test_declared_shares_until_something_was_processed():
    declared = {"a": Declared(("in",)), "b": Declared(("a",), shares={"a": 5.0})}
    counters = counted({"in": 100}, a=({"in": 100}, 0), b=({}, 0))
    assert counted_edges(counters, declared) == declared_edges(declared)


def test_output_of_a_split_counts_each_source_event_once():
    edges = {"split": {"in": 1.0}, "news": {"split": 0.4}, "opinions": {"split": 0.6}}
    assert source_output({"in": 100}, {"news": 36, "opinions": 54}, edges) == pytest.approx(90)


def test_output_of_words_counts_sentences():
    edges = {"split": {"in": 1.0}, "count": {"split": 5.0}}
    assert source_output({"in": 100}, {"split": 100, "count": 250}, edges) == pytest.approx(50)


def test_output_with_two_sources():
    edges = {"a": {"x": 1.0}, "b": {"y": 1.0}, "end": {"a": 1.0, "b": 2.0}}
    assert source_output({"x": 60, "y": 40}, {"end": 140}, edges) == pytest.approx(100)


def test_output_before_anything_entered_or_when_all_is_filtered():
    edges = {"a": {"in": 1.0}, "b": {"a": 0.0}}
    assert source_output({"in": 0}, {}, edges) == 0
    assert source_output({"in": 10}, {"a": 10}, edges) == 0


def test_dead_letters_of_a_source_are_counted_and_what_it_sends_is_not():
    declared = {"parse": Declared(("in",), shares={"in": 1.0}), "rejects": Declared(("in",), shares={"in": 0.0})}
    counters = counted({"in": 90}, parse=({"in": 90}, 90), rejects=({"in": 9}, 9))
    assert counted_edges(counters, declared) == {"parse": {"in": 1.0}, "rejects": {"in": 0.1}}


@pytest.mark.parametrize("rejected", [0, 10])
def test_dead_letters_are_no_output_and_who_sends_them_may_be_a_sink(rejected):
    """The only sink would have been who reads the dead letters of the store: nothing left as long as there are none."""
    declared = {"store": Declared(("in",)), "rejects": Declared(("store",), shares={"store": 0.0})}
    counters = counted({"in": 100}, store=({"in": 100}, 100 - rejected), rejects=({"store": rejected}, rejected))
    done = {"store": 100.0 - rejected, "rejects": float(rejected)}
    output = source_output(counters.sources, done, counted_edges(counters, declared), declared)
    assert output == pytest.approx(100 - rejected)
