"""The fast simulator beside the obvious one: the same events, the same results, to the microsecond."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings

from penstock.metrics.latency import LatencyHistogram
from penstock.metrics.utilisation import Utilisation
from penstock.simulator.scenario import Plant

from .cases import GROUPINGS, INTERVAL_S, Case, Change, cases, chain, poisson

MICROSECOND = 1e-6
TAIL_S = 30.0  # both go on for so long after the last change
LOOKS = 30

# A failing case is told as it is: what makes it smaller also takes minutes.
settled = settings(
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def same(plant, reference) -> None:
    """Everything that both count is alike now."""
    latencies = [latency for _, latency in reference.left]
    assert (plant.events, plant.out, plant.failed) == (reference.events, len(latencies), reference.failed)
    assert plant.late == sum(latency > plant.target_s for latency in latencies)
    assert plant.latency_total_s == pytest.approx(sum(latencies), abs=MICROSECOND)
    expected = LatencyHistogram()
    for latency in latencies:
        expected.add(1000 * latency)
    assert plant.latency().buckets == expected.buckets
    assert plant.latency().max_ms == pytest.approx(expected.max_ms, abs=1000 * MICROSECOND)
    counted = plant.counters().operators
    for name, one in reference.operators.items():
        same_operator(counted[name], one)


def same_operator(counted, one) -> None:
    total = counted.total
    assert counted.backlog == one.backlog
    assert {name: count for name, count in total.received.items() if count} == one.received
    assert total.dropped == one.dropped
    for replica, counters in counted.replicas.items():
        assert counters.processed == one.processed[replica]
        assert counters.busy_s == pytest.approx(one.busy_s[replica], abs=MICROSECOND)
        assert counters.queued == len(one.replicas[replica].held)


def compare(case: Case) -> None:
    drive(case, case.plant(), case.reference(), TAIL_S)


def drive(case, plant, reference, tail_s: float) -> None:
    """Take both through all intervals and look at each end, before and after the change, and after the tail."""
    for number, change in enumerate(case.changes, start=1):
        for one in (plant, reference):
            one.advance(number * INTERVAL_S)
        same(plant, reference)
        for one in (plant, reference):
            change.make(one)
        same(plant, reference)
    for one in (plant, reference):
        one.advance(case.last_s + tail_s)
    same(plant, reference)


@given(cases(q_size=None))
@settings(settled, max_examples=50)
def test_same_at_the_end_of_every_interval(case):
    compare(case)


@given(cases(hop_s=0.0))
@settings(settled, max_examples=50)
def test_same_with_bounded_queues(case):
    bounds = case.options
    assume(bounds.q_size is not None)
    # Of events that time out the moment a restart is over, the plant knows beforehand that they take no place.
    assume(bounds.actuation == "pool" or bounds.t_out_s is None)
    compare(case)


@given(cases(actuation="pool"))
@settings(settled, max_examples=20)
def test_same_in_the_end_with_bounded_queues_and_hops(case):
    """The plant knows of a drop when the event is sent, a hop before it arrives: hence only the end is compared.

    Least work would send the next event elsewhere for that.
    """
    assume(all(one.grouping != "least_work" for one in case.topology.operators.values()))
    plant, reference = case.plant(), case.reference()
    for one in (plant, reference):
        one.advance(case.last_s + TAIL_S)
    same(plant, reference)


@given(cases(q_size=None))
@settings(settled, max_examples=20)
def test_every_source_event_leaves_at_the_same_microsecond(case):
    reference, plant = case.reference(), case.plant()
    changes = dict(enumerate(case.changes, start=1))
    for end, change in changes.items():
        reference.advance(end * INTERVAL_S)
        change.make(reference)
    reference.advance(case.last_s + TAIL_S)
    left = np.array(sorted(time_s for time_s, _ in reference.left))
    chosen = left[:: max(1, len(left) // LOOKS)]
    looks = sorted([*(chosen - MICROSECOND), *(chosen + MICROSECOND), *(end * INTERVAL_S for end in changes)])
    for look_s in looks:
        plant.advance(look_s)
        assert plant.out == np.searchsorted(left, look_s)
        if plant.now_s in changes:
            changes[plant.now_s].make(plant)


def under(*changes: dict, used=None, groupings=("shuffle",) * 3, rate=120.0, count=400, **options) -> Case:
    """A chain of three operators with a pool of 4 each, and the replicas that it gets at the ends of intervals."""
    topology = chain(groupings)
    known = {} if used is None else dict.fromkeys(topology.operators, used)
    made = tuple(Change(replicas, known) for replicas in changes)
    chosen = Plant(restart_s=0.37, **options)
    return Case(topology, {"s": poisson(rate, count, seed=5)}, chosen, made)


def everywhere(*replicas: int) -> dict[str, tuple[int, ...]]:
    return dict.fromkeys(("o0", "o1", "o2"), replicas)


USED = Utilisation({0: 0.35, 1: 0.1, 2: 0.0, 3: 0.8}, 0.03)
OTHER_ROUND = (everywhere(0, 1), everywhere(0), everywhere(0, 1, 2), everywhere(2, 3), {"o1": (0, 1, 2, 3)})
DIRECTED = {
    **{f"{name}": under(*OTHER_ROUND, groupings=(name,) * 3) for name in GROUPINGS},
    **{f"{name}, used": under(*OTHER_ROUND, used=USED, groupings=(name,) * 3) for name in GROUPINGS},
    "slow activation": under(*OTHER_ROUND, activation_delay_s=1.37),
    "active again before it was idle": under(everywhere(0, 1), everywhere(0), everywhere(0, 1), rate=400.0, count=1500),
    "restarts": under(*OTHER_ROUND, actuation="restart"),
    "a restart within a restart": under(*OTHER_ROUND, actuation="restart", hop_s=0.31, rate=60.0),
    "restart, least work": under(*OTHER_ROUND, actuation="restart", groupings=("least_work",) * 3),
    "lossy restarts": under(*OTHER_ROUND, actuation="restart-lossy"),
    "t_out": under(*OTHER_ROUND, t_out_s=0.4),
    "t_out, least work": under(*OTHER_ROUND, t_out_s=0.4, groupings=("least_work",) * 3),
    "t_out, restarts": under(*OTHER_ROUND, t_out_s=0.9, actuation="restart"),
    "q_size": under(*OTHER_ROUND, q_size=7, hop_s=0.0),
    "q_size, restarts": under(*OTHER_ROUND, q_size=30, hop_s=0.0, actuation="restart"),
    "overhead": under(*OTHER_ROUND, overhead_s={"o1": 0.0123}),
}


@pytest.mark.parametrize("name", DIRECTED)
def test_same_where_a_rule_is_at_work(name):
    compare(DIRECTED[name])


def test_senders_that_keep_their_place_go_on():
    """Replica 0 of o0 keeps its number when replica 2 takes the place of 1: its round at o1 must not start again."""
    compare(under(everywhere(0, 1, 2), {"o0": (0, 1)}, {"o0": (0, 2)}, groupings=("load_balancing",) * 3))
