"""Whatever fails around the loop: the stream goes on, the last plan holds, the log says why, and it recovers."""

from __future__ import annotations

import logging
import math
from dataclasses import replace

import pytest

from penstock.metrics.counters import ReplicaCounters
from penstock.policy.static import Static


class Edge:
    """A plant's ports with faults: what is in `faults` fails, and `spoil` changes the counters."""

    def __init__(self, plant):
        self.plant = plant
        self.faults = {}
        self.spoil = lambda counters: counters

    def counters(self):
        self._fail("counters")
        return self.spoil(self.plant.counters())

    def set_replicas(self, operator, replicas):
        self._fail("set_replicas", operator)
        self.plant.set_replicas(operator, replicas)

    def publish_utilisation(self, utilisation):
        self._fail("publish_utilisation")
        self.plant.publish_utilisation(utilisation)

    def _fail(self, *names):
        for name in names:
            if name in self.faults:
                raise self.faults[name]


@pytest.fixture
def edge():
    return {}


@pytest.fixture
def rig(make_rig, edge):
    def wrap(plant):
        edge["edge"] = Edge(plant)
        return edge["edge"]

    rig = make_rig(wrap=wrap)
    rig.edge = edge["edge"]
    rig.steps(3, rate=300.0)
    return rig


def spoilt(counters, name, **changes):
    """Counters in which one operator's first replica says something else."""
    operator = counters.operators[name]
    first = operator.replicas[0]
    fields = {field: getattr(first, field) for field in first.__struct_fields__} | changes
    replicas = {**operator.replicas, 0: ReplicaCounters(**fields)}
    return replace(counters, operators={**counters.operators, name: replace(operator, replicas=replicas)})


def test_a_monitor_that_raises_for_10_s(rig, caplog):
    caplog.set_level(logging.WARNING)
    before = rig.plant.active
    rig.edge.faults["counters"] = ConnectionError("control channel cut")
    during = rig.steps(5, rate=10.0)
    assert rig.plant.active == before
    assert all(step.plan is None for step in during)
    assert rig.loop.state.seen.number == 3
    assert len(caplog.records) == 1
    assert "monitor failed: ConnectionError: control channel cut; the last plan holds" in caplog.messages[0]
    del rig.edge.faults["counters"]
    missed, good = rig.steps(2)
    assert missed.plan.replicas == before
    assert "intervals were missed" in missed.decisions[0].reason
    assert sum(good.plan.replicas.values()) < sum(before.values())
    assert caplog.messages[1].endswith("monitor works again")


def test_numbers_frozen_by_a_cut_channel_neither_shrink_nor_flood(rig):
    """The engine goes on answering with the last counters it has; their age tells."""
    frozen = rig.plant.counters()
    cut_s = rig.clock.now()
    before = rig.plant.active

    def stale(counters):
        age_s = counters.time_s - cut_s
        aged = {name: replace(one, age_s=age_s) for name, one in frozen.operators.items()}
        return replace(frozen, time_s=counters.time_s, operators=aged)

    rig.edge.spoil = stale
    during = rig.steps(5)
    assert [step.plan.replicas for step in during] == [before] * 5
    rig.edge.spoil = lambda counters: counters
    full, good = rig.steps(2)
    assert full.plan.replicas == before
    assert set(full.snapshot.incomplete) >= set(before)
    assert good.plan.replicas == before


@pytest.mark.parametrize(
    "nonsense", [{"busy_s": math.nan}, {"processed": -5}, {"received": {"o0": math.nan}}, {"cpu_s": math.inf}]
)
def test_nan_and_negative_counters(rig, nonsense):
    before = rig.plant.active
    rig.edge.spoil = lambda counters: spoilt(counters, "o1", **nonsense)
    (step,) = rig.steps(1, rate=1.0)
    assert list(step.snapshot.incomplete) == ["o1"]
    assert step.failures == {}
    assert rig.plant.active == before
    rig.edge.spoil = lambda counters: counters
    rig.steps(3)
    assert sum(rig.plant.active.values()) == 5
    assert rig.loop.state.last.snapshot.incomplete == {}


