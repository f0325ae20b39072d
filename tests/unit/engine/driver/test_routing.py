"""The routing in force: which replicas, who may choose them, and that every change is a new version at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.driver.routing import RoutingTable, chosen
from penstock.engine.plan.layout import Layout, lay_out
from penstock.engine.protocol.messages import Used, Utilisations
from penstock.errors import InputError, TopologyError
from penstock.metrics.utilisation import Utilisation
from penstock.topology import Topology

from ..made import Published


def declared() -> Topology:
    topology = Topology("app", pool=4)
    clean = topology.operator("clean", len, inputs=topology.source("tweets"), grouping="load_balancing")
    topology.operator("store", len, inputs=clean)
    return topology


@pytest.fixture
def table() -> RoutingTable:
    return RoutingTable(declared(), {"clean": 2}, Published())


@pytest.fixture
def published(table: RoutingTable) -> Published:
    assert isinstance(table._publisher, Published)
    return table._publisher


def test_every_operator_starts_with_what_was_asked_for_or_with_one() -> None:
    assert RoutingTable(declared(), {"clean": 2}, Published()).active == {"clean": (0, 1), "store": (0,)}
    assert RoutingTable(declared(), {"store": (3, 1)}, Published()).active == {"clean": (0,), "store": (3, 1)}


def test_a_number_keeps_those_that_are_active(table: RoutingTable) -> None:
    table.activate("clean", [3, 1])
    assert table.activate("clean", 3) == (3, 1, 0)
    assert table.activate("clean", 1) == (3,)
    assert table.activate("clean", 4) == (3, 0, 1, 2)
    assert table.active == {"clean": (3, 0, 1, 2), "store": (0,)}


@given(st.lists(st.integers(1, 8), max_size=12))
def test_any_row_of_numbers_gives_that_many_different_replicas_and_moves_no_more_than_needed(row: list[int]) -> None:
    topology = Topology("app", pool=8)
    topology.operator("clean", len, inputs=topology.source("tweets"))
    active: tuple[int, ...] = (0,)
    for count in row:
        before, active = active, chosen(topology["clean"], range(8), count, active)
        assert len(set(active)) == len(active) == count
        assert set(active) <= set(range(8))
        assert len(set(before) & set(active)) == min(len(before), count)


@pytest.mark.parametrize("replicas", [0, 5, -1, True])
def test_a_number_outside_the_pool(table: RoutingTable, replicas: int) -> None:
    operator = table._topology["clean"]
    with pytest.raises(InputError) as caught:
        table.activate("clean", replicas)
    assert str(caught.value) == f"{operator}: replicas must be from 1 to the pool of 4; got {replicas!r}"


@pytest.mark.parametrize("replicas", [[4], [-1], [], [1, 1]])
def test_replicas_outside_the_pool_none_or_twice(table: RoutingTable, replicas: list[int]) -> None:
    operator = table._topology["clean"]
    with pytest.raises(InputError) as caught:
        table.activate("clean", replicas)
    assert str(caught.value) == f"{operator}: replicas must be among 0..3, each once; got {replicas}"


def test_an_unknown_operator(table: RoutingTable) -> None:
    message = "topology 'app': no operator 'clena'; known: clean, store"
    with pytest.raises(TopologyError, match=message):
        table.activate("clena", 1)
    with pytest.raises(TopologyError, match=message):
        RoutingTable(declared(), {"clena": 1}, Published())


def test_what_is_refused_changes_and_publishes_nothing(table: RoutingTable, published: Published) -> None:
    before = table.current
    for name, replicas in (("clean", 9), ("nobody", 1)):
        with pytest.raises((InputError, TopologyError)):
            table.activate(name, replicas)
    assert table.current is before
    assert published == []


def test_every_change_is_a_new_version_published_at_once(table: RoutingTable, published: Published) -> None:
    for replicas in (3, 1, 2):
        table.activate("store", replicas)
    assert [one.version for one in published] == [2, 3, 4]
    assert table.current is published[-1]
    assert published[-1].operators["store"].active == (0, 1)


def test_utilisation_is_published_for_load_balancing_only(table: RoutingTable, published: Published) -> None:
    used = Utilisation({0: 0.5, 1: 0.25}, step=0.01)
    table.use({"clean": used, "store": used})
    assert published == [Utilisations(1, {"clean": Used({0: 0.5, 1: 0.25}, 0.01, 1)})]
    assert table.used is published[0]


def test_every_publication_is_a_new_interval_even_of_the_same_numbers(
    table: RoutingTable, published: Published
) -> None:
    for _ in range(3):
        table.use({"clean": Utilisation({0: 0.5}, step=0.01)})
    assert [one.operators["clean"].interval for one in published] == [1, 2, 3]


def test_where_nobody_looks_at_utilisation_nothing_is_published(table: RoutingTable, published: Published) -> None:
    table.use({"store": Utilisation({0: 0.5}, step=0.01)})
    table.use({})
    assert published == []


def test_new_replicas_keep_the_utilisation_of_the_others(table: RoutingTable) -> None:
    table.use({"clean": Utilisation({0: 0.5, 1: 0.25}, step=0.01)})
    table.activate("clean", 3)
    assert table.used.operators["clean"].by_replica == {0: 0.5, 1: 0.25}


# ── other pools than those declared ─────────────────────────────────────────────────────────────────────────────────

SMALL = {"clean": [0, 1, 3], "store": [0]}


def after(table: RoutingTable, pools: dict[str, list[int]], at_work: dict[str, list[int]]) -> Layout:
    """Another layout was to take over, and that one is at work now."""
    layout = lay_out(table._topology, at_work)
    with table.laying_out(pools, lambda: layout):
        pass
    return layout


def test_replicas_are_chosen_from_the_pools_at_work(table: RoutingTable) -> None:
    """The declared pool used to count: senders of an operator with state raised KeyError at every restart then."""
    after(table, SMALL, SMALL)
    assert table.activate("clean", 3) == (0, 1, 3)
    for wrong, told in ((4, "from 1 to the pool of 3; got 4"), ([2], r"among 0, 1, 3, each once; got \[2\]")):
        with pytest.raises(InputError, match=told):
            table.activate("clean", wrong)
    assert table.active == {"clean": (0, 1, 3), "store": (0,)}
    after(table, {"clean": [0, 1, 2, 3], "store": [0]}, {"clean": [0, 1, 2, 3], "store": [0]})
    assert table.activate("clean", 4) == (0, 1, 3, 2)


def test_while_another_layout_takes_over_only_what_both_have_can_be_chosen(table: RoutingTable) -> None:
    """A replica that was activated meanwhile was unknown to one of the two."""
    before, following = lay_out(table._topology, {"clean": [0, 1, 2, 3], "store": [0]}), lay_out(table._topology, SMALL)
    at_work = [before]
    with table.laying_out(SMALL, lambda: at_work[0]):
        with pytest.raises(InputError, match="among 0, 1, 3"):
            table.activate("clean", [2])
        assert table.activate("clean", [3]) == (3,)
        at_work[0] = following
    assert table.pools == {"clean": (0, 1, 3), "store": (0,)}


def test_if_the_next_layout_does_not_take_over_all_stays_as_it_was(table: RoutingTable) -> None:
    before = lay_out(table._topology, {"clean": [0, 1, 2, 3], "store": [0, 1]})
    with pytest.raises(ZeroDivisionError), table.laying_out(SMALL, lambda: before):
        raise ZeroDivisionError
    assert table.activate("clean", [2]) == (2,)


def test_a_layout_without_an_active_replica_is_refused(table: RoutingTable) -> None:
    table.activate("clean", [2])
    with pytest.raises(InputError, match=r"missing: \[2\]"):
        after(table, SMALL, SMALL)
    assert table.pools["clean"] == (0, 1, 2, 3)


# ── whole pools for a while ─────────────────────────────────────────────────────────────────────────────────────────


def at_work(table: RoutingTable) -> dict[str, tuple[int, ...]]:
    return {name: one.active for name, one in table.current.operators.items()}


def keyed() -> RoutingTable:
    topology = Topology("app", pool=4)
    topology.operator("count", counted, inputs=topology.source("words"), key="word", key_groups=8)
    return RoutingTable(topology, {"count": 2}, Published())


def counted(event: dict[str, str], state: dict[str, int]) -> None: ...


def owners(table: RoutingTable) -> set[int]:
    return table.coordinate(lambda all_: set(all_["count"].table.owners))


def test_whole_pools_are_at_work_until_those_that_were_asked_for_are_again(table: RoutingTable) -> None:
    table.activate("clean", [3, 1])
    table.spread()
    assert at_work(table) == {"clean": (3, 1, 0, 2), "store": (0,)}
    assert table.active == {"clean": (3, 1), "store": (0,)}
    table.gather()
    assert at_work(table) == table.active == {"clean": (3, 1), "store": (0,)}


def test_where_more_replicas_would_change_the_order_of_events_there_are_none() -> None:
    """Nobody has asked for more than one, or each key has its replica."""
    topology = Topology("app", pool=4)
    words = topology.source("words")
    topology.operator("alone", len, inputs=words)
    topology.operator("several", len, inputs=words)
    topology.operator("by_key", len, inputs=words, key="word", grouping="fields")
    topology.operator("count", counted, inputs=words, key="word", key_groups=8)
    table = RoutingTable(topology, {"several": 2, "by_key": 2}, Published())
    table.spread()
    assert {name: len(active) for name, active in at_work(table).items()} == {
        "alone": 1,
        "several": 4,
        "by_key": 2,
        "count": 4,
    }


def test_what_is_asked_for_meanwhile_counts_afterwards(table: RoutingTable) -> None:
    table.spread()
    assert table.activate("clean", 3) == (0, 1, 2)
    table.spread()  # it has died again
    assert table.active["clean"] == (0, 1, 2)
    assert len(at_work(table)["clean"]) == 4
    with pytest.raises(InputError, match="from 1 to the pool of 4"):
        table.activate("clean", 5)
    table.gather()
    assert at_work(table) == {"clean": (0, 1, 2), "store": (0,)}
    table.activate("clean", 1)
    assert at_work(table)["clean"] == (0,)


def test_to_gather_what_was_not_spread_changes_nothing(table: RoutingTable, published: Published) -> None:
    table.gather()
    assert published == []


def test_only_the_pools_at_work_are_spread_over(table: RoutingTable) -> None:
    after(table, SMALL, SMALL)
    table.spread()
    assert at_work(table) == {"clean": (0, 1, 3), "store": (0,)}


def test_another_layout_begins_with_those_that_were_asked_for(table: RoutingTable) -> None:
    """It may lack the others, to which senders would go on to send."""
    table.spread()
    after(table, SMALL, SMALL)
    assert at_work(table) == table.active == {"clean": (0, 1), "store": (0,)}


def test_key_groups_are_spread_as_the_attempt_begins_and_move_back_later() -> None:
    table = keyed()
    table.spread()
    table.coordinate(lambda all_: all_["count"].begin())
    assert owners(table) == {0, 1, 2, 3}
    assert not table.coordinate(lambda all_: all_["count"].moving)
    table.gather()
    assert owners(table) == {0, 1}
    assert table.coordinate(lambda all_: all_["count"].moving)


def test_a_way_back_that_does_not_get_on_is_gone_as_the_next_attempt_begins() -> None:
    """Else the whole pool would stay active for good, though nobody asked for it."""
    table = keyed()
    table.spread()
    table.coordinate(lambda all_: all_["count"].begin())
    table.gather()
    table.roll_back()
    table.spread()  # not now: it would have to move back again
    table.coordinate(lambda all_: all_["count"].begin())
    assert owners(table) == set(at_work(table)["count"]) == {0, 1}
    table.spread()
    assert at_work(table)["count"] == (0, 1, 2, 3)


def test_another_change_that_does_not_get_on_is_taken_back_as_ever() -> None:
    table = keyed()
    table.activate("count", 3)
    table.roll_back()
    assert owners(table) == set(table.active["count"]) == {0, 1}
