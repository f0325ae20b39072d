"""The three topologies of DABS-Storm: times by value, opinions by place and by age."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from penstock.apps import payloads
from penstock.apps.complex_sensitive import dispatch, group_by_age, group_by_place, locate
from penstock.apps.waiting import MEAN_TIME_MS, times_of_values
from penstock.topology import Topology

Build = Callable[..., Topology]
OPINION = {"type": "Caution and advice", "text": "RT @user: stay strong", "age": 17, "code": 0, "source": "Media"}


def test_insensitive_takes_the_same_time_for_every_value(build: Build) -> None:
    bolt = build("insensitive", service_ms={})["bolt"]
    assert bolt.run.service_ms == bolt.execution_time_ms == MEAN_TIME_MS


@pytest.mark.parametrize(
    ("app", "operator", "field"), [("sensitive", "bolt", "value"), ("complex_sensitive", "sensitive", "code")]
)
def test_sensitive_takes_the_time_of_the_value(build: Build, app: str, operator: str, field: str) -> None:
    declared = build(app, service_ms={}, seed=9)[operator]
    times = [declared.run.service_ms({field: value}) for value in range(64)]
    assert tuple(times) == times_of_values(seed=9)
    assert declared.execution_time_ms == MEAN_TIME_MS
    assert build(app, service_ms={}, seed=10)[operator].run != declared.run


@pytest.mark.parametrize(("app", "operator"), [("sensitive", "bolt"), ("complex_sensitive", "sensitive")])
def test_another_service_time_is_the_mean_of_the_times(build: Build, app: str, operator: str) -> None:
    declared = build(app, service_ms={operator: 6.5})[operator]
    assert sum(declared.run.service_ms.times_ms) / 64 == pytest.approx(6.5)
    assert declared.execution_time_ms == 6.5


def test_the_bolt_passes_on_every_event(build: Build, run_in_memory: Callable[..., Any]) -> None:
    events = payloads("sensitive", seed=3)
    rows = run_in_memory(build("sensitive"), events).stored["end"]
    assert [{"number": row["number"], "value": row["value"]} for row in rows] == events
    assert len({row["checksum"] for row in rows}) > 0.99 * len(rows)


def test_opinions_reach_both_branches(build: Build, run_in_memory: Callable[..., Any]) -> None:
    events = payloads("complex_sensitive", seed=3)
    topology = build("complex_sensitive")
    run = run_in_memory(topology, events)
    relevant = sum(event["type"] not in ("Not labeled", "Not applicable") for event in events)
    assert 0 < relevant < len(events)
    assert run.received["sensitive"] == run.received["age_analyzer"] == relevant
    assert Counter(row["by"] for row in run.stored["persister"]) == dict.fromkeys(("city", "region", "age"), relevant)
    assert topology.level("persister") - topology.level("age_analyzer") == 2


def test_each_branch_gets_what_it_needs_and_no_more() -> None:
    places, ages = dispatch(OPINION)
    said = {"topic": "Caution and advice", "text": "stay strong"}
    assert (places.stream, places.event) == ("places", {**said, "code": 0})
    assert (ages.stream, ages.event) == ("ages", {**said, "age": 17})
    assert dispatch({**OPINION, "type": "Not labeled"}) == []


def test_subgroups_of_city_region_and_age() -> None:
    places, ages = dispatch(OPINION)
    groups = [*group_by_place(locate(places.event)), group_by_age(ages.event)]
    assert [(group["by"], group["group"], group["stance"]) for group in groups] == [
        ("city", "Cairo", "positive"),
        ("region", "africa", "positive"),
        ("age", "under 18", "positive"),
    ]
