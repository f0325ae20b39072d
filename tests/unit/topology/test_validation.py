"""Every rule of a topology: the message names operator, rule, value and the line in this file."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from penstock.errors import TopologyError
from penstock.topology import Topology


def same(event: object) -> object:
    return event


def unreadable(event: Unknown) -> None:  # type: ignore[name-defined]  # noqa: F821 - a type that does not exist
    """An operator whose annotation cannot be resolved."""


class Shout:
    def process(self, event: str) -> str:
        return event.upper()


GROUPINGS = "shuffle, fields, load_balancing, online_shuffle, pull"
BROKEN_DECLARATIONS: list[tuple[dict[str, Any], str]] = [
    ({"pool": 0}, "pool must be at least 1; got 0"),
    ({"pool": -3}, "pool must be at least 1; got -3"),
    ({"pool": 1.5}, "pool must be at least 1; got 1.5"),
    ({"pool": True}, "pool must be at least 1; got True"),
    ({"grouping": "random"}, f"grouping must be one of {GROUPINGS}; got 'random'"),
    ({"grouping": "fields"}, "grouping 'fields' needs a key; got none"),
    ({"grouping": "random:window=8"}, f"grouping must be one of {GROUPINGS}; got 'random'"),
    ({"grouping": "shuffle:window=8"}, "grouping 'shuffle': no such option 'window'; known: none"),
    (
        {"grouping": "online_shuffle:windw=8"},
        "grouping 'online_shuffle': no such option 'windw'; known: epsilon, delta, window, mu, patience, seed",
    ),
    (
        {"grouping": "online_shuffle:window=0"},
        "grouping 'online_shuffle': window must be whole and at least 1; got 0",
    ),
    *(
        (
            {"on_error": text},
            "on_error must be fail, drop, dead_letter or retry:n (from 1 to 99), as in 'retry:3' or "
            f"'retry:3,dead_letter'; got {text!r}",
        )
        for text in (
            "ignore",
            "",
            "retry",
            "retry:0",
            "retry:3,",
            "retry:3drop",
            "retry:3,retry:3",
            "drop,retry:3",
            None,
        )
    ),
    (
        {"outputs": ("out", "dead_letters")},
        "the stream 'dead_letters' is for events that fail: it comes with on_error='dead_letter'",
    ),
    (
        {"grouping": "pull", "key": "user"},
        "grouping 'pull' gives events to whichever replica has room, and a key wants the same one for all its events: "
        "leave out the key, or use 'fields'",
    ),
    ({"inputs": []}, "an operator needs at least one input; got none"),
    ({"inputs": ["events", "events"]}, "reads 'events.out' twice"),
    ({"outputs": ()}, "output streams must be named, each once; got ()"),
    ({"outputs": ("a", "a")}, "output streams must be named, each once; got ('a', 'a')"),
    ({"execution_time_ms": 0}, "execution_time_ms must be above 0; got 0"),
    ({"execution_time_ms": -1.5}, "execution_time_ms must be above 0; got -1.5"),
    ({"execution_time_ms": math.nan}, "execution_time_ms must be above 0; got nan"),
    ({"execution_time_ms": math.inf}, "execution_time_ms must be above 0; got inf"),
    ({"selectivity": -0.1}, "selectivity must not be negative; got -0.1 for 'out'"),
    ({"selectivity": math.nan}, "selectivity must not be negative; got nan for 'out'"),
    ({"selectivity": {"news": 1.0}}, "selectivity names the stream 'news'; its streams are out"),
    ({"run": 5}, "needs a function or an object with process(event); got 5"),
    ({"run": Shout}, "give an instance of Shout, not the class itself"),
    ({"run": unreadable}, "the type of its events cannot be read: name 'Unknown' is not defined"),
]


def place_of(caught: pytest.ExceptionInfo[TopologyError]) -> str:
    """File and line of the test's statement that raised."""
    entry = caught.traceback[0]
    return f"{entry.path.name}:{entry.lineno + 1}"


@pytest.mark.parametrize(("broken", "rule"), BROKEN_DECLARATIONS, ids=[rule for _, rule in BROKEN_DECLARATIONS])
def test_a_declaration_that_breaks_a_rule(broken: dict[str, Any], rule: str) -> None:
    topology = Topology("app")
    whole = {"run": same, "inputs": topology.source("events"), **broken}
    with pytest.raises(TopologyError) as caught:
        topology.operator("parse", **whole)
    assert str(caught.value) == f"operator 'parse' ({place_of(caught)}): {rule}"
    assert "parse" not in topology.operators


