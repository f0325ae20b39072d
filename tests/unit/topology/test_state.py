"""Operators that keep state: how they are told from others, how state begins, and the rules they must keep."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, TypedDict

import msgspec
import pytest

from penstock.errors import TopologyError
from penstock.topology import Keyed, Topology
from penstock.topology.state_type import keeps_state, new_state, state_type


class Average(msgspec.Struct):
    count: int = 0
    total: float = 0.0


@dataclasses.dataclass
class Needy:
    limit: int


class Fields(TypedDict, total=False):
    count: int


def count(event: Any, state: dict[str, int]) -> None:
    state["count"] = state.get("count", 0) + 1


class Counter:
    def process(self, event: Any, state: Any) -> None: ...

    def new_state(self) -> list[int]:
        return [0]


class Averages:
    def process(self, event: Any, state: Average) -> None: ...


class Many(Averages):
    def process_many(self, events: list[Any]) -> None: ...


def with_default(event: Any, times: int = 2) -> None: ...


def any_number(*events: Any) -> None: ...


def fields(event: Any, state: Fields) -> None: ...


def seen(event: Any, state: set[str]) -> None: ...


def needy(event: Any, state: Needy) -> None: ...


def impossible(event: Any, state: Topology) -> None: ...


@pytest.mark.parametrize("run", [count, Counter(), Averages(), fields, seen, lambda event, state: None])
def test_two_parameters_keep_state(run: Any) -> None:
    assert keeps_state(run)


@pytest.mark.parametrize("run", [print, len, with_default, any_number, lambda event: None, lambda: None, str.upper])
def test_others_do_not(run: Any) -> None:
    assert not keeps_state(run)


@pytest.mark.parametrize(
    ("run", "kind", "first"),
    [
        (count, dict[str, int], {}),
        (Counter(), Any, [0]),
        (Averages(), Average, Average()),
        (fields, Fields, {}),
        (seen, set[str], set()),
        (lambda event, state: None, Any, {}),
    ],
)
def test_how_state_begins(run: Any, kind: Any, first: object) -> None:
    assert state_type(run) == kind
    assert new_state(run, kind)() == first


def topology_with(run: Any = count, **declared: Any) -> Topology:
    topology = Topology("words")
    topology.operator("count", run, inputs=topology.source("words"), **{"key": "word"} | declared)
    return topology


def test_what_is_declared() -> None:
    assert topology_with()["count"].state == Keyed(128, None, dict[str, int])
    assert topology_with(key_groups=16, expire_after_s=60)["count"].state == Keyed(16, 60, dict[str, int])
    assert topology_with()["count"].grouping == "fields"
    assert topology_with(lambda event: event)["count"].state is None
    topology_with().check()


@pytest.mark.parametrize(
    ("run", "declared", "rule"),
    [
        (count, {"key": None}, "process(event, state) keeps state by key, and needs a key; got none"),
        (
            count,
            {"grouping": "shuffle"},
            "with state, events go to the replica that has their key: grouping must be 'fields'; got 'shuffle'",
        ),
        (Many(), {}, "process_many knows no state; leave it out, or process(event, state)"),
        (count, {"pool": 9, "key_groups": 8}, "key_groups must be from its pool, 9, to 32768; got 8"),
        (count, {"key_groups": 4.5}, "key_groups must be from its pool, 4, to 32768; got 4.5"),
        (count, {"key_groups": 1 << 16}, "key_groups must be from its pool, 4, to 32768; got 65536"),
        (count, {"expire_after_s": 0}, "expire_after_s must be above 0; got 0"),
        (count, {"expire_after_s": math.inf}, "expire_after_s must be above 0; got inf"),
        (print, {"key_groups": 8}, "key_groups is for operators with state, process(event, state); this has none"),
        (
            print,
            {"expire_after_s": 1.0},
            "expire_after_s is for operators with state, process(event, state); this has none",
        ),
    ],
)
def test_rules(run: Any, declared: dict[str, Any], rule: str) -> None:
    with pytest.raises(TopologyError) as caught:
        topology_with(run, **declared)
    assert str(caught.value).startswith("operator 'count' (test_state.py:")
    assert str(caught.value).endswith(f"): {rule}")


@pytest.mark.parametrize("run", [needy, impossible])
def test_a_state_that_cannot_be_made(run: Any) -> None:
    with pytest.raises(TopologyError, match=r"the state of a new key cannot be made: .* give the class new_state\(\)"):
        topology_with(run)


def test_a_pool_that_outgrows_the_groups() -> None:
    topology = topology_with(key_groups=8)
    with pytest.raises(TopologyError, match="key_groups must be from its pool, 9"):
        topology.replaced("count", pool=9)


def test_a_struct_that_workers_cannot_import() -> None:
    class Local(msgspec.Struct):
        count: int = 0

    def local(event: Any, state: Any) -> None: ...

    local.__annotations__["state"] = Local
    with pytest.raises(TopologyError, match="a msgspec Struct must be defined at the top of a module"):
        topology_with(local).check()
