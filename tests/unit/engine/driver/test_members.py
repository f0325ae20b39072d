"""Whom a checkpoint is of: who may be sent to, until all that send are known to have heard that it may not."""

from __future__ import annotations

import pytest

from penstock.engine.driver.members import Members
from penstock.engine.plan.layout import Layout, lay_out
from penstock.engine.protocol.messages import OperatorRouting, Routing
from penstock.state.handover import Table
from penstock.topology import ReplicaId, Topology

SLOT: ReplicaId = ("s", 0)


def laid_out(pool: int = 4, begin: int = 0) -> Layout:
    topology = Topology("t", pool=8)
    topology.operator("o", print, inputs=topology.source("s"))
    return lay_out(topology, {"o": range(begin, pool)})


LAYOUT = laid_out()


def of(*replicas: int) -> set[ReplicaId]:
    return {SLOT, *(("o", replica) for replica in replicas)}


@pytest.fixture
def members() -> Members:
    members = Members()
    members.follow(active(1, 0, 1))
    return members


def active(version: int, *replicas: int, table: Table | None = None) -> Routing:
    return Routing(version, {"o": OperatorRouting(replicas, table)})


def test_slots_and_those_that_may_be_sent_to(members: Members) -> None:
    assert members.begin(LAYOUT, 0) == of(0, 1)
    assert not members.joined


def test_one_that_was_active_stays_until_all_that_send_have_heard_that_it_is_not(members: Members) -> None:
    members.follow(active(2, 0))
    assert members.begin(LAYOUT, 0) == members.begin(LAYOUT, 1) == of(0, 1)
    assert members.begin(LAYOUT, 2) == of(0)


def test_one_that_becomes_active_joins_and_is_of_the_next(members: Members) -> None:
    members.begin(LAYOUT, 1)
    members.follow(active(2, 1))
    assert not members.joined
    members.follow(active(3, 1, 3))
    members.follow(active(4, 1))  # somebody may have heard of it all the same
    assert members.joined
    assert members.begin(LAYOUT, 1) == of(0, 1, 3)
    assert not members.joined


def test_one_that_was_left_out_joins_again(members: Members) -> None:
    members.follow(active(2, 0))
    assert members.begin(LAYOUT, 2) == of(0)
    members.follow(active(3, 0, 1))
    assert members.joined


def test_where_there_is_state_owners_of_key_groups_are_sent_to(members: Members) -> None:
    """One that is to be active owns nothing before key groups have moved, one that is no longer still does."""
    members.follow(active(2, 0, 2, table=Table(1, (0, 1, 1))))
    assert members.begin(LAYOUT, 2) == of(0, 1)


def test_what_another_layout_has_joins_nothing(members: Members) -> None:
    assert members.begin(LAYOUT, 1) == of(0, 1)
    members.follow(active(2, 0, 6))
    assert not members.joined


def test_a_layout_without_an_active_replica_has_its_first(members: Members) -> None:
    """Events that are for none of its replicas go there."""
    assert members.begin(laid_out(6, begin=3), 1) == of(3)


def test_one_that_must_not_fail_is_of_all(members: Members) -> None:
    assert members.begin_whole(LAYOUT) == of(0, 1, 2, 3)
    members.follow(active(2, 3))
    assert not members.joined
