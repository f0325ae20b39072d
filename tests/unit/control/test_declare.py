from __future__ import annotations

from penstock.control.declare import declared
from penstock.topology.topology import Topology


def test_a_split_that_is_joined_again():
    topology = Topology("tweets")
    source = topology.source("in")
    split = topology.operator(
        "split", print, inputs=source, outputs=("news", "rest"), selectivity={"news": 0.3, "rest": 0.7}
    )
    topology.operator("news", print, inputs=split["news"], execution_time_ms=20)
    topology.operator("all", print, inputs=[split["news"], split["rest"], "news"])
    result = declared(topology)
    assert list(result) == ["split", "news", "all"]
    assert result["news"].execution_time_s == 0.02
    assert result["split"].execution_time_s is None
    assert result["all"].predecessors == ("split", "news")
    assert result["all"].shares == {"split": 1.0, "news": 1.0}


def test_no_dead_letters_are_expected():
    topology = Topology("tweets")
    parse = topology.operator("parse", print, inputs=topology.source("in", on_error="dead_letter"), on_error="drop")
    topology.operator("store", print, inputs=parse, on_error="retry:2,dead_letter", selectivity=3.0)
    topology.dead_letters(print)
    assert declared(topology)["parse"].shares == {"in": 1.0}
    assert declared(topology)["dead_letters"].shares == {"in": 0.0, "store": 0.0}


def test_operators_whose_events_go_by_key_say_so():
    topology = Topology("words")
    words = topology.operator("split", print, inputs=topology.source("in"))
    topology.operator("count", print, inputs=words, key="word")
    assert {name: one.keyed for name, one in declared(topology).items()} == {"split": False, "count": True}
