"""Several forecasters on the same series, by the same rule: who is nearest?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.common.checks import whole
from penstock.errors import InputError
from penstock.forecast.base import Forecaster, NotReady, Rates
from penstock.forecast.evaluation.backtest import ONE_STEP, Edge, Rule, Score, backtest
from penstock.forecast.evaluation.series import Split, rows_per_day
from penstock.forecast.recurrent import RECURRENT, installed
from penstock.forecast.registry import FORECASTERS
from penstock.workload import Trace

ALL = "all"
YARDSTICK = "last_value"  # always takes part: what costs nothing
_NETWORKS = tuple(network.name for network in RECURRENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What holds for all: the rule, the rows that make a day (as the series' step says, if None), and the seed."""

    rule: Rule = ONE_STEP
    day: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.day is not None:
            whole("backtest", "day", self.day)

    def forecaster(self, spec: str, series: Trace) -> Forecaster:
        """A new forecaster of this description; what it leaves open of days, steps ahead and seed is told to it."""
        known = {"day": self.day or rows_per_day(series.step_s), "horizon": self.rule.horizon, "seed": self.seed}
        return FORECASTERS.make(spec, known)


@dataclass(frozen=True, slots=True)
class Trial:
    """One model on one series: its figures, and its forecast of every test row."""

    score: Score
    expected: Rates


@dataclass(frozen=True, slots=True)
class SeriesTest:
    """What came out on one series; `failed` says why a model has no figures."""

    series: Trace
    split: Split
    trials: tuple[Trial, ...]
    failed: Mapping[str, str]

    @property
    def ranked(self) -> list[Trial]:
        """The least sMAPE first."""
        return sorted(self.trials, key=lambda trial: (math.isnan(trial.score.smape), trial.score.smape))

    def ratio(self, trial: Trial, to: str | None = None) -> float:
        """Its sMAPE over that of another model, of the best if None; NaN where there is none to compare with."""
        others = {one.score.model: one.score.smape for one in self.ranked}
        base = next(iter(others.values())) if to is None else others.get(to, math.nan)
        if base == 0:
            return 1.0 if trial.score.smape == 0 else math.inf
        return trial.score.smape / base


def models_named(text: str) -> tuple[list[str], list[str]]:
    """The models that `all`, or a list, means, the yardstick among them; and what was left out of `all`, in words."""
    if text != ALL:
        return list(dict.fromkeys([*map(_untrained, FORECASTERS.specs(text)), YARDSTICK])), []
    alone = [name for name in FORECASTERS.distinct if not _loads_models(name)]
    if installed():
        return alone, []
    words = f"{', '.join(_NETWORKS)} left out: they need the extra 'deep', pip install 'penstock[deep]'"
    return [name for name in alone if name not in _NETWORKS], [words]


def _untrained(spec: str) -> str:
    """The description, or an InputError where it is of one whose figures would say nothing: it may know the test."""
    name = spec.partition(":")[0]
    if _loads_models(name):
        raise InputError(
            f"--models: '{name}' loads what was trained, maybe on the rows to test on; name the forecasters to compare"
        )
    return spec


def _loads_models(name: str) -> bool:
    return "folder" in FORECASTERS.options(name)


def contest(
    series: Trace, split: Split, specs: Sequence[str], terms: Terms, edge: Callable[[str], Edge] = lambda _: Edge()
) -> SeriesTest:
    """Try every model; `edge` gives the clock and the progress for each. One that cannot forecast stops no other.

    >>> import numpy as np
    >>> ramp = Trace("ramp", 3600.0, np.arange(48.0))
    >>> test = contest(ramp, Split(24, 12, 12), ["last_value", "drift"], Terms())
    >>> [(trial.score.model, trial.score.mae) for trial in test.ranked]
    [('drift', 0.0), ('last_value', 1.0)]
    """
    trials, failed = [], {}
    for spec in specs:
        forecaster = terms.forecaster(spec, series)
        try:
            outcome = backtest(forecaster, series.measured, split, terms.rule, edge(spec))
        except (NotReady, InputError) as why:
            failed[spec] = str(why)
            continue
        trials.append(Trial(Score.of(series.name, spec, terms.rule.horizon, outcome), outcome.expected))
    return SeriesTest(series, split, tuple(trials), failed)
