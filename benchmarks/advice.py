"""What `penstock advise` says of another way to keep executors, beside a run that keeps them so.

    python benchmarks/advice.py --json advice.json
    python benchmarks/advice.py --short

Three loads, each a trace of its own that is played to a query of its own, or to both: a Python function that waits, and
a count by window. Each is run on as many executors as its peak needs, all the time, and leaves an event log. From that
log alone it is foretold what another way would come to: Penstock attached, or a constant number of executors. Then it
is run so, live, and counted by row. Every run is a process of its own.

Prints executor-seconds and the share of late rows, foretold and true, and whether the first are within 15 % and the
second within 0.5 points. The minute of warm-up are in neither.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

LOADS = {
    "score": ("dns_wrccdc_2018_1s.csv", ("score",)),
    "counts": ("twitter_stream_sample_2021_burst_1s.csv", ("counts",)),
    "both": ("nyc_taxi_passengers_1800s.csv", ("score", "counts")),
}
SLOTS_AT_MEAN = 3.0  # what each load takes of them
WITHIN, WITHIN_POINTS = 0.15, 0.5
POLICY = "psps"
LOGGED = "peak"  # the way of which the log is


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--loads", default=",".join(LOADS))
    arguments.add_argument("--ways", default="attached,mean", help="that are foretold: attached, mean, or numbers")
    arguments.add_argument("--duration", type=float, default=300.0, help="of each trace as it is played, seconds")
    arguments.add_argument("--most", type=int, default=5, help="executors, of two slots each")
    arguments.add_argument("--target-ms", type=float, default=15_000.0)
    arguments.add_argument("--join-s", type=float, default=10.0, help="that an executor takes to come, as foretold")
    arguments.add_argument("--short", action="store_true", help="one load, two minutes, one way")
    arguments.add_argument("--json", type=Path, help="also write the result here")
    arguments.add_argument("--one", nargs=3, help=argparse.SUPPRESS)  # load, way and folder of this process
    options = arguments.parse_args()
    if options.short:
        options.loads, options.ways, options.duration = options.loads.split(",")[0], options.ways.split(",")[0], 120.0
    if options.one:
        load, way, folder = options.one
        print(json.dumps(played(load, way, Path(folder), options)))
        return
    found = {load: told_and_true(load, options) for load in options.loads.split(",")}
    text = json.dumps({"duration_s": options.duration, "join_s": options.join_s, "loads": found}, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


def told_and_true(load: str, options: argparse.Namespace) -> dict[str, Any]:
    """A log, what it foretells, and what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        logged = alone(load, LOGGED, Path(folder))
        found: dict[str, Any] = {"logged": logged, "ways": {}}
        for way in options.ways.split(","):
            told = foretold(Path(folder), logged, scene(load, Path(folder), options), way, options.join_s)
            true = alone(load, way, Path(folder) / way)
            found["ways"][way] = compared(told, true)
    return found


def alone(load: str, way: str, folder: Path) -> dict[str, Any]:
    """A run in a process of its own, which leaves its log in a folder."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, __file__, *sys.argv[1:], "--one", load, way, str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(load, way, json.dumps(found), file=sys.stderr)
    return found


def scene(load: str, folder: Path, options: argparse.Namespace) -> Any:
    """What is played; the rate is such that every load takes as many slots at its mean."""
    from attach_scenarios import ROW_S, Scene, load_of

    trace, queries = LOADS[load]
    rate = SLOTS_AT_MEAN / sum(ROW_S[name] for name in queries)
    return Scene(
        trace=load_of(trace, rate, options.duration),
        most=options.most,
        target_s=options.target_ms / 1000,
        kept={"policy": POLICY, "forecaster": None},
        queries=queries,
        logs=folder,
    )


def played(load: str, way: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """A load, live."""
    from attach_scenarios import Stage

    with tempfile.TemporaryDirectory() as work:
        return Stage(Path(work), scene(load, folder, options)).play(way)


def foretold(folder: Path, logged: dict[str, Any], played: Any, way: str, join_s: float) -> dict[str, Any]:
    """What the log says of another way, from the end of the warm-up on."""
    from penstock.advise.event_log import read_log
    from penstock.advise.replay import Rules, logged_load, replay
    from penstock.attached.model.demand import Promise
    from penstock.attached.model.need import Bounds

    application = read_log(next(one for one in folder.iterdir() if one.name.startswith(("app-", "eventlog_"))))
    for query in application.queries.values():
        query.batches = [one for one in query.batches if one.planned_s >= logged["counted_from_s"]]
    load = logged_load(application, Promise(played.target_s))
    rules = Rules(promise=Promise(played.target_s), bounds=Bounds(1, played.most), join_s=join_s)
    found = asdict(replay(load, POLICY if way == "attached" else numbered(way, played), rules))
    costs = {one.name: asdict(one.cost) for one in load.queries}
    return {**found, "late_ratio": found["late"] / max(1, found["rows"]), "costs": costs}


def numbered(way: str, played: Any) -> int:
    """The executors of a constant number of them."""
    return int(way) if way.isdecimal() else int(played.first(way))


def compared(told: dict[str, Any], true: dict[str, Any]) -> dict[str, Any]:
    """What was foretold beside what is true, and whether it is near enough."""
    off = told["executor_seconds"] / true["executor_seconds"] - 1
    points = 100 * (told["late_ratio"] - true["late_ratio"])
    return {
        "executor_seconds": {"foretold": told["executor_seconds"], "true": true["executor_seconds"]},
        "off": round(off, 3),
        "late_ratio": {"foretold": round(told["late_ratio"], 5), "true": true["late_ratio"]},
        "off_points": round(points, 2),
        "within": abs(off) <= WITHIN and abs(points) <= WITHIN_POINTS,
        "foretold": told,
        "true": true,
    }


if __name__ == "__main__":
    main()
