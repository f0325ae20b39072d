"""Fields: the same key to the same replica, in every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from penstock.errors import InputError
from penstock.grouping import Fields, Receivers, stable_hash

WORDS = [f"word {n}" for n in range(200)]
IN_ANOTHER_PROCESS = """
import json, sys
from penstock.grouping import Fields, Receivers
fields = Fields("word")
fields.update(Receivers(active=(0, 2, 5, 7)))
json.dump(fields.assign([{"word": word} for word in json.load(sys.stdin)]), sys.stdout)
"""


class Tweet(msgspec.Struct):
    word: str


@dataclass
class Query:
    word: str


def fields(*active: int, key: Any = "word") -> Fields:
    grouping = Fields(key)
    grouping.update(Receivers(active=active))
    return grouping


def events(words: list[str]) -> list[dict[str, str]]:
    return [{"word": word} for word in words]


def test_hashes_are_written_down() -> None:
    assert stable_hash("storm") == 3485271718
    assert stable_hash(7) == 1281784366
    assert stable_hash(("a", 1)) == stable_hash(["a", 1]) != stable_hash(["a", 2])


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_other_processes_choose_alike(hash_seed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS],
        input=json.dumps(WORDS),
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == fields(0, 2, 5, 7).assign(events(WORDS))


def test_a_key_stays_while_the_set_is_unchanged() -> None:
    grouping = fields(0, 2, 5)
    before = grouping.assign(events(WORDS))
    grouping.update(Receivers(active=(5, 0, 2), utilisation={0: 0.9}, step=0.1, version=2))
    assert grouping.assign(events(list(reversed(WORDS)))) == list(reversed(before))


def test_a_key_goes_to_an_active_replica_after_the_set_has_changed() -> None:
    grouping = fields(0, 1, 2, 3)
    grouping.update(Receivers(active=(1, 3)))
    assert set(grouping.assign(events(WORDS))) == {1, 3}


@pytest.mark.parametrize(
    "keys", [WORDS, [f"{n}" for n in range(200)], list(range(200))], ids=["words", "digits", "ints"]
)
@pytest.mark.parametrize("replicas", [2, 3, 4, 8])
def test_keys_spread_over_all_replicas(keys: list[Any], replicas: int) -> None:
    counts = Counter(fields(*range(replicas)).assign([{"word": key} for key in keys]))
    fair = len(keys) / replicas
    assert len(counts) == replicas
    assert max(counts.values()) <= 2 * fair


def test_a_key_may_be_a_field_of_any_event_or_a_function() -> None:
    by_mapping = fields(0, 1, 2).assign(events(WORDS))
    assert fields(0, 1, 2).assign([Tweet(word) for word in WORDS]) == by_mapping
    assert fields(0, 1, 2).assign([Query(word) for word in WORDS]) == by_mapping
    assert fields(0, 1, 2, key=lambda event: event["word"]).assign(events(WORDS)) == by_mapping


@pytest.mark.parametrize("event", [{"text": "a"}, msgspec.defstruct("Text", ["text"])("a")])
def test_an_event_without_the_field(event: Any) -> None:
    with pytest.raises(InputError) as caught:
        fields(0, 1).assign([event])
    assert str(caught.value) == f"grouping 'fields': the event has no field 'word': {event!r}"
