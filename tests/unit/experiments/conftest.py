"""Small experiments: a stable rate for a minute, and outcomes that were never simulated."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from experiments import inputs
from experiments.experiment import Experiment, base
from experiments.figures import Measured
from experiments.inputs import Input
from experiments.runner import Outcome
from penstock.workload import stable

TINY = base("dns", "tiny", td_s=5.0)


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
            TINY.changed(label="one", policy="static:1", paper={"saved": 0.6, "latency_ms": 100.0}),
            TINY.changed(label="two", policy="static:2", paper={"saved": 0.3, "latency_ms": 50.0}),
            TINY.changed(label="later", policy="hope"),
        ),
        seeds=2,
    )


@pytest.fixture
def outcome() -> Callable[..., Outcome]:
    """Makes an outcome from a label and the latencies of some seeds."""

    def make(label: str, *latencies: float, paper: float | None = None, missing: str | None = None) -> Outcome:
        known = {} if paper is None else {"latency_ms": paper}
        figures = {} if missing else {"latency_ms": Measured(latencies)}
        return Outcome(TINY.changed(label=label, paper=known), figures, missing)

    return make
