"""Groupings as a user writes them: names, options, and where they end up."""

from __future__ import annotations

import subprocess
import sys

import pytest

from penstock.errors import InputError
from penstock.grouping import GROUPINGS, OnlineShuffle, OnlineShuffleOptions, Receivers, Sender, make_grouping
from penstock.grouping.names import SIMULATED_ONLY
from penstock.grouping.spec import parse_grouping
from penstock.simulator.plant.plant import SimulatedPlant
from penstock.simulator.prepare import prepare
from penstock.simulator.scenario import Scenario
from penstock.topology import Topology
from penstock.workload import constant


def same(event: object) -> object:
    return event


@pytest.mark.parametrize("name", [name for name in (*GROUPINGS, *SIMULATED_ONLY) if name != "online_shuffle"])
def test_a_plain_name_has_no_options(name: str) -> None:
    assert parse_grouping(name) == (name, None)


def test_the_online_shuffle_has_defaults_and_options() -> None:
    assert parse_grouping("online_shuffle") == ("online_shuffle", OnlineShuffleOptions())
    wanted = OnlineShuffleOptions(window=128, mu=0.1, epsilon=0.01)
    assert parse_grouping("online_shuffle:window=128,mu=0.1,epsilon=0.01") == ("online_shuffle", wanted)


def test_an_unknown_name_is_left_to_whoever_looks_it_up() -> None:
    assert parse_grouping("random:window=8") == ("random", None)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("online_shuffle:widow=8", "no such option 'widow'"),
        ("online_shuffle:window", "window must be whole and at least 1; got True"),
        ("online_shuffle:window=wide", "window must be whole and at least 1; got 'wide'"),
        ("online_shuffle:mu=-1", "mu must be a number from 0 on; got -1"),
        ("online_shuffle:mu", "mu must be a number from 0 on; got True"),
        ("online_shuffle:epsilon=small", "epsilon must be above 0 and below 1; got 'small'"),
        ("load_balancing:step=1", "no such option 'step'; known: none"),
    ],
)
def test_wrong_options_are_named(text: str, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        parse_grouping(text)


def test_an_operator_keeps_name_and_options_apart() -> None:
    topology = Topology("app")
    events = topology.source("events")
    one = topology.operator("one", same, inputs=events, grouping="online_shuffle:window=8", cost_by="size")
    assert (one.grouping, one.grouping_options) == ("online_shuffle", OnlineShuffleOptions(window=8))
    topology.replaced("one", pool=7)  # something else
    assert topology["one"].grouping_options == OnlineShuffleOptions(window=8)
    topology.replaced("one", grouping="shuffle")
    assert (topology["one"].grouping, topology["one"].grouping_options) == ("shuffle", None)
    topology.replaced("one", grouping="online_shuffle:mu=0.5")
    assert topology["one"].grouping_options == OnlineShuffleOptions(mu=0.5)


# ── what is made of them ────────────────────────────────────────────────────────────────────────────────────────────


def hashes_of(key: object, events: list[object]) -> list[int]:
    shuffle = make_grouping("online_shuffle", Sender(), key)  # type: ignore[arg-type]
    assert isinstance(shuffle, OnlineShuffle)
    return shuffle.hashes(events).tolist()


def test_without_a_key_all_events_are_alike() -> None:
    assert len(set(hashes_of(None, [{"size": 1}, {"size": 2}, "other", object()]))) == 1


def test_a_key_is_a_field_or_a_function_of_the_event() -> None:
    events: list[object] = [{"size": 1, "n": 1}, {"size": 1, "n": 2}, {"size": 2, "n": 3}]
    for key in ("size", lambda event: event["size"]):
        one, same, other = hashes_of(key, events)
        assert one == same != other


def test_a_sender_that_gets_another_number_goes_on_as_before() -> None:
    """Only where the next new set of replicas is begun depends on it."""
    shuffle = make_grouping("online_shuffle", Sender(0, 2))
    assert isinstance(shuffle, OnlineShuffle)
    shuffle.update(Receivers(active=(0, 1, 2)))
    assert shuffle.assign("ab") == [0, 1]
    shuffle.reseat(Sender(1, 3))
    assert shuffle.assign("ab") == [2, 0]
    shuffle.update(Receivers(active=(0, 1, 2, 3)))
    assert shuffle.assign("ab") == [1, 2]


def test_the_simulator_goes_by_the_same_options() -> None:
    topology = Topology("app", pool=2)
    topology.operator(
        "one", same, inputs=topology.source("events"), grouping="online_shuffle:window=8", execution_time_ms=1.0
    )
    prepared = prepare(Scenario(topology, constant(10.0, 1.0)))
    online = SimulatedPlant(prepared.model, prepared.arrivals(), prepared.scenario.plant).operators["one"].online
    assert online is not None
    assert online._sketchers.status["window"].tolist() == [8, 8]


# ── compiled beforehand ─────────────────────────────────────────────────────────────────────────────────────────────

COMPILED_BEFOREHAND = """
import msgspec
from penstock.engine.protocol.bundle import Keys
from penstock.engine.online.mailbox import Mailbox
from penstock.engine.protocol.messages import Report
from penstock.engine.online.receiver import OnlineReceiver
from penstock.grouping import Receivers, Sender, kernels, make_grouping, warm_up
from penstock.grouping.online_shuffle import OnlineShuffleOptions, Sketch, scheduler, sketchers
from penstock.metrics.counters import ReplicaCounters

def compiled():
    modules = (kernels, scheduler, sketchers)
    return sum(len(getattr(one, "signatures", ())) for module in modules for one in vars(module).values())

warm_up()
before = compiled()
options, mail = OnlineShuffleOptions(window=2, mu=9.0), Mailbox()
shuffle = make_grouping("online_shuffle", Sender(1, 2), "size", options)
online = OnlineReceiver([("source", 0)], options, mail)
shuffle.update(Receivers((1, 0)))
for count in (1, 8):
    events = [{"size": n} for n in range(count)]
    hashes = shuffle.hashes(events)
    shuffle.assign(events), shuffle.assign_hashes(hashes)
    online.expect("source", Keys(0, hashes.astype("<u4").tobytes(), shuffle.requests()), count)
    online.executed([0.25] * count)
sketch = mail.collect(Report(0, 0, "op", 0, ReplicaCounters())).sketch
for one in (0, 1):
    shuffle.take_sketch(one, msgspec.msgpack.decode(msgspec.msgpack.encode(sketch), type=Sketch))
shuffle.assign(events)
for request in shuffle.requests():
    shuffle.take_reply(request.replica, request.epoch, 0.125)
shuffle.assign(events)
assert shuffle.state == "RUN", shuffle.state
balancing = make_grouping("load_balancing", Sender(1, 2))
balancing.update(Receivers((1, 0), {1: 0.5}, 0.125))
balancing.assign(events), balancing.assign(events[:1])
assert before == compiled() > 0, (before, compiled())
"""


def test_no_event_has_to_wait_for_a_compiler() -> None:
    """Workers are forked after `warm_up`; another type of array in real use would cost each of them seconds."""
    done = subprocess.run([sys.executable, "-c", COMPILED_BEFOREHAND], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
