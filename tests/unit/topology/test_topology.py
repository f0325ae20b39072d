"""What a topology knows of itself: streams, levels, receivers, sinks, replacements."""

from __future__ import annotations

import cloudpickle
import pytest

from penstock.errors import TopologyError
from penstock.topology import Operator, Stream, To, Topology


def same(event: object) -> object:
    return event


@pytest.fixture
def diamond() -> Topology:
    """dispatch splits into left and right; right is longer; all meet at the end, which also reads dispatch itself."""
    topology = Topology("diamond", pool=3)
    topology.source("events")
    dispatch = topology.operator("dispatch", same, inputs="events", outputs=("left", "right", "rest"))
    left = topology.operator("left", same, inputs=dispatch["left"])
    right = topology.operator("right", same, inputs="dispatch.right")
    longer = topology.operator("longer", same, inputs=right)
    topology.operator("end", same, inputs=[left, longer, Stream("dispatch", "rest")])
    return topology


def test_levels_are_one_above_the_deepest_predecessor(diamond: Topology) -> None:
    assert diamond.levels() == [("dispatch",), ("left", "right"), ("longer",), ("end",)]
    assert [diamond.level(name) for name in ("events", "dispatch", "left", "longer", "end")] == [0, 1, 2, 3, 4]


def test_order_is_topological_whatever_the_order_of_declaration() -> None:
    topology = Topology("backwards")
    topology.operator("third", same, inputs="second")
    topology.operator("second", same, inputs="first")
    topology.operator("first", same, inputs="events")
    topology.source("events")
    topology.check()
    assert topology.in_order() == ["first", "second", "third"]


def test_predecessors_and_successors(diamond: Topology) -> None:
    assert diamond.predecessors("end") == ("left", "longer", "dispatch")
    assert diamond.predecessors("dispatch") == ("events",)
    assert diamond.successors("events") == ("dispatch",)
    assert diamond.successors("dispatch") == ("left", "right", "end")


def test_a_sender_of_two_streams_is_one_predecessor() -> None:
    topology = Topology("twice")
    topology.source("events")
    topology.operator("split", same, inputs="events", outputs=("a", "b"))
    topology.operator("end", same, inputs=("split.a", "split.b"))
    assert topology.predecessors("end") == ("split",)


def test_every_reader_of_a_stream_receives_it_in_order_of_declaration(diamond: Topology) -> None:
    diamond.operator("copy", same, inputs="dispatch.left")
    assert diamond.receivers(Stream("dispatch", "left")) == ("left", "copy")
    assert diamond.receivers(Stream("dispatch", "rest")) == ("end",)
    assert diamond.receivers(Stream("dispatch")) == ()


def test_sinks_are_read_by_nobody_and_follow_new_operators(diamond: Topology) -> None:
    assert diamond.sinks == ("end",)
    diamond.operator("after", same, inputs="end")
    assert diamond.sinks == ("after",)
    assert diamond.levels()[-1] == ("after",)


def test_several_sources_are_all_level_0() -> None:
    topology = Topology("two")
    topology.operator("union", same, inputs=[topology.source("one"), topology.source("other")])
    topology.check()
    assert topology.level("other") == 0
    assert topology.predecessors("union") == ("one", "other")


def test_a_source_declared_after_the_levels_were_asked_for_has_a_level(diamond: Topology) -> None:
    """Levels are remembered; a source declared later used to be missing from them."""
    diamond.levels()
    diamond.source("late")
    assert diamond.level("late") == 0


def test_defaults_of_an_operator(diamond: Topology) -> None:
    operator = diamond["left"]
    assert (operator.pool, operator.grouping, operator.key, operator.on_error) == (3, "shuffle", None, "fail")
    assert (operator.outputs, operator.execution_time_ms, operator.selectivity) == (("out",), None, {})


def test_a_key_makes_the_grouping_fields_unless_another_is_named() -> None:
    topology = Topology("keyed")
    words = topology.source("words")
    assert topology.operator("count", same, inputs=words, key="word").grouping == "fields"
    assert topology.operator("spread", same, inputs=words, key="word", grouping="shuffle").grouping == "shuffle"


def test_one_selectivity_counts_for_every_stream() -> None:
    topology = Topology("split")
    split = topology.operator("split", same, inputs=topology.source("in"), outputs=("a", "b"), selectivity=0.5)
    assert split.selectivity == {"a": 0.5, "b": 0.5}


def test_an_operator_gives_its_streams_by_name(diamond: Topology) -> None:
    assert diamond["dispatch"]["left"] == Stream("dispatch", "left")
    assert str(diamond["dispatch"]["left"]) == "dispatch.left"


def test_an_unknown_operator_is_an_error_that_lists_the_known_ones(diamond: Topology) -> None:
    with pytest.raises(TopologyError) as caught:
        diamond["lift"]
    expected = "topology 'diamond': no operator 'lift'; known: dispatch, left, right, longer, end"
    assert str(caught.value) == expected


def test_replaced_changes_only_what_is_named(diamond: Topology) -> None:
    before = diamond["left"]
    diamond.replaced("left", pool=7)
    assert diamond["left"].pool == 7
    assert (diamond["left"].run, diamond["left"].place) == (before.run, before.place)


def test_replaced_keeps_the_rules(diamond: Topology) -> None:
    with pytest.raises(TopologyError, match="pool must be at least 1; got 0"):
        diamond.replaced("left", pool=0)
    assert diamond["left"].pool == 3


def test_replaced_inputs_change_the_levels(diamond: Topology) -> None:
    """Levels are remembered; an operator given other inputs used to stay on its old level."""
    diamond.levels()
    diamond.replaced("left", inputs=(Stream("longer"),))
    assert diamond.level("left") == 4
    assert diamond.successors("longer") == ("left", "end")


def test_a_topology_survives_shipping(diamond: Topology) -> None:
    copy = cloudpickle.loads(cloudpickle.dumps(diamond))
    assert copy.levels() == diamond.levels()
    assert isinstance(copy["left"], Operator)


def test_an_event_for_a_stream_shows_both() -> None:
    assert repr(To("news", {"a": 1})) == "To('news', {'a': 1})"


def test_a_tuned_copy_leaves_the_topology_as_it_is() -> None:
    topology = Topology("app", pool=2)
    first = topology.operator("first", len, inputs=topology.source("in"), execution_time_ms=5.0)
    topology.operator("keyed", len, inputs=first, key="word")
    tuned = topology.tuned(grouping="load_balancing", pools={"first": 7}, times_ms={"keyed": 3.0})
    assert (tuned["first"].grouping, tuned["first"].pool, tuned["keyed"].grouping) == ("load_balancing", 7, "fields")
    assert tuned["keyed"].execution_time_ms == 3.0
    assert (topology["first"].grouping, topology["first"].pool) == ("shuffle", 2)
    assert topology["keyed"].execution_time_ms is None
    tuned.operator("end", print, inputs="keyed")
    assert topology.sinks == ("keyed",)
