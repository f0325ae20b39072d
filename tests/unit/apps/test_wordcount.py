"""The word count: five words a sentence, counted by key."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from penstock.apps import payloads
from penstock.apps.wordcount import DEPLOYED, SERVICE_MS, WordCounter, split
from penstock.topology import Topology


def test_the_static_deployment_of_the_paper_is_half_idle_at_its_peak() -> None:
    """Otherwise no policy could do with less than half of it over the ramp: 550 sentences/s of five words each."""
    rates = {"split": 550.0, "counter": 5 * 550.0, "consumer": 5 * 550.0}
    busy = {name: rates[name] * SERVICE_MS[name] / 1000 for name in SERVICE_MS}
    assert DEPLOYED == {"split": 2, "counter": 6, "consumer": 6}
    assert sum(busy.values()) < 0.5 * sum(DEPLOYED.values())


def test_the_counter_is_keyed_by_word(build: Callable[..., Topology]) -> None:
    counter = build("wordcount", grouping="load_balancing")["counter"]
    assert (counter.key, counter.grouping) == ("word", "fields")
    assert counter.state is not None


def test_every_word_is_counted(build: Callable[..., Topology], run_in_memory: Callable[..., Any]) -> None:
    events = payloads("wordcount", seed=3)
    run = run_in_memory(build("wordcount"), events)
    expected = Counter(word for event in events for word in str(event["sentence"]).split())
    stored = run.stored["consumer"]
    assert len(stored) == 5 * len(events) == expected.total()
    assert {row["word"]: row["count"] for row in stored} == expected


def test_split_gives_an_event_for_each_word() -> None:
    assert split({"sentence": "The gate  the"}) == [{"word": "the"}, {"word": "gate"}, {"word": "the"}]


def test_the_counter_counts_in_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    counter = WordCounter(service_ms=2.0)
    state: dict[str, int] = {}
    assert counter.process({"word": "a"}, state) == {"word": "a", "count": 1}
    assert counter.process({"word": "a"}, state) == {"word": "a", "count": 2}
    assert counter.process({"word": "a"}, {}) == {"word": "a", "count": 1}
    assert slept == [0.002] * 3
