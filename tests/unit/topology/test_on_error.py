"""Events that fail: what can be declared of them, and who reads the dead letters."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import TopologyError
from penstock.topology import Stream, Topology
from penstock.topology.on_error import OnError, parse_on_error


def same(event: Any) -> Any:
    return event


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("fail", OnError()),
        ("drop", OnError(0, "drop")),
        ("dead_letter", OnError(0, "dead_letter")),
        ("retry:1", OnError(1, "fail")),
        ("retry:20,fail", OnError(20, "fail")),
        ("retry:3,drop", OnError(3, "drop")),
        ("retry:99,dead_letter", OnError(99, "dead_letter")),
    ],
)
def test_rules(text: str, rule: OnError) -> None:
    assert parse_on_error(text) == rule


def letters(on_error: str = "dead_letter", source: str = "fail") -> Topology:
    topology = Topology("app")
    events = topology.source("events", on_error=source)
    parsed = topology.operator("parse", same, inputs=events, on_error=on_error, selectivity=2.0)
    topology.operator("store", same, inputs=parsed)
    return topology


def test_dead_letters_are_a_stream_of_which_nothing_is_expected() -> None:
    parse = letters()["parse"]
    assert parse.outputs == ("out", "dead_letters")
    assert parse.selectivity == {"out": 2.0, "dead_letters": 0.0}


def test_a_rule_that_is_changed_changes_the_streams() -> None:
    topology = letters("drop")
    topology.replaced("parse", on_error="retry:2,dead_letter")
    assert topology["parse"].outputs == ("out", "dead_letters")
    topology.replaced("parse", on_error="retry:2")
    assert topology["parse"].outputs == ("out",)
    assert topology["parse"].selectivity == {"out": 2.0}


def test_dead_letters_that_nobody_reads_are_an_error_that_says_how_to_read_them() -> None:
    topology = letters()
    with pytest.raises(TopologyError) as caught:
        topology.check()
    assert str(caught.value) == (
        f"{topology['parse']}: on_error is 'dead_letter', but nobody reads its dead letters; "
        "add topology.dead_letters(sink), or an operator with inputs='parse.dead_letters'"
    )


def test_so_are_those_of_a_source() -> None:
    topology = letters("fail", "dead_letter")
    with pytest.raises(TopologyError, match=r"source 'events' .* add .* inputs='events.dead_letters'"):
        topology.check()


def test_who_reads_only_the_dead_letters_of_a_source_does_not_read_the_source() -> None:
    topology = Topology("app")
    topology.operator("rejects", same, inputs=topology.source("events", on_error="dead_letter")["dead_letters"])
    with pytest.raises(TopologyError, match=r"source 'events' .* is read by no operator"):
        topology.check()


def test_an_operator_reads_the_dead_letters_of_all() -> None:
    topology = letters("retry:2,dead_letter", "dead_letter")
    rejects = topology.dead_letters(same)
    assert rejects.inputs == (Stream("events", "dead_letters"), Stream("parse", "dead_letters"))
    assert (rejects.name, rejects.pool, rejects.on_error) == ("dead_letters", 1, "fail")
    topology.check()
    assert topology.levels() == [("parse",), ("store", "dead_letters")]


def test_it_may_have_another_name_and_pool() -> None:
    topology = letters()
    rejects = topology.dead_letters(same, name="rejects", pool=3)
    assert (rejects.name, rejects.pool) == ("rejects", 3)
    topology.check()


def test_there_must_be_dead_letters_to_be_read() -> None:
    with pytest.raises(TopologyError, match="topology 'app': there are no dead letters: no on_error is 'dead_letter'"):
        letters("drop").dead_letters(same)


def test_dead_letters_of_who_has_none_cannot_be_read() -> None:
    topology = letters("drop")
    topology.operator("rejects", same, inputs="parse.dead_letters")
    with pytest.raises(TopologyError, match="'parse' has no stream 'dead_letters'; its streams: out"):
        topology.check()


def test_a_sink_of_which_only_dead_letters_are_read_is_a_sink() -> None:
    topology = letters()
    topology.replaced("store", on_error="dead_letter")
    topology.dead_letters(same)
    assert topology.sinks == ("store", "dead_letters")


def test_a_source_with_an_unknown_rule_is_refused() -> None:
    with pytest.raises(TopologyError, match=r"source 'events' \(test_on_error.py:\d+\): on_error must be fail, drop"):
        Topology("app").source("events", on_error="skip")