@pytest.mark.parametrize("name", ["", "2nd", "a b", "a.b", "ä", "-a", None, 7])
def test_a_name_is_a_word(name: Any) -> None:
    topology = Topology("app")
    rule = f"a name is a letter or _ followed by letters, digits, _ or -; got {name!r}"
    with pytest.raises(TopologyError) as caught:
        topology.operator(name, same, inputs="events")
    assert str(caught.value) == f"operator {name!r} ({place_of(caught)}): {rule}"
    with pytest.raises(TopologyError) as caught:
        topology.source(name)
    assert str(caught.value) == f"source {name!r} ({place_of(caught)}): {rule}"


@pytest.mark.parametrize("name", ["a", "_a", "city-2", "CamelCase"])
def test_words_are_accepted(name: str) -> None:
    topology = Topology("app")
    topology.operator(name, same, inputs=topology.source("events"))
    topology.check()


def test_a_name_is_taken_once_by_operators_and_sources_together() -> None:
    topology = Topology("app")
    source = topology.source("events")
    parse = topology.operator("parse", same, inputs=source)
    with pytest.raises(TopologyError) as caught:
        topology.operator("parse", same, inputs=source)
    assert str(caught.value) == f"operator 'parse' ({place_of(caught)}): the name 'parse' is already taken by {parse}"
    with pytest.raises(TopologyError) as caught:
        topology.source("parse")
    assert str(caught.value) == f"source 'parse' ({place_of(caught)}): the name 'parse' is already taken by {parse}"
    with pytest.raises(TopologyError, match=f"already taken by source 'events' \\({source.place}\\)"):
        topology.operator("events", same, inputs=source)


def no_operators(topology: Topology) -> str:
    topology.source("events")
    return "topology 'app': needs at least one operator; got none"


def no_source(topology: Topology) -> str:
    topology.operator("parse", same, inputs="events")
    return "topology 'app': needs at least one source; got none"


def unknown_sender(topology: Topology) -> str:
    topology.source("events")
    parse = topology.operator("parse", same, inputs="evnets")
    return f"{parse}: reads 'evnets', which does not exist; known: events, parse"


def unknown_stream_of_an_operator(topology: Topology) -> str:
    split = topology.operator("split", same, inputs=topology.source("events"), outputs=("a", "b"))
    end = topology.operator("end", same, inputs=[split["a"], split["b"], split["c"]])
    return f"{end}: reads 'split.c', but 'split' has no stream 'c'; its streams: a, b"


def unknown_stream_of_a_source(topology: Topology) -> str:
    topology.source("events")
    end = topology.operator("end", same, inputs="events.late")
    return f"{end}: reads 'events.late', but 'events' has no stream 'late'; its streams: out"


def cycle(topology: Topology) -> str:
    topology.source("events")
    topology.operator("a", same, inputs=["events", "c"])
    topology.operator("b", same, inputs="a")
    topology.operator("c", same, inputs="b")
    return "a topology has no cycles; got "


def operator_that_reads_itself(topology: Topology) -> str:
    topology.source("events")
    echo = topology.operator("echo", same, inputs=["events", "echo"])
    return f"{echo}: a topology has no cycles; got echo → echo"


def unreachable(topology: Topology) -> str:
    topology.operator("parse", same, inputs=topology.source("events"))
    island = topology.operator("island", same, inputs="other")
    topology.operator("other", same, inputs="island")
    return f"{island}: cannot be reached from any source"


def unread_source(topology: Topology) -> str:
    topology.operator("parse", same, inputs=topology.source("events"))
    idle = topology.source("idle")
    return f"{idle}: is read by no operator"


def unread_stream(topology: Topology) -> str:
    split = topology.operator("split", same, inputs=topology.source("events"), outputs=("a", "b"))
    topology.operator("end", same, inputs=split["a"])
    return f"{split}: nobody reads its stream 'b'"


@pytest.mark.parametrize(
    "declare",
    [
        no_operators,
        no_source,
        unknown_sender,
        unknown_stream_of_an_operator,
        unknown_stream_of_a_source,
        operator_that_reads_itself,
        unreachable,
        unread_source,
        unread_stream,
    ],
)
def test_a_graph_that_breaks_a_rule(declare: Callable[[Topology], str]) -> None:
    topology = Topology("app")
    expected = declare(topology)
    with pytest.raises(TopologyError) as caught:
        topology.check()
    assert str(caught.value) == expected


def test_a_cycle_is_told_in_the_direction_of_the_events() -> None:
    topology = Topology("app")
    rule = cycle(topology)
    with pytest.raises(TopologyError) as caught:
        topology.check()
    thing, _, way = str(caught.value).partition(rule)
    first = way.split(" → ")[0]
    assert way in ("a → b → c → a", "b → c → a → b", "c → a → b → c")
    assert thing == f"{topology[first]}: "


def test_an_unread_default_stream_makes_a_sink() -> None:
    topology = Topology("app")
    topology.operator("split", same, inputs=topology.source("events"), outputs=("out", "news"))
    topology.operator("end", same, inputs="split.news")
    topology.check()
