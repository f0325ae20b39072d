"""The state of a replica: values by key, what changed, expiry by event time, and all of it as bytes and back."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import EngineError, InputError
from penstock.state.codec import Codec
from penstock.state.keyed_state import KeyedState

LABEL = "operator 'count' (app.py:7)"


class Average(msgspec.Struct):
    count: int = 0
    total: float = 0.0


@dataclasses.dataclass
class Seen:
    words: set[str] = dataclasses.field(default_factory=set)


def state_of(new: Any = dict, kind: Any = Any, expire_after_s: float | None = None) -> KeyedState:
    state = KeyedState(Codec(LABEL, new, kind), expire_after_s)
    state.own(0)
    return state


def contents(state: KeyedState, group: int = 0) -> dict[Any, Any]:
    return dict(state._groups[group].values)


def copy_of(state: KeyedState, parts: list[bytes]) -> KeyedState:
    other = KeyedState(state.codec)
    other.own(0, parts)
    return other


# ── values ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_value_is_changed_in_place() -> None:
    state = state_of()
    state.value(0, "dam", 1.0)["count"] = 1
    state.value(0, "dam", 2.0)["count"] += 1
    state.value(0, "sea", 2.0)
    assert contents(state) == {"dam": {"count": 2}, "sea": {}}
    assert len(state) == 2


def test_groups_know_nothing_of_each_other() -> None:
    state = state_of()
    state.own(5)
    state.value(0, "dam", 1.0)["n"] = 1
    assert state.value(5, "dam", 1.0) == {}
    assert state.owned == {0, 5}
    state.forget(0)
    assert state.owned == {5}


def test_a_key_that_is_not_touched_for_longer_starts_anew() -> None:
    state = state_of(expire_after_s=10.0)
    state.value(0, "dam", 100.0)["n"] = 1
    assert state.value(0, "dam", 110.0) == {"n": 1}  # just in time
    assert state.value(0, "dam", 120.5) == {}


def test_an_old_event_does_not_make_a_key_older() -> None:
    state = state_of(expire_after_s=10.0)
    state.value(0, "dam", 100.0)["n"] = 1
    state.value(0, "dam", 80.0)
    assert state.value(0, "dam", 109.0) == {"n": 1}


def test_expired_keys_are_forgotten_with_segments_and_deleted_in_the_change() -> None:
    """Twice the time, so that an event that is late finds the same with and without a segment in between."""
    state = state_of(expire_after_s=10.0)
    for key, born_s in (("a", 0.0), ("b", 15.0), ("c", 30.0)):
        state.value(0, key, born_s)["n"] = 1
    whole = state.whole(0)
    state.settle(0)
    state.expire(0)
    assert set(contents(state)) == {"b", "c"}
    change = state.change(0)
    assert change is not None
    assert set(contents(copy_of(state, [whole, change]))) == {"b", "c"}


# ── bytes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_changed_is_no_bytes_at_all() -> None:
    state = state_of()
    assert state.change(0) is None
    state.value(0, "dam", 1.0)
    assert state.change(0) is not None
    state.settle(0)
    assert state.change(0) is None


@pytest.mark.parametrize("key", ["dam", 7, 1.5, True, b"\x00", ("oslo", 3, ("a", 1))])
def test_keys_come_back_as_they_were(key: object) -> None:
    state = state_of()
    state.value(0, key, 1.0)["n"] = 1
    assert contents(copy_of(state, [state.whole(0)])) == {key: {"n": 1}}


def test_values_come_back_in_the_type_that_the_operator_wants() -> None:
    typed = state_of(Average, Average)
    typed.value(0, "oslo", 1.0).count = 3
    assert contents(copy_of(typed, [typed.whole(0)])) == {"oslo": Average(3, 0.0)}
    kept = state_of(Seen, Seen)
    kept.value(0, "oslo", 1.0).words.add("rain")
    assert contents(copy_of(kept, [kept.whole(0)])) == {"oslo": Seen({"rain"})}


operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 6), st.floats(0, 50)),
        st.tuples(st.just("segment"), st.booleans(), st.just(0.0)),
    ),
    max_size=40,
)


@given(operations)
def test_the_last_whole_and_all_changes_since_are_the_state(play: list[tuple[str, Any, float]]) -> None:
    state = state_of(expire_after_s=10.0)
    parts: list[bytes] = [state.whole(0)]
    for what, which, born_s in play:
        if what == "add":
            value = state.value(0, which, born_s)
            value["n"] = value.get("n", 0) + 1
            continue
        state.expire(0)
        change = state.change(0)
        if which:
            parts = [state.whole(0)]
        elif change is not None:
            parts.append(change)
        state.settle(0)
    last = state.change(0)
    copy = copy_of(state, parts + ([] if last is None else [last]))
    assert contents(copy) == contents(state)
    assert copy._groups[0].touched_s == state._groups[0].touched_s


def test_the_size_is_about_right() -> None:
    state = state_of()
    for number in range(2000):
        state.value(0, f"key {number:05}", 1.0)["count"] = number
        state.look(0, f"key {number:05}")
    assert 0.7 < state.about_bytes / len(state.whole(0)) < 1.3


# ── undoing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def all_of(state: KeyedState) -> Any:
    kept = state._groups[0]
    return msgspec.msgpack.encode(
        (kept.values, kept.touched_s, sorted(kept.changed), sorted(kept.deleted), kept.newest_s, len(state))
    )


@given(
    before=st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 50)), max_size=6),
    settled=st.booleans(),
    key=st.sampled_from("abc"),
    born_s=st.floats(0, 50),
)
def test_what_an_event_did_can_be_undone(
    before: list[tuple[str, float]], settled: bool, key: str, born_s: float
) -> None:
    """Whether the key is new, known, or expired, and whether it was in a segment."""
    state = state_of(new=list, kind=list[float], expire_after_s=10.0)
    for one, at_s in before:
        state.value(0, one, at_s).append(at_s)
    if settled:
        state.expire(0)
        state.settle(0)
    was = all_of(state)
    saved = state.save(0, key)
    state.value(0, key, born_s).append(born_s)
    state.restore(0, key, saved)
    assert all_of(state) == was


def test_the_first_key_does_not_count_if_it_is_undone() -> None:
    """All keys have one type: the first may have been a mistake."""
    state = state_of()
    saved = state.save(0, 7)
    state.value(0, 7, 1.0)
    state.restore(0, 7, saved)
    assert state.value(0, "dam", 1.0) == {}


# ── errors ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_keys_of_two_types() -> None:
    state = state_of()
    state.value(0, "dam", 1.0)
    with pytest.raises(InputError) as caught:
        state.value(0, 7, 1.0)
    assert str(caught.value) == "all keys must have one type, and the first was str; got 7 (int)"


def test_a_key_that_cannot_be_kept() -> None:
    with pytest.raises(InputError) as caught:
        state_of().value(0, frozenset("a"), 1.0)
    known = "str, int, float, bool, bytes, tuple"
    assert str(caught.value) == f"a key must be one of {known}; got frozenset({{'a'}}) (frozenset)"


def test_a_state_that_cannot_be_encoded_is_named_with_its_key() -> None:
    state = state_of()
    state.value(0, "dam", 1.0)["n"] = 1
    state.value(0, "sea", 1.0)["file"] = object()
    for encode in (state.whole, state.change):
        with pytest.raises(EngineError, match=r"operator 'count' \(app.py:7\): the state of key 'sea' \(dict\) cannot"):
            encode(0)


@pytest.mark.parametrize(
    ("new", "kind", "wrong"),
    [
        (set, Any, "(set) would be []"),
        (Average, Any, "(Average) would be {'count': 0"),
        (list, dict, "(list) would be"),
    ],
)
def test_a_state_that_would_come_back_as_something_else(new: Any, kind: Any, wrong: str) -> None:
    """It shows at the first event, not after the first crash."""
    state = state_of(new, kind)
    state.value(0, "dam", 1.0)
    with pytest.raises(EngineError, match="annotate the parameter `state` with its type; key 'dam'") as caught:
        state.look(0, "dam")
    assert wrong in str(caught.value)
