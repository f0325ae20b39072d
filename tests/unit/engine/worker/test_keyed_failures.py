"""A replica with state: an event that fails leaves no trace in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.engine.worker import failures
from penstock.engine.worker.replica import OperatorReplica
from penstock.errors import EngineError
from penstock.grouping import stable_hash
from penstock.state.handover import Table

from ..made import with_letters
from .keyed_world import GROUPS, Driver, Tools, bundle, count, word_of, words

OWNED = (0, 0, 1, 1)  # by replica 0 and another one
WORD = word_of(0)


class World:
    """One replica that owns half of the groups."""

    def __init__(self, driver: Driver, tools: Tools, folder: Path) -> None:
        self.driver, self.tools, self.folder = driver, tools, folder
        driver.tables = {"count": Table(1, OWNED)}
        self.topology = words()
        self.replica: Any = None

    def run(self, *bundles: bytes) -> tuple[list[int], dict[str, Any]]:
        """Work off bundles; the counts that left, in order, and the dead letters."""
        program = self.driver.program(self.topology, storage_uri=str(self.folder))
        self.replica = OperatorReplica(program, 1, "count", 0, 1)
        left = self.tools.left(*self.replica.run(self.tools.Batch([one]) for one in bundles))
        found = list(zip(left.ids, left.events, strict=True))
        return [one["count"] for _, one in found if "count" in one], {
            event_id: one for event_id, one in found if "count" not in one
        }


@pytest.fixture
def world(driver: Driver, tools: Tools, tmp_path: Path) -> World:
    return World(driver, tools, tmp_path)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "FIRST_PAUSE_S", 0.001)


tries: list[str] = []
NUMBER = next(n for n in range(100) if stable_hash(n) % GROUPS == 0)  # a key of group 0


def hasty(event: dict[str, Any], state: dict[str, int]) -> Any:
    """Counts first, and looks at the event then."""
    counted = count(event, state)
    fate = event.get("fate")
    tries.append(fate or "")
    if fate == "raises" or (fate == "once" and tries.count("once") == 1):
        raise ValueError("no")
    if fate == "lazy":
        return (1 // (1 - n) for n in range(2))
    if fate == "encode":
        return [counted, {**counted, "x": object()}]
    return counted


def events(*fates: str) -> list[bytes]:
    return [bundle({"word": WORD, "fate": fate}, first=n) for n, fate in enumerate(fates)]


@pytest.mark.parametrize("fate", ["raises", "lazy", "encode"])
@pytest.mark.parametrize("rule", ["drop", "retry:2,drop"])
def test_an_event_that_fails_leaves_the_state_as_it_was(world: World, rule: str, fate: str) -> None:
    """An output that cannot be encoded used to be noticed when later events had changed the state already."""
    world.topology = words(hasty, on_error=rule)
    assert world.run(*events("", fate, "", fate, fate, ""))[0] == [1, 2, 3]
    assert (world.replica._counters.processed, world.replica._counters.dropped) == (3, {"error": 3})


def test_the_first_event_of_a_key_that_fails_leaves_no_state(world: World) -> None:
    world.topology = words(hasty, on_error="drop")
    assert world.run(*events("raises")) == ([], {})
    assert len(world.replica._stateful._state) == 0


@pytest.mark.parametrize("rule", ["retry:1", "retry:1,drop"])
def test_an_event_that_is_tried_again_counts_once(world: World, rule: str) -> None:
    tries.clear()
    world.topology = words(hasty, on_error=rule)
    assert world.run(*events("", "once", ""))[0] == [1, 2, 3]


def test_where_the_first_failure_ends_the_run_nothing_is_saved(world: World) -> None:
    world.topology = words(hasty)
    world.run(*events(""))
    assert world.replica._stateful._saved is None


class Word(msgspec.Struct):
    word: str
    fate: str = ""


def typed(event: Word, state: dict[str, int]) -> Any:
    return count({"word": event.word}, state)


def test_events_of_another_type_and_without_a_key_leave_the_others_alone(world: World) -> None:
    key: Any = lambda event: event.word if isinstance(event, Word) and event.fate != "key" else {}[0]  # noqa: E731
    world.topology = with_letters(words(typed, key=key, on_error="dead_letter"))
    mixed = bundle(
        {"word": WORD}, {"word": WORD, "fate": 7}, {"word": WORD}, {"word": WORD, "fate": "key"}, {"word": WORD}
    )
    found, letters = world.run(mixed)
    assert found == [1, 2, 3]
    assert {one: letter["error"] for one, letter in letters.items()} == {
        "1.count": "it is not Word: Expected `str`, got `int` - at `$.fate`",
        "3.count": "KeyError: 0",
    }
    assert [letter["event"] for letter in letters.values()] == [
        {"word": WORD, "fate": 7},
        {"word": WORD, "fate": "key"},
    ]
    assert (world.replica._counters.processed, world.replica._counters.dropped) == (3, {"dead_letter": 2})
    assert world.replica._inbox.waiting == 0


def test_a_dead_letter_of_an_event_with_state_has_the_event_alone(world: World) -> None:
    world.topology = with_letters(words(hasty, on_error="dead_letter"))
    _, letters = world.run(*events("raises"))
    assert letters["0.count"]["event"] == {"word": WORD, "fate": "raises"}


def test_a_key_of_another_type_is_a_failure_of_its_event(world: World) -> None:
    """It used to end the run, whatever `on_error` said."""
    world.topology = words(on_error="drop")
    world.run(*events("", ""), bundle({"word": NUMBER}, first=2), *events(""))
    assert (world.replica._counters.processed, world.replica._counters.dropped) == (3, {"error": 1})


def test_it_ends_the_run_unless_something_else_is_said(world: World) -> None:
    with pytest.raises(EngineError, match=r"operator 'count' .*: all keys must have one type, .*; on event 2: "):
        world.run(*events("", ""), bundle({"word": NUMBER}, first=2))
