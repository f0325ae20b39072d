"""What replicas cost: each while it is active or has events queued."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.policy.base import Plan, Target
from penstock.simulator import simulate
from penstock.simulator.plant.arrivals import Poisson
from penstock.simulator.plant.model import build_model
from penstock.simulator.plant.plant import SimulatedPlant
from penstock.simulator.scenario import Plant
from penstock.topology import Topology
from penstock.workload import constant

from ..setups import scenario_of
from .test_plant import passed

POOL = 4
KINDS = ("shuffle", "load_balancing", "least_work", "online_shuffle", "pull", "state")


def counted(event, state): ...


def row_of(kinds: list[str]) -> Topology:
    """Operators in a row, of 30 ms each."""
    topology = Topology("row", pool=POOL)
    last = topology.source("in").name
    for number, kind in enumerate(kinds):
        how = {"key": "word"} if kind == "state" else {"grouping": kind}
        function = counted if kind == "state" else passed
        last = topology.operator(f"o{number}", function, inputs=last, execution_time_ms=30.0, **how).name
    return topology


SETS = st.sets(st.integers(0, POOL - 1), min_size=1).map(lambda some: tuple(sorted(some)))
PLANTS = st.builds(
    Plant,
    actuation=st.sampled_from(["pool", "pool", "restart", "restart-lossy"]),
    restart_s=st.just(0.5),
    t_out_s=st.sampled_from([None, 0.5]),
    q_size=st.sampled_from([None, 9]),
    activation_delay_s=st.sampled_from([0.0, 0.05, 0.7]),
)


@settings(deadline=None, max_examples=80)
@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=2),
    changes=st.lists(st.tuples(SETS, SETS), min_size=1, max_size=8),
    plant=PLANTS,
    rate=st.sampled_from([20.0, 60.0, 120.0]),
)
def test_nobody_works_unpaid(kinds, changes, plant, rate):
    made = SimulatedPlant(build_model(row_of(kinds)), {"in": Poisson(constant(rate, 8.0))}, plant)
    for second, sets in enumerate(changes, start=1):
        made.advance(float(second))
        for name, replicas in zip(made.operators, sets, strict=False):
            made.set_replicas(name, replicas)
        made.settle_changes()
    made.advance(30.0)
    for operator in made.operators.values():
        for number, one in operator.counters().replicas.items():
            assert one.busy_s <= operator.paid_s[number] + 1e-9
            assert operator.paid_s[number] <= 30.0 + 1e-9
    assert made.replica_seconds >= 30.0 * len(made.operators)


def test_a_replica_that_gets_no_more_events_costs_until_its_last_has_left():
    """30 events of 0.1 s in the first second are 3 s of work for replica 0; then only replica 1 is active."""
    topology = Topology("one", pool=2)
    topology.operator("o", passed, inputs=topology.source("in"), execution_time_ms=100.0)
    made = SimulatedPlant(build_model(topology), {"in": Poisson(constant(30.0, 1.0))}, Plant(hop_s=0.0))
    made.advance(1.0)
    made.set_replicas("o", (1,))
    made.advance(1.5)
    assert made.operators["o"].paid_s.tolist() == [1.5, 0.5]
    made.advance(20.0)
    first, second = made.operators["o"].paid_s.tolist()
    assert second == 19.0
    assert made.operators["o"].counters().replicas[0].busy_s < first < 0.1 + 0.1 * made.events


class Wanders:
    """One replica, another one every interval."""

    def __init__(self):
        self._at = 0

    def plan(self, snapshot, forecast=None):
        self._at = (self._at + 1) % 8
        return Plan({name: Target(1, "the next", which=(self._at,)) for name in snapshot.operators})


def test_a_policy_that_moves_its_only_replica_about_pays_for_what_it_leaves_behind():
    """Three replicas' work under one active replica at a time: it paid a third."""
    result = simulate(scenario_of([30.0] * 6, 100.0, td_s=1.0), Wanders())
    assert result.history.total_replicas.max() == 1
    assert result.replica_seconds > 0.1 * result.events * 0.99 > 2.5 * result.history.times_s[-1]


def test_the_time_before_the_first_step_is_paid_as_well():
    late = simulate(scenario_of([10.0, 10.0], 20.0, first_step_s=4.0), "static:2")
    assert late.replica_seconds == pytest.approx(2 * late.history.times_s[-1])
