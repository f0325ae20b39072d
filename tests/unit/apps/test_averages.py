"""Averages by city: what the operators with state come to, against a plain computation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from penstock.apps import APPS, PayloadOptions
from penstock.apps.averages import score
from penstock.topology import Topology


def test_the_last_mean_of_each_city_is_that_of_its_distinct_opinions(
    build: Callable[..., Topology], run_in_memory: Callable[..., Any]
) -> None:
    events = APPS["averages"].payloads(PayloadOptions(seed=1, count=500))
    stored = run_in_memory(build("averages"), events + events[:50]).stored["store"]
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    for event in map(score, events):
        scores[event["city"]].setdefault(event["said"], event["score"])
    last = {row["city"]: row for row in stored}
    assert {city: row["count"] for city, row in last.items()} == {city: len(said) for city, said in scores.items()}
    for city, said in scores.items():
        assert last[city]["mean"] == pytest.approx(sum(said.values()) / len(said))
