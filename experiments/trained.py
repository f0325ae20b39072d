"""Forecasters that are trained before they drive a policy: on what came before the input that is played."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from experiments.experiment import Case
from experiments.inputs import earlier_trace
from penstock.forecast.recurrent import BiGru
from penstock.forecast.trained.model_file import Header, packed
from penstock.forecast.trained.model_folder import ModelFolder
from penstock.simulator import Scenario
from penstock.simulator.prepare import topology_of

SPEC = "bigru"
UNITS, EPOCHS = 8, 8  # small, so that an experiment takes seconds
HELD_OUT = 0.2  # of the rows, by which training is stopped


@contextmanager
def driven(case: Case, scenario: Scenario, seed: int, data: Path | None) -> Iterator[Scenario]:
    """The scenario, with a network that was trained on what came before it, where the case asks for one."""
    if not case.trained:
        yield scenario
        return
    with tempfile.TemporaryDirectory() as folder:
        _train(case, scenario, seed, data, ModelFolder(folder))
        yield scenario.changed(forecaster=f"trained:folder={folder}")


def _train(case: Case, scenario: Scenario, seed: int, data: Path | None, folder: ModelFolder) -> None:
    td_s = scenario.contest.td_s
    trace = earlier_trace(case.input, seed, data)
    rates = (trace if trace.step_s == td_s else trace.resampled(td_s)).rates
    rows = round((1 - HELD_OUT) * len(rates))
    network = BiGru(units=UNITS, epochs=EPOCHS, seed=seed)
    network.fit(rates[:rows], rates[rows:])
    for source in topology_of(scenario).sources:
        header = Header(
            series=source,
            spec=SPEC,
            interval_s=td_s,
            day=round(scenario.contest.day_s / td_s),
            rows=len(rates),
            trained_at=datetime.now(UTC).isoformat(),
        )
        folder.write((header, packed(network)))