def test_operators_with_good_numbers_are_scaled_out_meanwhile(rig):
    before = rig.plant.active
    rig.edge.spoil = lambda counters: spoilt(counters, "o1", busy_s=math.nan)
    (step,) = rig.steps(1, rate=900.0)
    assert step.plan.replicas["o1"] == before["o1"]
    assert all(step.plan.replicas[name] > before[name] for name in ("o0", "o2", "o3", "o4"))


@pytest.mark.parametrize("seconds", [-5000.0, -1.5, 3.0, 3600.0])
def test_a_clock_that_jumps(rig, seconds):
    before = rig.plant.active
    rig.clock.jump(seconds)
    jumped, *after = rig.steps(3)
    assert jumped.plan.replicas == before
    assert "the clock jumped" in jumped.decisions[0].reason
    assert all(step.snapshot.incomplete == {} for step in after)
    assert rig.plant.active == before


def test_a_clock_that_jumps_while_the_loop_runs(rig):
    looks = []

    def stop():
        looks.append(rig.clock.now())
        if len(looks) == 3:
            rig.clock.jump(-700.0)
        return len(looks) > 8

    rig.loop.run(stop)
    assert looks[-1] - looks[3] == pytest.approx(5 * rig.loop.td_s)
    assert rig.loop.state.last.snapshot.incomplete == {}


def test_an_actuator_that_fails_for_one_operator_leaves_the_others_alone(rig, caplog):
    caplog.set_level(logging.WARNING)
    rig.edge.faults["o2"] = RuntimeError("no such routing")
    (step,) = rig.steps(1, rate=600.0)
    assert step.not_executed == {"o2": "RuntimeError: no such routing"}
    assert rig.plant.active["o1"] == step.plan.replicas["o1"]
    assert rig.plant.active["o2"] < step.plan.replicas["o2"]
    assert rig.records[-1].decisions[2].failure == "RuntimeError: no such routing"
    assert "execute o2 failed: RuntimeError: no such routing" in caplog.messages[0]
    rig.edge.faults.clear()
    (step,) = rig.steps(1)
    assert rig.plant.active == step.plan.replicas


def test_utilisation_that_cannot_be_published_does_not_stop_the_plan(rig):
    rig.edge.faults["publish_utilisation"] = OSError("broken pipe")
    (step,) = rig.steps(1, rate=600.0)
    assert step.not_executed == {"utilisation": "OSError: broken pipe"}
    assert rig.plant.active == step.plan.replicas


def test_a_policy_that_raises(make_rig, caplog):
    class Fragile:
        broken = False

        def plan(self, snapshot, forecast=None):
            if self.broken:
                raise ZeroDivisionError("division by zero")
            return steady.plan(snapshot, forecast)

    steady, policy = Static(3), Fragile()
    rig = make_rig(policy)
    rig.steps(1, rate=10.0)
    policy.broken = True
    (step,) = rig.steps(1)
    assert (step.plan, step.decisions) == (None, ())
    assert step.failures == {"plan": "ZeroDivisionError: division by zero"}
    assert set(rig.plant.active.values()) == {3}
    assert rig.records[-1].interval.note == "plan: ZeroDivisionError: division by zero"
    policy.broken = False
    (step,) = rig.steps(1)
    assert step.failures == {}


def test_records_that_cannot_be_handed_over(make_rig, caplog):
    class Full:
        def record(self, record):
            raise OSError("no space left on device")

    rig = make_rig(recorder=Full())
    steps = rig.steps(3, rate=300.0)
    assert all(step.failures == {"record": "OSError: no space left on device"} for step in steps)
    assert rig.plant.active == steps[-1].plan.replicas
    assert len([one for one in caplog.messages if "no space left" in one]) == 1


def test_counters_that_are_old_on_the_loops_clock(rig):
    before = rig.plant.active
    rig.edge.spoil = lambda counters: replace(counters, time_s=counters.time_s - 3.0)
    (_, step) = rig.steps(2, rate=1.0)
    assert step.plan.replicas == before
    assert step.snapshot.incomplete["in"] == "counters are 3 s old; stale after 1 s"
