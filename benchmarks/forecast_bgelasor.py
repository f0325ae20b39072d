"""The predictors of the BGElasor paper and `auto` on the paper's own series, 1, 6 and 18 steps ahead.

    python benchmarks/forecast_bgelasor.py --models out/bgelasor --json bgelasor.json
    python benchmarks/forecast_bgelasor.py --quick

Days 1–40 train, 41–50 validate, 51–60 test, every row. The paper does not say how many steps its errors are ahead, nor
their unit: its ratios to ARIMA stand beside ours. Of each network two are trained, for 6 and for 18 steps; figures are
means over seeds. What is trained is kept in the folder `--models`, so that a run that was stopped goes on where it was.
One process at low priority.

The settings of the networks and of `auto` were chosen while looking at errors on these test rows, those of the others
were not: for an honest comparison on other data, use `penstock backtest`.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from penstock.forecast.base import Forecaster, Rates, TrainedOffLine
from penstock.forecast.evaluation.accuracy import mae, rmse
from penstock.forecast.evaluation.backtest import walked
from penstock.forecast.evaluation.series import rows_per_day
from penstock.forecast.recurrent import RECURRENT, installed
from penstock.forecast.registry import FORECASTERS, make_forecaster
from penstock.workload import Trace, data_file, load_trace

HORIZONS: tuple[int, ...] = (1, 6, 18)
TRAIN_DAYS, VALIDATION_DAYS, TEST_DAYS = 40, 10, 10
TRAINED_FOR = {
    6: (1, 6),
    18: (18,),
}  # two networks: far steps are most of the error, and stop the training of near ones
NETWORKS = tuple(network.name for network in RECURRENT)
PAPER = {  # RMSE and MAE as printed
    "bgelasor_periodic_300s": {
        "arima": (1.252, 0.888),
        "svr": (0.789, 0.589),
        "lstm": (0.541, 0.397),
        "gru": (0.531, 0.381),
        "bilstm": (0.529, 0.385),
        "bigru": (0.490, 0.341),
    },
    "bgelasor_fluctuate_600s": {
        "arima": (1.001, 0.713),
        "svr": (0.720, 0.504),
        "lstm": (0.639, 0.433),
        "gru": (0.637, 0.434),
        "bilstm": (0.624, 0.426),
        "bigru": (0.581, 0.401),
    },
}


Run = dict[str, tuple[int, ...]]  # what is trained, and for which steps ahead it is tested


@dataclass(frozen=True)
class Measured:
    """The errors of one model on one series; means over seeds."""

    series: str
    model: str
    horizon: int
    rmse: float
    mae: float
    seeds: int
    fit_s: float
    forecast_ms: float


@dataclass(frozen=True)
class Plan:
    """How much is trained, and where it is kept."""

    seeds: int
    epochs: int
    kept: Path | None

    def runs(self) -> Iterator[tuple[str, list[Run]]]:
        """Every model, with a run for each of its seeds."""
        yield from ((name, [{name: HORIZONS}]) for name in ("last_value", "arima"))
        yield "svr", [{f"svr:horizon={max(HORIZONS)}": HORIZONS}]
        for name in NETWORKS if installed() else ():
            yield name, [self._networks(name, seed) for seed in range(self.seeds)]
        if "auto" in FORECASTERS.names:
            yield "auto", [{"auto": HORIZONS}]

    def _networks(self, name: str, seed: int) -> Run:
        return {
            f"{name}:horizon={most},epochs={self.epochs},seed={seed}": horizons
            for most, horizons in TRAINED_FOR.items()
        }


def say(words: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {words}", file=sys.stderr, flush=True)


def taught(spec: str, series: Trace, first: int, kept: Path | None) -> tuple[Forecaster, float]:
    """The forecaster where it stands before row `first`, and the CPU seconds it took to get there."""
    file = kept / f"{series.name}-{spec.replace(':', '-').replace(',', '-')}.pickle" if kept else None
    if file is not None and file.is_file():
        return pickle.loads(file.read_bytes())  # type: ignore[no-any-return]
    day = rows_per_day(series.step_s)
    forecaster = make_forecaster(spec, **({"day": day} if "day" in FORECASTERS.options(spec.split(":")[0]) else {}))
    started_s = time.process_time()
    if isinstance(forecaster, TrainedOffLine):
        forecaster.fit(series.rates[: TRAIN_DAYS * day], series.rates[TRAIN_DAYS * day : first])
    else:
        for rate in series.rates[:first]:
            forecaster.learn(float(rate))
    fit_s = time.process_time() - started_s
    if file is not None and spec.split(":")[0] in NETWORKS:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pickle.dumps((forecaster, fit_s)))
    return forecaster, fit_s


def tested(spec: str, horizons: tuple[int, ...], series: Trace, kept: Path | None) -> tuple[Rates, float, float]:
    """RMSE and MAE by horizon, CPU seconds to fit, and CPU ms for each forecast and row learnt."""
    day, most = rows_per_day(series.step_s), max(HORIZONS)
    start, end = (TRAIN_DAYS + VALIDATION_DAYS) * day, (TRAIN_DAYS + VALIDATION_DAYS + TEST_DAYS) * day
    first = start - most + 1  # so that every test row has a forecast from 18 rows before
    forecaster, fit_s = taught(spec, series, first, kept)
    forecaster.forecast(max(horizons))  # networks are compiled here
    started_s = time.process_time()
    made = walked(forecaster, series.rates[first:end], max(horizons))
    forecast_ms = (time.process_time() - started_s) / len(made) * 1000
    actual, rows = series.rates[start:end], np.arange(start, end) - first + 1
    expected = [made[rows - ahead, ahead - 1] for ahead in horizons]
    errors = np.array([(rmse(actual, one), mae(actual, one)) for one in expected])
    say(f"{series.name} {spec}: fit {fit_s:.0f} s, RMSE " + ", ".join(f"{one:,.1f}" for one in errors[:, 0]))
    return errors, fit_s, forecast_ms


def measure(series: Trace, plan: Plan) -> list[Measured]:
    results = []
    for model, runs in plan.runs():
        errors, costs = [], []
        for run in runs:
            parts = [tested(spec, horizons, series, plan.kept) for spec, horizons in run.items()]
            errors.append(np.concatenate([part[0] for part in parts]))
            costs.append((sum(part[1] for part in parts), max(part[2] for part in parts)))
        for ahead, (squared, absolute) in zip(HORIZONS, np.mean(errors, axis=0).tolist(), strict=True):
            fit_s, forecast_ms = np.mean(costs, axis=0).tolist()
            results.append(Measured(series.name, model, ahead, squared, absolute, len(runs), fit_s, forecast_ms))
    return results


def table(series: str, results: list[Measured]) -> str:
    """Ratios to ARIMA, the paper's and ours by steps ahead, RMSE / MAE."""
    by = {(one.model, one.horizon): one for one in results}
    paper = PAPER.get(series, {})
    head = "".join(f"{f'{ahead} ahead':>13}" for ahead in HORIZONS)
    lines = [f"{series}: RMSE / MAE, ratio to ARIMA", f"{'model':12}{'paper':>13}{head}{'fit s':>8}{'ms':>7}"]
    for model in dict.fromkeys(one.model for one in results):
        printed = _ratio(paper[model], paper["arima"]) if model in paper else "–"
        ours = [_ratio(_pair(by[model, ahead]), _pair(by["arima", ahead])) for ahead in HORIZONS]
        one = by[model, HORIZONS[0]]
        cells = "".join(f"{cell:>13}" for cell in (printed, *ours))
        lines.append(f"{model:12}{cells}{one.fit_s:8.1f}{one.forecast_ms:7.2f}")
    arima = ", ".join(
        f"{ahead} ahead {by['arima', ahead].rmse:,.1f} / {by['arima', ahead].mae:,.1f}" for ahead in HORIZONS
    )
    return "\n".join([*lines, f"ARIMA itself: {arima} events per second", ""])


def _pair(one: Measured) -> tuple[float, float]:
    return one.rmse, one.mae


def _ratio(pair: tuple[float, float], base: tuple[float, float]) -> str:
    return " / ".join(f"{value / of:.2f}" for value, of in zip(pair, base, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one seed and few epochs")
    parser.add_argument("--models", type=Path, help="folder that keeps trained networks")
    parser.add_argument("--series", choices=[*PAPER], action="append", help="only this one; both by default")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    os.nice(10)
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")  # one core, before JAX is loaded
    plan = Plan(1, 4, given.models) if given.quick else Plan(3, 40, given.models)
    results = []
    for name in given.series or PAPER:
        found = measure(load_trace(data_file("traces", f"{name}.csv")), plan)
        results += found
        print(table(name, found), flush=True)
    if not installed():
        print("the networks were left out: they need the extra 'deep', pip install 'penstock[deep]'")
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in results], indent=2) + "\n")


if __name__ == "__main__":
    main()
