"""Tables: the same way through a topology as its functions take, and counts drawn with the right means."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from penstock.apps import APPS, AppOptions, PayloadOptions
from penstock.apps.waiting import TimeByValue, Waiting
from penstock.errors import InputError
from penstock.grouping import Fields, Receivers
from penstock.simulator.kernels.arrays import ALIKE, ONE_OF, TABLE, WHOLE
from penstock.simulator.plant.model import UNKNOWN_VALUES, Facts, build_model, giving
from penstock.simulator.plant.plant import SimulatedPlant
from penstock.simulator.prepare import no_sink
from penstock.simulator.scenario import Plant
from penstock.topology import Stream, To, Topology

from .cases import Given
from .test_plant import passed

EVENTS = 200


def played(topology: Topology, facts: Facts, count: int = EVENTS) -> SimulatedPlant:
    """All events through the topology, one by one in its own time."""
    times = np.arange(count) * 100.0
    plant = SimulatedPlant(build_model(topology, facts), {name: Given(times) for name in topology.sources}, Plant())
    for name, one in topology.operators.items():
        plant.set_replicas(name, range(one.pool))
    plant.advance(100.0 * (count + 1))
    assert plant.out == plant.events == count * len(topology.sources)
    return plant


def by_hand(topology: Topology, payloads: list) -> tuple[Counter[str], Counter[str]]:
    """Events received and time spent by operator, from calling the functions."""
    received, spent_s = Counter(), Counter()
    waiting = {name: [] for name in topology.operators}
    for source in topology.sources:
        for reader in topology.receivers(Stream(source)):
            waiting[reader] += payloads
    for name in topology.in_order():
        for event in waiting[name]:
            run = topology[name].run
            received[name] += 1
            time_ms = run.service_ms(event) if callable(run.service_ms) else run.service_ms
            spent_s[name] += time_ms / 1000
            output = run.function(event) if isinstance(run, Waiting) else event
            outputs = [] if output is None else output if isinstance(output, list | tuple) else [output]
            for one in outputs:
                sent = one if isinstance(one, To) else To("out", one)
                for reader in topology.receivers(Stream(name, sent.stream)):
                    waiting[reader].append(sent.event)
    return received, spent_s


@pytest.mark.parametrize("app", APPS)
def test_events_of_an_application_take_the_way_that_its_functions_say(app):
    topology = APPS[app].build(AppOptions(sink=no_sink))
    payloads = APPS[app].payloads(PayloadOptions(count=EVENTS))[:EVENTS]
    facts = Facts(payloads=dict.fromkeys(topology.sources, payloads), run_functions=True)
    counted = played(topology, facts, len(payloads)).counters().operators
    received, spent_s = by_hand(topology, payloads)
    assert {name: sum(one.total.received.values()) for name, one in counted.items()} == received
    assert {name: one.total.busy_s for name, one in counted.items()} == pytest.approx(spent_s)


def drawn_plant(shares: dict[str, float], count: int = 20_000) -> SimulatedPlant:
    """One operator that gives to streams at random, each read by an operator of its own."""
    topology = Topology("drawn")
    first = topology.operator(
        "first",
        passed,
        inputs=topology.source("in"),
        outputs=tuple(shares),
        selectivity=shares,
        execution_time_ms=1.0,
    )
    for name in shares:
        topology.operator(f"{name}-reader", passed, inputs=first[name], execution_time_ms=1.0)
    return played(topology, Facts(seed=4), count)


@pytest.mark.parametrize(
    ("shares", "rule"),
    [
        ({"a": 0.4}, ONE_OF),
        ({"a": 0.37, "b": 0.5}, ONE_OF),
        ({"a": 0.1, "b": 0.9}, ONE_OF),
        ({"a": 0.82, "b": 0.82}, ALIKE),
        ({"a": 1.36, "b": 0.25}, ALIKE),
        ({"a": 1.0, "b": 0.5}, ALIKE),
        ({"a": 3.0, "b": 0.0}, WHOLE),
    ],
)
def test_counts_have_the_declared_means(shares, rule):
    assert giving(list(shares.values())) == rule
    sent = drawn_plant(shares).counters().operators["first"].total.emitted
    exact = 1e-12 if rule == WHOLE else 0.03
    assert {name: sent[name] / 20_000 for name in shares} == pytest.approx(shares, rel=exact)


def test_one_of_gives_an_event_to_one_stream_at_most():
    plant = drawn_plant({"a": 0.4, "b": 0.6})
    sent = plant.counters().operators["first"].total.emitted
    assert sum(sent.values()) == pytest.approx(20_000, abs=1)


def test_alike_gives_to_both_or_none():
    """Two branches that filter alike let the same events through: those come out once, not twice as often."""
    plant = drawn_plant({"a": 0.82, "b": 0.82})
    sent = plant.counters().operators["first"].total.emitted
    assert sent["a"] == sent["b"]


def test_a_selectivity_that_is_whole_but_for_rounding_is_whole():
    """0.7 + 0.2 + 0.1 is a hair below 1, and once gave nothing at all."""
    share = 0.7 + 0.2 + 0.1
    assert share < 1
    assert drawn_plant({"a": share}, 100).counters().operators["first"].total.emitted == {"a": 100}


def one(run=passed, **more) -> Topology:
    topology = Topology("one")
    topology.operator("work", run, inputs=topology.source("in"), **more)
    return topology


def service_s(topology: Topology, **facts) -> list[float]:
    return build_model(topology, Facts(**facts)).operators["work"].work.service.tolist()


def test_times_are_measured_or_declared():
    topology = one(execution_time_ms=20.0)
    assert service_s(topology) == [0.02]
    assert service_s(topology, times_s={"work": 0.03}) == [0.03]
    assert service_s(topology, overhead_s={"work": 0.001}) == pytest.approx([0.021])


def test_times_by_value_keep_their_proportions():
    run = Waiting(passed, TimeByValue("value", (10.0, 30.0)))
    payloads = {"in": [{"value": 0}, {"value": 1}, {"value": 1}]}
    topology = one(run, execution_time_ms=20.0)
    assert service_s(topology, payloads=payloads) == pytest.approx([0.01, 0.03, 0.03])
    assert service_s(topology, payloads=payloads, times_s={"work": 0.07}) == pytest.approx([0.03, 0.09, 0.09])
    assert service_s(topology) == [0.02]


def test_a_time_must_be_known():
    message = r"operator 'work' \(.*\): the simulator must know how long an event takes; declare execution_time_ms"
    with pytest.raises(InputError, match=message):
        build_model(one())


def by_replica(plant: SimulatedPlant, name: str = "work") -> list[int]:
    return [one.processed for one in plant.counters().operators[name].replicas.values()]


def test_keys_go_to_the_replicas_that_fields_chooses():
    payloads = [
        {"word": word} for word in ("the", "dam", "holds", "the", "water", "and", "water", "holds", "the", "dam")
    ]
    plant = played(one(key="word", execution_time_ms=1.0), Facts(payloads={"in": payloads}), len(payloads))
    grouping = Fields("word")
    grouping.update(Receivers(active=(0, 1, 2, 3)))
    chosen = Counter(grouping.assign(payloads))
    assert by_replica(plant) == [chosen[replica] for replica in range(4)]


def test_a_single_key_goes_where_fields_sends_it():
    payloads = [{"word": "water"}]
    plant = played(one(key="word", execution_time_ms=1.0), Facts(payloads={"in": payloads}), 5)
    grouping = Fields("word")
    grouping.update(Receivers(active=(0, 1, 2, 3)))
    assert by_replica(plant)[grouping.assign(payloads)[0]] == 5


def test_unknown_keys_are_spread_over_all_replicas():
    plant = played(one(key="word", execution_time_ms=1.0), Facts(), UNKNOWN_VALUES)
    assert by_replica(plant) == pytest.approx([UNKNOWN_VALUES / 4] * 4, rel=0.25)


def test_functions_are_run_only_where_that_is_wanted():
    topology = one(Waiting(lambda event: [event, event], 1.0), selectivity=1.0, execution_time_ms=1.0)
    topology.operator("next", passed, inputs="work", execution_time_ms=1.0)
    payloads = {"in": [1, 2]}
    asked = build_model(topology, Facts(payloads=payloads, run_functions=True)).operators["work"].work
    assert (asked.rules[0], asked.counts.tolist()) == (TABLE, [[2, 2]])
    assert build_model(topology, Facts(payloads=payloads)).operators["work"].work.rules[0] == WHOLE


def test_a_filter_that_lets_nothing_through():
    topology = one(Waiting(lambda event: None, 1.0), execution_time_ms=1.0)
    topology.operator("next", passed, inputs="work", execution_time_ms=1.0)
    plant = played(topology, Facts(payloads={"in": [1, 2]}, run_functions=True), 10)
    assert plant.counters().operators["next"].total.received == {"work": 0}


@pytest.mark.parametrize(
    ("selectivity", "readers", "splits"), [(1.0, 1, False), (0.5, 1, False), (0.5, 2, True), (1.5, 1, True)]
)
def test_source_events_are_followed_only_where_one_becomes_several(selectivity, readers, splits):
    topology = one(selectivity=selectivity, execution_time_ms=1.0)
    for number in range(readers):
        topology.operator(f"reader{number}", passed, inputs="work", execution_time_ms=1.0)
    assert build_model(topology).splits == splits


def test_a_source_with_two_readers_splits():
    topology = one(execution_time_ms=1.0)
    topology.operator("also", passed, inputs="in", execution_time_ms=1.0)
    assert build_model(topology).splits


@pytest.mark.parametrize(
    "facts", [Facts(), Facts(payloads={"events": [1, 2]}, run_functions=True)], ids=["drawn", "run"]
)
def test_simulated_events_do_not_fail(facts: Facts) -> None:
    """Dead letters are a stream like others, on which nothing comes."""
    topology, run = Topology("letters", pool=1), Waiting(passed, 1.0)
    events = topology.source("events", on_error="dead_letter")
    parse = topology.operator("parse", run, inputs=events, on_error="dead_letter", execution_time_ms=1)
    topology.operator("store", run, inputs=parse, on_error="dead_letter", execution_time_ms=1)
    topology.dead_letters(run, execution_time_ms=1)
    counters = played(topology, facts).counters()
    assert {name: one.total.processed for name, one in counters.operators.items()} == {
        "parse": EVENTS,
        "store": EVENTS,
        "dead_letters": 0,
    }
