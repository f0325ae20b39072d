"""Groupings side by side: how fast they choose, and how long events take under them.

    python benchmarks/grouping.py --seeds 5 --json grouping.json
    python benchmarks/grouping.py --live          # on Spark too, some minutes more

Speed is per second of one core's time, in bundles of 1000 events and one by one, for 8 replicas. Time is the mean from
entering to leaving, in the simulator: the sensitive application, whose events take 1 to 64 ms by their value, on 8
replicas of which 70 % and 90 % are in use. `least_work` knows the true times, which no sender can. The online shuffle
has to learn first: figures are of the time after that, in parentheses of the time until then. Live, two groupings run
one after the other at the same rate, the online shuffle with smaller windows so that it learns sooner.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from penstock.apps import AppOptions, PayloadOptions, find_app
from penstock.apps.waiting import Waiting
from penstock.grouping import Grouping, OnlineShuffle, OnlineShuffleOptions, Receivers, Sender, make_grouping
from penstock.grouping.online_shuffle import Sketching
from penstock.simulator import Scenario, simulate
from penstock.simulator.prepare import no_sink
from penstock.workload import constant

REPLICAS = 8
BUNDLE = 1000
FAST = ("shuffle", "load_balancing", "online_shuffle")
WISE = ("shuffle", "load_balancing", "online_shuffle", "online_shuffle:epsilon=0.01", "least_work")
ZIPF, UNIFORM = 1.5, 0.0
LEARNING_S, DURATION_S = 200.0, 600.0
PAYLOADS = 20_000

LIVE_REPLICAS, LIVE_LOAD, LIVE_SEED = 6, 0.87, 2
LIVE = ("shuffle", "online_shuffle:window=256")
LIVE_LEARNING_S, LIVE_S = 90.0, 90.0

Figures = dict[str, float]


# ── how fast ────────────────────────────────────────────────────────────────────────────────────────────────────────


def prepared(name: str, events: list[Any]) -> Grouping:
    """A grouping in the state that it spends its life in."""
    grouping = make_grouping(name, Sender(), "value")
    grouping.update(Receivers(tuple(range(REPLICAS)), {}, 1e-9))
    if isinstance(grouping, OnlineShuffle):
        sketching, sketch = Sketching(1, OnlineShuffleOptions(window=BUNDLE)), None
        while sketch is None:
            sketch, _ = sketching.executed(0, grouping.hashes(events), np.full(len(events), 0.01))
        for replica in range(REPLICAS):
            grouping.take_sketch(replica, sketch)
        grouping.assign(events)
        for request in grouping.requests():
            grouping.take_reply(request.replica, request.epoch, 0.0)
    return grouping


def per_second(work: Callable[[], object], events: int, rounds: int) -> float:
    """Events a second of this process's own time; the median of the better half, as others use the machine too."""
    rates = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        rates.append(events / (time.process_time() - start))
    return median(sorted(rates)[rounds // 2 :])


def speed(name: str, rounds: int = 20) -> Figures:
    events = [{"number": n, "value": n % 64} for n in range(BUNDLE)]
    grouping = prepared(name, events)
    single = [(event,) for event in events]

    def in_bundles() -> None:
        for _ in range(50):
            grouping.assign(events)

    def one_by_one() -> None:
        for _ in range(5):
            for event in single:
                grouping.assign(event)

    return {
        "bundles": per_second(in_bundles, 50 * BUNDLE, rounds),
        "single": per_second(one_by_one, 5 * BUNDLE, rounds),
    }


def tell_speed(console: Console) -> dict[str, Figures]:
    found = {name: speed(name) for name in FAST}
    table = Table(title="million events a second of one core, key included")
    for column in ("grouping", "in bundles of 1000", "one by one"):
        table.add_column(column, justify="left" if column == "grouping" else "right")
    for name, one in found.items():
        table.add_row(name, f"{one['bundles'] / 1e6:,.1f}", f"{one['single'] / 1e6:.2f}")
    console.print(table)
    return found


# ── how well, simulated ─────────────────────────────────────────────────────────────────────────────────────────────


def mean_time_s(app: AppOptions, payloads: PayloadOptions) -> float:
    """The mean time of the bolt over the events that will come: it depends on which values are frequent."""
    run: Any = find_app("sensitive").build(app)["bolt"].run
    assert isinstance(run, Waiting)
    assert callable(run.service_ms)
    return mean(run.service_ms(event) for event in find_app("sensitive").payloads(payloads)) / 1000


def scenario(grouping: str, skew: float, load: float, arrivals: str, seed: int) -> Scenario:
    app = AppOptions(sink=no_sink, grouping=grouping, pool=REPLICAS, seed=seed)
    payloads = PayloadOptions(skew=skew, seed=seed, count=PAYLOADS)
    rate = load * REPLICAS / mean_time_s(app, payloads)
    return Scenario(
        "sensitive",
        constant(rate, DURATION_S),
        grouping=grouping,
        pool=REPLICAS,
        replicas={"bolt": REPLICAS, "end": REPLICAS},
        arrivals=arrivals,
        events=tuple(find_app("sensitive").payloads(payloads)),
        seed=seed,
    )


def completion_ms(grouping: str, *case: Any) -> tuple[float, float]:
    """Mean time of an event after the learning phase, and in it."""
    history = simulate(scenario(grouping, *case), f"static:{REPLICAS}").history
    times, left = np.array(history.times_s), np.array(history.left)
    waited_ms = 1000 * np.nan_to_num(np.array(history.latency_s)) * left
    learning, steady = times <= LEARNING_S, (times > LEARNING_S) & (times <= DURATION_S)
    return waited_ms[steady].sum() / left[steady].sum(), waited_ms[learning].sum() / left[learning].sum()


def tell_completion(console: Console, seeds: int) -> list[dict[str, Any]]:
    cases = list(itertools.product((ZIPF, UNIFORM), (0.7, 0.9), ("poisson", "even")))
    table = Table(title=f"mean time of an event, ms, {seeds} seeds; least and most of the ratios")
    for column in ("values", "load", "arrivals", "grouping", "ms", "(learning)", "shuffle ÷ this", "this ÷ least_work"):
        table.add_column(column, justify="left" if column in ("values", "arrivals", "grouping") else "right")
    results = []
    for skew, load, arrivals in track(cases, description="simulating", console=Console(stderr=True)):
        found = {name: [completion_ms(name, skew, load, arrivals, seed) for seed in range(seeds)] for name in WISE}
        steady = {name: [one for one, _ in pairs] for name, pairs in found.items()}
        for name, pairs in found.items():
            gain = ratios(steady["shuffle"], steady[name])
            distance = ratios(steady[name], steady["least_work"])
            values = "Zipf 1.5" if skew else "uniform"
            learning_ms = mean(one for _, one in pairs)
            shown = f"{mean(steady[name]):.1f}", f"({learning_ms:.1f})", told(gain), told(distance)
            table.add_row(values, f"{load:.0%}", arrivals, name, *shown, end_section=name == WISE[-1])
            results.append(
                {"values": values, "load": load, "arrivals": arrivals, "grouping": name, "ms": steady[name]}
                | {"learning_ms": learning_ms, "to_shuffle": gain, "to_least_work": distance}
            )
    console.print(table)
    return results


def ratios(over: Sequence[float], under: Sequence[float]) -> list[float]:
    return [one / other for one, other in zip(over, under, strict=True)]


def told(values: list[float]) -> str:
    return f"{mean(values):.2f} ({min(values):.2f}–{max(values):.2f})"


# ── how well, on Spark ──────────────────────────────────────────────────────────────────────────────────────────────


def live(grouping: str, rate: float, app: AppOptions, payloads: PayloadOptions) -> Figures:
    """Latency on Spark after the learning phase."""
    from penstock.engine.options import RunOptions
    from penstock.engine.run import Run
    from penstock.sources import TraceSource

    source = TraceSource(constant(rate, LIVE_LEARNING_S + LIVE_S + 60), find_app("sensitive").payloads(payloads))
    topology = find_app("sensitive").build(app)
    topology.replaced("bolt", grouping=grouping)
    options = RunOptions(checkpoint_every_s=600)
    with Run(topology, source, replicas={"bolt": LIVE_REPLICAS, "end": 2}, options=options) as run:
        time.sleep(LIVE_LEARNING_S)
        before = run.fresh_counters()
        time.sleep(LIVE_S)
        after, states = run.fresh_counters(), run.online_states()
        run.stop_sources()
    latency, bolts = after.latency.since(before.latency), after.operators["bolt"].replicas
    busy = [(bolts[n].busy_s - before.operators["bolt"].replicas[n].busy_s) / LIVE_S for n in range(LIVE_REPLICAS)]
    print(f"{grouping}: states {states}; busy shares {', '.join(f'{share:.2f}' for share in busy)}")
    return {
        "mean_ms": latency.mean_ms,
        "p50_ms": latency.percentile_ms(0.5),
        "p99_ms": latency.percentile_ms(0.99),
        "events": latency.count,
        "busy": mean(busy),
    }


def tell_live(console: Console) -> dict[str, Figures]:
    app = AppOptions(sink=no_sink, pools={"bolt": LIVE_REPLICAS, "end": 2}, seed=LIVE_SEED)
    payloads = PayloadOptions(skew=ZIPF, seed=LIVE_SEED, count=PAYLOADS)
    rate = LIVE_LOAD * LIVE_REPLICAS / mean_time_s(app, payloads)
    found = {name: live(name, rate, app, payloads) for name in LIVE}
    table = Table(title=f"on Spark: Zipf 1.5, {rate:.0f} events/s on {LIVE_REPLICAS} replicas, {LIVE_S:.0f} s each")
    for column in ("grouping", "mean ms", "p50", "p99", "busy", "shuffle ÷ this"):
        table.add_column(column, justify="left" if column == "grouping" else "right")
    for name, one in found.items():
        times = [f"{one[key]:.1f}" for key in ("mean_ms", "p50_ms", "p99_ms")]
        table.add_row(name, *times, f"{one['busy']:.2f}", f"{found['shuffle']['mean_ms'] / one['mean_ms']:.2f}")
    console.print(table)
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--live", action="store_true", help="on Spark, too")
    arguments.add_argument("--only-live", action="store_true", help="on Spark alone")
    arguments.add_argument("--json", type=Path, help="also write the result here")
    options = arguments.parse_args()
    console, result = Console(width=max(130, Console().width)), dict[str, Any]()
    if not options.only_live:
        result["speed"] = tell_speed(console)
        result["completion"] = tell_completion(console, options.seeds)
    if options.live or options.only_live:
        result["live"] = tell_live(console)
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
