"""What holds of every plant: the same result however it is moved on, however often, and in bounded memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from penstock.apps import AppOptions, PayloadOptions, find_app
from penstock.simulator.plant.arrivals import Even, Poisson
from penstock.simulator.plant.model import Facts, build_model
from penstock.simulator.plant.plant import CHUNK, SimulatedPlant
from penstock.simulator.prepare import no_sink
from penstock.simulator.scenario import Plant
from penstock.topology import Topology
from penstock.workload import constant

from .cases import Given
from .test_plant import passed

END_S = 12.0


def drawn(selectivity: float = 1.0, grouping: str = "shuffle") -> Topology:
    """Two sources, a diamond, and events that are drawn."""
    topology = Topology("drawn", pool=4)
    first = topology.operator(
        "first",
        passed,
        inputs=[topology.source("in"), topology.source("also")],
        selectivity=selectivity,
        execution_time_ms=7.0,
        grouping=grouping,
    )
    for name, time_ms in (("left", 11.0), ("right", 5.0)):
        topology.operator(name, passed, inputs=first, execution_time_ms=time_ms, grouping=grouping)
    topology.operator("last", passed, inputs=["left", "right"], execution_time_ms=6.0, grouping=grouping)
    return topology


def plant_of(topology: Topology, facts: Facts | None = None, *, rate=100.0, target_s=2.0, **options) -> SimulatedPlant:
    arrivals = {name: Poisson(constant(rate, 10.0), seed) for seed, name in enumerate(topology.sources)}
    plant = SimulatedPlant(build_model(topology, facts), arrivals, Plant(**options), target_s=target_s)
    for name in topology.operators:
        plant.set_replicas(name, (0, 2, 3))
    plant.begin()
    return plant


def outcome(plant: SimulatedPlant, *, exact: bool = True) -> tuple:
    """All that can be seen of a plant; sums of times are rounded where their terms may come in another order."""
    digits = 15 if exact else 9
    counted = plant.counters()
    busy = {name: round(one.total.busy_s, digits) for name, one in counted.operators.items()}
    whole = {
        name: {number: (one.received, one.processed, one.dropped, one.queued) for number, one in all_.replicas.items()}
        for name, all_ in counted.operators.items()
    }
    latency = plant.latency()
    total_s = round(plant.latency_total_s, digits)
    return plant.events, plant.out, plant.failed, plant.late, latency.buckets, latency.max_ms, total_s, busy, whole


WAYS = {
    "shuffle": (lambda: drawn(2.0), Facts()),
    "load balancing": (lambda: drawn(2.0, "load_balancing"), Facts()),
    "least work": (lambda: drawn(2.0, "least_work"), Facts()),
    "exponential": (drawn, Facts(exponential=True)),
    "drawn": (lambda: drawn(0.6), Facts()),
    "exponential and drawn": (lambda: drawn(0.6), Facts(exponential=True)),
    "pull": (lambda: drawn(2.0, "pull"), Facts()),
    "pull, exponential and drawn": (lambda: drawn(0.6, "pull"), Facts(exponential=True)),
    "online shuffle": (lambda: drawn(2.0, "online_shuffle"), Facts()),
}


@pytest.mark.parametrize("bounds", [{}, {"t_out_s": 0.04}, {"q_size": 6}], ids=["free", "t_out", "q_size"])
@pytest.mark.parametrize("way", WAYS)
def test_the_length_of_steps_does_not_matter(way, bounds):
    make, facts = WAYS[way]
    at_once, in_steps = (plant_of(make(), facts, rate=210.0, target_s=0.03, **bounds) for _ in range(2))
    at_once.advance(END_S)
    for until_s in np.sort(np.random.default_rng(3).uniform(0, END_S, 50)):
        in_steps.advance(until_s)
    in_steps.advance(END_S)
    assert at_once.late
    assert bool(at_once.failed) == bool(bounds)
    assert outcome(at_once, exact=False) == outcome(in_steps, exact=False)


def test_one_way_through_is_exactly_the_same_in_steps():
    topology = Topology("chain", pool=4)
    first = topology.operator("first", passed, inputs=topology.source("in"), execution_time_ms=9.0)
    topology.operator("last", passed, inputs=first, execution_time_ms=9.0)
    at_once, in_steps = plant_of(topology), plant_of(topology)
    at_once.advance(END_S)
    for until_s in np.linspace(0.01, END_S, 150):
        in_steps.advance(until_s)
    assert outcome(at_once) == outcome(in_steps)


@pytest.mark.parametrize("way", WAYS)
def test_two_plants_of_one_model_are_the_same(way):
    """Random numbers once went on where the last plant had stopped: policies then competed on different input."""
    make, facts = WAYS[way]
    topology = make()
    model = build_model(topology, facts)
    outcomes = []
    for _ in range(2):
        arrivals = {name: Poisson(constant(100.0, 10.0), seed) for seed, name in enumerate(topology.sources)}
        plant = SimulatedPlant(model, arrivals, Plant())
        plant.advance(END_S)
        outcomes.append(outcome(plant))
    assert outcomes[0] == outcomes[1]


def test_another_seed_is_another_result():
    outcomes = []
    for seed in (1, 2):
        plant = plant_of(drawn(0.6), Facts(exponential=True, seed=seed))
        plant.advance(END_S)
        outcomes.append(plant.latency_total_s)
    assert outcomes[0] != outcomes[1]


def test_events_at_the_same_time_are_played_the_same_way_every_time():
    times = np.repeat(np.arange(1, 40) * 0.05, 8)
    outcomes = []
    for stops in ([], np.arange(0.05, END_S, 0.05)):
        plant = SimulatedPlant(build_model(drawn(2.0)), {name: Given(times) for name in ("in", "also")}, Plant())
        for until_s in stops:
            plant.advance(until_s)
        plant.advance(60.0)
        outcomes.append(outcome(plant, exact=False))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][1] == 2 * len(times)


@pytest.mark.parametrize("app", ["complex", "complex_sensitive", "wordcount"])
def test_applications_with_splits_are_the_same_in_steps(app):
    found = find_app(app)
    topology = found.build(AppOptions(sink=no_sink))
    facts = Facts(
        payloads=dict.fromkeys(topology.sources, found.payloads(PayloadOptions(count=300))), run_functions=True
    )
    outcomes = []
    for steps in (1, 60):
        plant = plant_of(topology, facts, rate=80.0)
        for until_s in np.linspace(END_S / steps, END_S, steps):
            plant.advance(until_s)
        outcomes.append(outcome(plant, exact=False))
    assert outcomes[0] == outcomes[1]


def overloaded(selectivity: float = 1.0) -> SimulatedPlant:
    """One replica that can do a fifth of what comes."""
    topology = Topology("overload", pool=1)
    slow = topology.operator(
        "slow", passed, inputs=topology.source("in"), selectivity=selectivity, execution_time_ms=1.0
    )
    topology.operator("last", passed, inputs=slow, execution_time_ms=0.01)
    return SimulatedPlant(build_model(topology), {"in": Even(constant(5000.0, 10.0))}, Plant(hop_s=0.0))


@pytest.mark.parametrize("selectivity", [1.0, 3.0])
def test_a_backlog_of_many_stretches_is_kept_in_order(selectivity):
    plant = overloaded(selectivity)
    plant.advance(10.0)
    assert plant.events == 50_000 > 2 * CHUNK
    assert plant.operators["slow"].backlog == pytest.approx(40_000, abs=1)
    plant.advance(60.0)
    assert plant.out == 50_000
    n = np.arange(50_000)
    assert plant.latency_total_s == pytest.approx(np.sum((n + 1) * 1e-3 - n / 5000) + 50_000 * selectivity * 1e-5)


def test_memory_does_not_grow_with_the_input():
    peaks = []
    for seconds in (3.0, 15.0):
        topology = drawn(2.0)
        arrivals = {name: Poisson(constant(10_000.0, seconds), 1) for name in topology.sources}
        facts = Facts(times_s=dict.fromkeys(topology.operators, 1e-5))
        plant = SimulatedPlant(build_model(topology, facts), arrivals, Plant())
        tracemalloc.start()
        plant.advance(seconds + 1.0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert plant.backlog == 0
    assert peaks[1] < 1.2 * peaks[0]
