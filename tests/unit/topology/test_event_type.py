"""The type of an operator's events, read off its first parameter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict

import msgspec
import pytest

from penstock.topology.event_type import event_type


class Tweet(msgspec.Struct):
    text: str


@dataclass
class Query:
    name: str


class Row(TypedDict):
    value: int


def of_struct(tweet: Tweet) -> Tweet:
    return tweet


def of_dataclass(query: Query) -> None: ...


def of_typed_dict(row: Row) -> Row:
    return row


def of_mapping(event: Mapping[str, Any]) -> None: ...


def of_dict(event: dict[str, Any]) -> None: ...


def of_nothing() -> None: ...


def untyped(event):  # type: ignore[no-untyped-def]
    return event


class OneByOne:
    def process(self, tweet: Tweet) -> Tweet:
        return tweet


class ManyAtOnce:
    def process(self, tweet: Tweet) -> Tweet:
        return tweet

    def process_many(self, queries: list[Query]) -> list[Query]:
        return queries


class Callable:
    def __call__(self, tweet: Tweet) -> Tweet:
        return tweet


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (of_struct, Tweet),
        (of_dataclass, Query),
        (of_typed_dict, Row),
        (OneByOne(), Tweet),
        (OneByOne().process, Tweet),
        (ManyAtOnce(), Query),
        (of_mapping, Any),
        (of_dict, Any),
        (of_nothing, Any),
        (untyped, Any),
        (print, Any),
        (partial(of_struct), Any),
        (Callable(), Any),
    ],
)
def test_event_type(run: object, expected: object) -> None:
    assert event_type(run) is expected
