"""A topology laid out as stages: all replicas in one, or by level, with ways past a stage for what skips it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.plan.layout import Layout, Partition, full_layout, lay_out, lay_out_by_level
from penstock.topology import Topology


def same(event: object) -> object:
    return event


def long_and_short(length: int, pool: int = 2) -> Topology:
    """first → step1 → … → stepN → end, and first → end directly."""
    topology = Topology("long", pool=pool)
    first = before = topology.operator("first", same, inputs=topology.source("events"))
    for number in range(length):
        before = topology.operator(f"step{number + 1}", same, inputs=before)
    topology.operator("end", same, inputs=[before, first] if length else before)
    return topology


def by_level(topology: Topology, slots: int = 1) -> Layout:
    return lay_out_by_level(topology, {name: range(one.pool) for name, one in topology.operators.items()}, slots)


def two_sources() -> Topology:
    topology = Topology("two", pool=2)
    topology.operator("left", same, inputs=topology.source("one"))
    topology.operator("right", same, inputs=topology.source("other"), pool=1)
    topology.operator("end", same, inputs=["left", "right"], pool=1)
    return topology


def test_all_replicas_are_one_stage_behind_that_of_the_sources() -> None:
    layout = full_layout(two_sources(), 2)
    assert layout.stages == (
        (Partition("one", 0), Partition("one", 1), Partition("other", 0), Partition("other", 1)),
        (Partition("left", 0), Partition("left", 1), Partition("right", 0), Partition("end", 0)),
    )
    assert layout.tasks == 8
    assert layout.next_partition(0, 2, layout.partition("end", 0)) == 3  # whatever the levels


def test_by_level_every_level_is_a_stage_and_stage_0_are_the_sources() -> None:
    assert by_level(two_sources(), slots=2).stages == (
        (Partition("one", 0), Partition("one", 1), Partition("other", 0), Partition("other", 1)),
        (Partition("left", 0), Partition("left", 1), Partition("right", 0)),
        (Partition("end", 0),),
    )


def test_a_stage_that_is_skipped_has_a_way_past_it_as_its_last_slot() -> None:
    stages = by_level(long_and_short(2)).stages
    assert [Partition(None) in stage for stage in stages] == [False, False, True, True, False]
    assert stages[2] == (Partition("step1", 0), Partition("step1", 1), Partition(None))


def test_tasks_are_all_slots_of_all_stages() -> None:
    assert by_level(long_and_short(2)).tasks == 1 + 2 + 3 + 3 + 2


def test_only_the_given_replicas_have_a_slot() -> None:
    layout = lay_out(long_and_short(0, pool=8), {"first": (5, 2), "end": (7,)})
    assert layout.stages[1] == (Partition("first", 5), Partition("first", 2), Partition("end", 7))
    assert (layout.partition("first", 2), layout.partition("end", 7)) == (1, 2)


def test_a_replica_without_a_slot_has_no_partition() -> None:
    with pytest.raises(KeyError):
        lay_out(long_and_short(0), {"first": (0,), "end": (0,)}).partition("first", 1)


@given(length=st.integers(0, 5), pool=st.integers(1, 4), replica=st.integers(0, 3))
def test_a_bundle_reaches_its_target_over_any_number_of_stages(length: int, pool: int, replica: int) -> None:
    topology = long_and_short(length, pool)
    layout, goal = by_level(topology), topology.level("end")
    target = layout.partition("end", replica % pool)
    met = []
    for level in range(topology.level("first"), goal):
        partition = layout.next_partition(level, goal, target)
        met.append(layout.stages[level + 1][partition])
    assert met == [Partition(None)] * length + [Partition("end", replica % pool)]
