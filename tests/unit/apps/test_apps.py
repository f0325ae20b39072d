"""What holds for every application: it checks, ships, runs, declares what it does and reproduces by seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cloudpickle
import msgspec
import pytest

from penstock.apps import APPS, AppOptions, PayloadOptions, find_app, payloads
from penstock.errors import InputError
from penstock.topology import Topology

every_app = pytest.mark.parametrize("name", APPS)
Build = Callable[..., Topology]
RunInMemory = Callable[[Topology, list[Any]], Any]
OPERATORS = {
    "twitter": ["clean", "classify", "author", "store"],
    "complex": ["dispatch", "headline", "opinion", "topics", "urgency", "sentiment", "profile", "store"],
    "dns": ["parse", "features", "classify", "store"],
    "wordcount": ["split", "counter", "consumer"],
    "insensitive": ["bolt", "end"],
    "sensitive": ["bolt", "end"],
    "complex_sensitive": ["category_dispatcher", "age_analyzer", "sensitive", "city_analyzer", "persister"],
    "averages": ["score", "distinct", "average", "store"],
}


def few(name: str, seed: int = 1) -> list[Any]:
    return APPS[name].payloads(PayloadOptions(seed=seed, count=500))


@every_app
def test_it_has_its_operators_and_one_sink(name: str, build: Build) -> None:
    topology = build(name)
    topology.check()
    assert topology.name == name
    assert topology.in_order() == OPERATORS[name]
    assert topology.sinks == (OPERATORS[name][-1],)


@every_app
def test_it_runs_to_the_end(name: str, build: Build, run_in_memory: RunInMemory) -> None:
    events = few(name)
    run = run_in_memory(build(name), events)
    first, last = OPERATORS[name][0], OPERATORS[name][-1]
    assert run.received[first] == len(events)
    assert len(run.stored[last]) == run.received[last] > 0


@every_app
def test_it_does_what_it_declares(name: str, build: Build, run_in_memory: RunInMemory) -> None:
    topology = build(name)
    run = run_in_memory(topology, payloads(name, seed=2))
    for operator in topology.operators.values():
        assert set(operator.selectivity) == set(operator.outputs)
        for stream, declared in operator.selectivity.items():
            assert run.selectivity(operator.name, stream) == pytest.approx(declared, abs=0.12), (operator.name, stream)


@every_app
def test_stored_events_can_be_encoded(name: str, build: Build, run_in_memory: RunInMemory) -> None:
    rows = run_in_memory(build(name), few(name)).stored[OPERATORS[name][-1]]
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(rows)) == rows


@every_app
def test_the_same_events_give_the_same_result(name: str, build: Build, run_in_memory: RunInMemory) -> None:
    events = few(name)
    kept = [dict(event) for event in events]
    first, second = run_in_memory(build(name), events), run_in_memory(build(name), events)
    assert first.stored == second.stored
    assert events == kept, "operators leave their events alone"


@every_app
def test_execution_times_are_the_service_times(name: str, build: Build) -> None:
    names = OPERATORS[name]
    topology = build(name, service_ms=dict(zip(names, range(1, 9), strict=False)))
    assert [topology[operator].execution_time_ms for operator in names] == list(range(1, len(names) + 1))
    assert topology[names[-1]].run.service_ms == len(names)
    assert all(operator.execution_time_ms is None for operator in build(name).operators.values())


@every_app
def test_by_default_every_operator_takes_time_and_has_replicas_to_spare(name: str, build: Build) -> None:
    topology = build(name, service_ms={})
    for operator in topology.operators.values():
        assert operator.execution_time_ms is not None
        assert operator.pool > 1
    assert all(topology[operator].pool >= count for operator, count in APPS[name].deployed.items())


@every_app
def test_pools_and_groupings_can_be_chosen(name: str, build: Build) -> None:
    first, *rest = OPERATORS[name]
    topology = build(name, pool=3, pools={first: 9}, grouping="load_balancing")
    assert topology[first].pool == 9
    assert {topology[operator].pool for operator in rest} == {3}
    for operator in topology.operators.values():
        assert operator.grouping == ("fields" if operator.key else "load_balancing")


@every_app
def test_an_error_names_the_line_of_the_app(name: str, build: Build) -> None:
    for operator in build(name).operators.values():
        assert operator.place.startswith(f"{name}.py:")


@every_app
def test_payloads_reproduce_by_seed(name: str) -> None:
    assert few(name) == few(name)
    assert few(name, seed=1) != few(name, seed=2)


@every_app
def test_payloads_are_flat_and_can_be_encoded(name: str) -> None:
    events = few(name)
    assert len(events) == 500
    assert {type(value) for event in events for value in event.values()} <= {str, int, float, bool}
    assert all(list(event) == list(events[0]) for event in events)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(events)) == events


@every_app
def test_the_registry_can_be_shipped(name: str) -> None:
    app = find_app(name)
    assert cloudpickle.loads(cloudpickle.dumps(app)) == app
    assert app.summary


def test_an_unknown_app_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(InputError) as caught:
        find_app("twiter")
    known = "twitter, complex, dns, wordcount, insensitive, sensitive, complex_sensitive, averages"
    expected = f"app 'twiter': no such application; known: {known}, or module:topology of your own"
    assert str(caught.value) == f"{expected}; did you mean 'twitter'?"


def test_payloads_of_an_unknown_app() -> None:
    with pytest.raises(InputError, match="app 'x': no such application"):
        payloads("x")


def test_the_sink_is_the_callers(build: Build) -> None:
    made: list[tuple[str, float]] = []

    class Nothing:
        def process(self, event: object) -> None: ...

    def factory(name: str, service_ms: float) -> Nothing:
        made.append((name, service_ms))
        return Nothing()

    topology = find_app("twitter").build(AppOptions(sink=factory, service_ms={"store": 4.0}))
    assert made == [("store", 4.0)]
    assert isinstance(topology["store"].run, Nothing)
