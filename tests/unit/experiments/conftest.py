"""Small experiments: a stable rate for a minute, and outcomes that were never simulated."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from experiments import inputs
from experiments.experiment import Case, Experiment
from experiments.figures import Measured
from experiments.inputs import Input
from experiments.runner import Outcome
from experiments.scene import Scene
from penstock.workload import stable

SCENE = Scene(app="dns", input="tiny", td_s=5.0)


@pytest.fixture(autouse=True)
def _tiny_input(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Input(lambda seed: stable(mean=40.0, duration_s=60.0, seed=seed), 60.0, "tiny.csv")
    monkeypatch.setitem(inputs.INPUTS, "tiny", made)


@pytest.fixture
def tiny() -> Experiment:
    """Two cases that can be played, and one that cannot."""
    return Experiment(
        name="tiny",
        title="Small <things>",
        paper="nobody",
        cases=(
            Case(label="one", policy="static:1", scene=SCENE, paper={"saved": 0.6, "latency_ms": 100.0}),
            Case(label="two", policy="static:2", scene=SCENE, paper={"saved": 0.3, "latency_ms": 50.0}),
            Case(label="later", policy="hope", scene=SCENE),
        ),
        seeds=2,
    )


@pytest.fixture
def outcome() -> Callable[..., Outcome]:
    """Makes an outcome from a label and the latencies of some seeds."""

    def make(label: str, *latencies: float, paper: float | None = None, missing: str | None = None) -> Outcome:
        known = {} if paper is None else {"latency_ms": paper}
        figures = {} if missing else {"latency_ms": Measured(latencies)}
        return Outcome(Case(label=label, policy="psps", scene=SCENE, paper=known), figures, missing)

    return make
