"""A BiGRU drives CBA: trained on what came before, never on what is played."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.bgelasor import BIGRU, EXPERIMENTS
from experiments.experiment import Case
from experiments.inputs import earlier_trace, trace_for
from experiments.runner import Job, play, scenario_of
from experiments.trained import driven
from penstock.forecast.recurrent import installed
from penstock.forecast.registry import forecaster_for
from penstock.simulator import Scenario
from penstock.simulator.prepare import topology_of

pytestmark = pytest.mark.skipif(not installed(), reason="needs the extra 'deep'")


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.setattr("experiments.trained.EPOCHS", 1)
    return next(one for one in EXPERIMENTS[0].cases if one.label == BIGRU)


def test_what_is_trained_on_comes_before(case: Case) -> None:
    earlier, played = earlier_trace(case.input, 0, None), trace_for(case.input, 0, None)
    assert not np.array_equal(earlier.rates, played.rates)
    assert earlier.mean == pytest.approx(played.mean, rel=0.3)


def test_a_network_drives_the_policy(case: Case) -> None:
    job = Job(case, 0)
    short = scenario_of(job, None)
    short = replace(short, trace=short.input.limited(120.0))
    with driven(case, short, 0, None) as scenario:
        spec = scenario.contest.forecaster
        assert spec is not None
        assert spec.startswith("trained:folder=")
        (source,) = sources(scenario)
        network = forecaster_for(spec, interval_s=5.0, day_s=scenario.contest.day_s, series=source)
        network.learn(100.0)
        assert network.header.spec == "bigru"  # type: ignore[attr-defined]
        assert network.forecast(12).shape == (12,)


def sources(scenario: Scenario) -> list[str]:
    return list(topology_of(scenario).sources)


def test_a_case_without_one_is_played_as_it_is(case: Case) -> None:
    plain = case.changed(trained=False)
    scenario = scenario_of(Job(plain, 0), None)
    with driven(plain, scenario, 0, None) as same:
        assert same is scenario


def test_without_keras_the_case_says_so(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.experiment.installed", lambda: False)
    assert case.missing == "needs the extra 'deep'"


def test_it_is_played(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(name: str, seed: int, data: object) -> object:
        return trace_for(name, seed, None).limited(150.0)

    monkeypatch.setattr("experiments.runner.trace_for", short)
    with_it = play(Job(case, 0), None)
    assert with_it.failure is None
    assert with_it.figures["events"] > 0
