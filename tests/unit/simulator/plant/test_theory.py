"""Queues whose mean waiting time is known: the simulator comes within 2 % of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.simulator.plant.arrivals import Even, Poisson
from penstock.simulator.plant.model import Facts, build_model
from penstock.simulator.plant.plant import SimulatedPlant
from penstock.simulator.scenario import Plant
from penstock.topology import Topology
from penstock.workload import constant

from .test_plant import passed

SERVICE_S = 0.01
EVENTS = 3_000_000
WITHIN = 0.02


def queue(
    load: float, replicas: int = 1, *, operators: int = 1, grouping: str = "least_work", **facts
) -> SimulatedPlant:
    """Operators in a row under so much load a replica, not yet played; nothing takes time but the work."""
    topology = Topology("queue", pool=replicas)
    last = topology.source("in").name
    for number in range(operators):
        name = f"o{number}"
        topology.operator(name, passed, inputs=last, grouping=grouping, execution_time_ms=1000 * SERVICE_S)
        last = name
    rate = load * replicas / SERVICE_S
    arrivals = {"in": Poisson(constant(rate, EVENTS / operators / rate, step_s=3600.0), seed=11)}
    plant = SimulatedPlant(build_model(topology, Facts(seed=3, **facts)), arrivals, Plant(hop_s=0.0))
    for name in topology.operators:
        plant.set_replicas(name, range(replicas))
    return plant


def played(plant: SimulatedPlant) -> SimulatedPlant:
    plant.advance(plant.end_s)
    return plant


def mean_wait_s(plant: SimulatedPlant) -> float:
    """Latency less the time in the replicas' hands."""
    busy_s = sum(one.total.busy_s for one in plant.counters().operators.values())
    return (plant.latency_total_s - busy_s) / plant.out


def erlang_c(servers: int, load: float) -> float:
    """The chance that an event has to wait, at this load a server."""
    a = servers * load
    terms = [a**k / math.factorial(k) for k in range(servers)]
    last = a**servers / math.factorial(servers) / (1 - load)
    return last / (sum(terms) + last)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_m_m_1(load):
    plant = played(queue(load, exponential=True))
    assert mean_wait_s(plant) == pytest.approx(SERVICE_S * load / (1 - load), rel=WITHIN)


@pytest.mark.parametrize("servers", [2, 4, 8])
def test_m_m_c(servers):
    load = 0.8
    plant = played(queue(load, servers, exponential=True))
    expected_s = erlang_c(servers, load) * SERVICE_S / servers / (1 - load)
    assert mean_wait_s(plant) == pytest.approx(expected_s, rel=WITHIN)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_m_d_1(load):
    plant = played(queue(load))
    assert mean_wait_s(plant) == pytest.approx(SERVICE_S * load / (1 - load) / 2, rel=WITHIN)


def test_shuffle_is_a_queue_of_its_own_for_each_replica():
    """Every fourth Poisson arrival: E4/M/1, whose wait is σ / (1 − σ) services, σ = (λ / (λ + μ (1 − σ)))⁴."""
    load, servers, sigma = 0.8, 4, 0.5
    for _ in range(200):
        sigma = (load * servers / (load * servers + 1 - sigma)) ** servers
    plant = played(queue(load, servers, grouping="shuffle", exponential=True))
    assert mean_wait_s(plant) == pytest.approx(SERVICE_S * sigma / (1 - sigma), rel=WITHIN)


def test_operators_in_a_row_are_queues_of_their_own():
    """Jackson: what leaves an M/M/1 queue is a Poisson stream again."""
    load = 0.6
    plant = played(queue(load, operators=3, exponential=True))
    assert plant.latency().mean_ms == pytest.approx(3000 * SERVICE_S / (1 - load), rel=WITHIN)


@pytest.mark.parametrize(("load", "servers"), [(0.5, 1), (0.8, 4)])
def test_utilisation_is_the_load(load, servers):
    plant = played(queue(load, servers, exponential=True))
    busy_s = plant.counters().operators["o0"].total.busy_s
    assert busy_s / servers / plant.end_s == pytest.approx(load, rel=0.005)


def test_littles_law():
    """Events in the system, looked at now and then, are rate · latency."""
    plant, seen = queue(0.7, 2, exponential=True), []
    for until_s in np.linspace(0, plant.end_s, 4001)[1:]:
        plant.advance(until_s)
        seen.append(plant.backlog)
    rate = plant.events / plant.end_s
    assert np.mean(seen) == pytest.approx(rate * plant.latency().mean_ms / 1000, rel=0.03)


def test_nobody_waits_for_regular_work():
    """D/D/1 up to a load of 1."""
    topology = Topology("regular")
    topology.operator("o0", passed, inputs=topology.source("in"), execution_time_ms=9.9)
    plant = SimulatedPlant(build_model(topology), {"in": Even(constant(100.0, 60.0))}, Plant(hop_s=0.0025))
    plant.advance(61.0)
    assert plant.out == 6000
    assert plant.latency().max_ms == pytest.approx(12.4)
