"""One scenario of the simulator's benchmark in this process: a rate, or the memory of a long input; prints JSON.

    python benchmarks/simulator_scenarios.py rate simulator shuffle 2000000
    python benchmarks/simulator_scenarios.py memory 10000000

A chain of four operators, pool 8, 5 active each, Poisson arrivals, 80 % load. The SimPy model is written for speed: a
process for each replica, a `Store` for its queue, and nothing counted but latency.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Generator
from itertools import cycle
from typing import Any

import numpy as np
import simpy

from penstock.policy.static import Static
from penstock.simulator import Scenario, simulate
from penstock.topology import Topology
from penstock.workload import constant

OPERATORS, POOL, ACTIVE = 4, 8, 5
SERVICE_S, HOP_S, TD_S = 0.0002, 0.0025, 5.0
RATE = 0.8 * ACTIVE / SERVICE_S
WARM_UP = 20_000

Figures = dict[str, float]
Send = Callable[[float], None]


def passed(event: Any) -> Any:
    return event


def with_simulator(grouping: str, events: int, seed: int) -> Figures:
    """Through the whole simulator, control loop included."""
    topology = Topology("chain", pool=POOL)
    last = topology.source("in").name
    for number in range(OPERATORS):
        name = f"o{number}"
        topology.operator(name, passed, inputs=last, grouping=grouping, execution_time_ms=1000 * SERVICE_S)
        last = name
    scenario = Scenario(topology, constant(RATE, events / RATE, step_s=60.0), arrivals="poisson", seed=seed)
    started = time.process_time()
    result = simulate(scenario.changed(td_s=TD_S, hop_s=HOP_S), Static(ACTIVE))
    return {
        "events": result.events,
        "cpu_s": time.process_time() - started,
        "mean_ms": result.latency_ms["mean"],
    }


def with_simpy(grouping: str, events: int, seed: int) -> Figures:
    """The same as processes."""
    env, total = simpy.Environment(), [0, 0.0]

    def leave(born_s: float) -> None:
        total[0] += 1
        total[1] += env.now - born_s

    receivers: list[simpy.Store] = []
    for _ in range(OPERATORS):
        inboxes = [simpy.Store(env) for _ in range(ACTIVE)]
        for place, inbox in enumerate(inboxes):
            env.process(replica(env, inbox, sender(env, grouping, receivers, place) if receivers else leave))
        receivers = inboxes
    times = np.cumsum(np.random.default_rng(seed).exponential(1 / RATE, events))
    env.process(source(env, times.tolist(), sender(env, grouping, receivers, 0)))
    started = time.process_time()
    env.run()
    return {"events": total[0], "cpu_s": time.process_time() - started, "mean_ms": 1000 * total[1] / total[0]}


def source(env: simpy.Environment, times: list[float], send: Send) -> Generator[simpy.Event, None, None]:
    for time_s in times:
        yield env.timeout(time_s - env.now)
        send(time_s)


def replica(env: simpy.Environment, inbox: simpy.Store, send: Send) -> Generator[simpy.Event, Any, None]:
    while True:
        born_s = yield inbox.get()
        yield env.timeout(SERVICE_S)
        send(born_s)


def sender(env: simpy.Environment, grouping: str, inboxes: list[simpy.Store], place: int) -> Send:
    """Chooses one of the inboxes, and puts the event there a hop later."""
    choose = in_turn(place) if grouping == "shuffle" else least_used(env, place)

    def send(born_s: float) -> None:
        inbox = inboxes[choose()]

        def arrive(_: simpy.Event) -> None:
            inbox.put(born_s)

        env.timeout(HOP_S).callbacks.append(arrive)

    return send


def in_turn(place: int) -> Callable[[], int]:
    turns = cycle([(place + step) % ACTIVE for step in range(ACTIVE)])
    return lambda: next(turns)


def least_used(env: simpy.Environment, place: int) -> Callable[[], int]:
    """Load balancing that starts again from nothing every interval, as where nothing waits."""
    used, step, began = [0.0] * ACTIVE, ACTIVE * SERVICE_S / TD_S, [0.0]
    order = [(place + turn) % ACTIVE for turn in range(ACTIVE)]

    def choose() -> int:
        if env.now - began[0] >= TD_S:
            began[0] = env.now
            used[:] = [0.0] * ACTIVE
        best = min(order, key=used.__getitem__)
        used[best] += step
        return best

    return choose


SYSTEMS = {"simulator": with_simulator, "simpy": with_simpy}


def rate(system: str, grouping: str, events: int) -> Figures:
    """Event-hops per second of CPU time, once everything is compiled."""
    play = SYSTEMS[system]
    play(grouping, WARM_UP, 0)
    figures = play(grouping, events, 1)
    return figures | {"hops_per_s": OPERATORS * figures["events"] / figures["cpu_s"]}


def memory(events: int) -> Figures:
    """The most memory that this process ever had."""
    figures = with_simulator("shuffle", events, 1)
    return figures | {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main() -> None:
    kind, *given = sys.argv[1:]
    figures = rate(given[0], given[1], int(given[2])) if kind == "rate" else memory(int(given[0]))
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
