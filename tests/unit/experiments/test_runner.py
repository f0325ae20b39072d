from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from experiments import inputs
from experiments.experiment import Experiment, base
from experiments.inputs import origin_of, trace_for
from experiments.runner import Job, jobs_of, outcomes_of, play, run_all, scenario_of
from experiments.settled import Settled
from penstock.errors import InputError
from penstock.metrics.snapshot import Snapshot
from penstock.policy.incremental import Incremental
from penstock.testing.loads import load, snapshot

TINY = base("dns", "tiny", td_s=5.0)


def test_what_experiments_share_is_played_once(tiny: Experiment) -> None:
    jobs = jobs_of([tiny, replace(tiny, name="again", seeds=3)], None)
    assert len(jobs) == 6  # two cases and three seeds
    assert len(jobs_of([tiny], 5)) == 10


def test_the_same_seed_gives_the_same_figures() -> None:
    first, second = (play(Job(TINY, seed=3), None) for _ in range(2))
    assert first == second
    assert first.failure is None
    assert first.figures["processed"] > 0.9
    assert play(Job(TINY, seed=4), None).figures != first.figures


def test_outcomes(tiny: Experiment) -> None:
    seen: list[Job] = []
    played = run_all(jobs_of([tiny], None), None, workers=1, done=seen.append)
    one, two, later = outcomes_of(tiny, played, None)
    assert len(seen) == 4
    assert len(one.figures["saved"].values) == 2
    assert (one.figures["replicas"].mean, two.figures["replicas"].mean) == (4.0, 8.0)
    assert one.figures["latency_ms"].mean >= two.figures["latency_ms"].mean
    assert (later.figures, later.missing) == ({}, "policy 'hope' is not there yet")


def test_a_failure_is_told_and_stops_nothing(tiny: Experiment) -> None:
    broken = replace(tiny, cases=(*tiny.cases, TINY.changed(label="broken", policy="static:none")))
    outcomes = outcomes_of(broken, run_all(jobs_of([broken], 1), None, workers=1), 1)
    assert outcomes[-1].missing is not None
    assert outcomes[-1].missing.startswith("failed: policy 'static'")
    assert outcomes[0].figures


def test_another_process_gives_the_same() -> None:
    job = Job(base("dns", "dns", policy="static:1"), 0)
    assert run_all([job], None, workers=2) == run_all([job], None, workers=1)


def test_what_is_deployed_stays() -> None:
    names = ("parse", "features", "classify", "store")
    deployed = dict(zip(names, (1, 2, 3, 4), strict=True))
    fixed = TINY.changed(policy="static", pool=8, levels="static", workers=16, deployed=deployed)
    assert play(Job(fixed, 0), None).figures["replicas"] == 10.0


def test_trace_events_and_seed_are_put_into_the_scenario(tmp_path: Path) -> None:
    scenario = scenario_of(Job(TINY, seed=3), tmp_path)
    assert (scenario.seed, scenario.events, scenario.input) == (3, None, trace_for("tiny", 3, None))
    (tmp_path / "events").mkdir()
    assert scenario_of(Job(TINY, seed=3), tmp_path).events == tmp_path / "events"


def test_learning_is_trained_before(monkeypatch: pytest.MonkeyPatch) -> None:
    learning = TINY.changed(policy="learning")
    trained = play(Job(learning, 0), None)
    monkeypatch.setattr("experiments.runner.LESSONS", 0)
    assert play(Job(learning, 0), None).figures["changes"] == 0  # it knows nothing, and learns nothing
    assert trained.failure is None


def test_real_traces_where_there_are_any(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "tiny.csv").write_text("time_s,rate\n0,10\n1,30\n")
    assert trace_for("tiny", 0, tmp_path).rates.tolist() == [20.0, 60.0]  # scaled to the peak
    assert origin_of("tiny", tmp_path).startswith("real: tiny")
    assert origin_of("tiny", tmp_path / "nowhere") == "made"
    assert trace_for("tiny", 0, None).duration_s == 60.0
    with pytest.raises(InputError, match="twitter"):
        trace_for("twiter", 0, None)


@pytest.mark.parametrize("name", inputs.INPUTS)
def test_made_inputs_have_the_peak_they_should(name: str) -> None:
    trace = trace_for(name, 1, None)
    assert trace.mean > 0
    assert trace.peak == pytest.approx(inputs.INPUTS[name].peak or trace.peak)


def test_nothing_is_decided_while_a_change_settles() -> None:
    policy = Settled(Incremental(), settle_s=20.0)

    def at(time_s: float) -> Snapshot:
        return snapshot({"in": 9}, [load("clean", {"in": 9}, busy_share={0: 1.0})], time_s=time_s)

    replicas = [policy.plan(at(time_s)).replicas["clean"] for time_s in (10.0, 20.0, 29.0, 30.0)]
    assert replicas == [2, 1, 1, 2]


def test_a_change_that_the_pool_forbids_is_none() -> None:
    policy = Settled(Incremental(), settle_s=20.0)
    full = snapshot({"in": 9}, [load("clean", {"in": 9}, busy_share={0: 1.0}, pool=1)])
    assert policy.plan(full) == policy.plan(full)
