"""How much faster many models are trained on two cores than on one: `penstock train`'s Spark part on made series.

    python benchmarks/training.py --series 50 --models ets --rounds 3 --json training.json

Every round trains all models on local[1] and on local[2], one after the other; Spark and its Python workers are warm.
Series have different levels, seasons and noise.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from penstock.forecast.registry import FORECASTERS
from penstock.forecast.trained.job import History, Job
from penstock.forecast.trained.on_spark import train, training_session

CORES = (1, 2)
PREFERRED = ("auto", "holt_winters", "ets", "regression")  # the first of these that there is
ROWS = 2016  # a week of 5 minutes


def made_history(number: int, rows: int) -> History:
    rng = np.random.default_rng(number)
    time_rows = np.arange(rows)
    day = 50 * rng.random() * np.sin(2 * np.pi * time_rows / 288 + rng.random())
    hours = 20 * rng.random() * np.sin(2 * np.pi * time_rows / rng.integers(12, 72))
    noise = rng.normal(0, 1 + 10 * rng.random(), rows)
    rates = np.maximum(0.0, 100 + 100 * rng.random() + day + hours + noise)
    return History(series=f"made-{number}", rates=rates, interval_s=300.0, day=288)


def seconds(jobs: Sequence[Job], cores: int) -> tuple[float, float]:
    """Wall and CPU seconds of training all of them."""
    with tempfile.TemporaryDirectory() as folder, training_session(cores, Path(folder) / "log") as spark:
        list(train(jobs[: 2 * cores], spark))  # the workers are there, and have loaded what they need
        start = time.perf_counter()
        outcomes = [one for arrived in train(jobs, spark) for one in arrived]
        wall_s = time.perf_counter() - start
    failed = [one.failure for one in outcomes if one.failure]
    if failed:
        raise SystemExit(f"{len(failed)} of {len(jobs)} models failed: {failed[0]}")
    return wall_s, sum(one.cpu_s for one in outcomes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--series", type=int, default=50)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--models", default=next(name for name in PREFERRED if name in FORECASTERS.names))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    histories = [made_history(number, given.rows) for number in range(given.series)]
    jobs = [Job(history=history, spec=spec) for history in histories for spec in FORECASTERS.specs(given.models)]
    print(f"{given.series} series of {given.rows} rows, models {given.models}; {len(jobs)} models a round")
    taken: dict[int, list[float]] = {cores: [] for cores in CORES}
    for number in range(given.rounds):
        for cores in CORES:
            wall_s, cpu_s = seconds(jobs, cores)
            taken[cores].append(wall_s)
            print(f"round {number + 1}  local[{cores}]  wall {wall_s:7.2f} s  CPU {cpu_s:7.2f} s")
    medians = {cores: statistics.median(times) for cores, times in taken.items()}
    for cores, wall_s in medians.items():
        print(f"local[{cores}]  median {wall_s:7.2f} s  {given.series / wall_s:6.2f} series/s")
    ratio = medians[1] / medians[2]
    print(f"two cores are {ratio:.2f} times as fast as one")
    if given.json:
        figures = {"models": given.models, "series": given.series, "wall_s": taken, "ratio": ratio}
        given.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
