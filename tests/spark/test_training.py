"""Training on Spark: the models that come back are those that this process would have trained."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.forecast.base import Forecaster
from penstock.forecast.trained.job import History, Job, trained_model
from penstock.forecast.trained.model_folder import ModelFolder
from penstock.forecast.trained.on_spark import train, training_session
from penstock.workload import Trace, load_trace, save_trace

SPECS = ("last_value", "regression")


class Killing(Job):
    """A job whose worker dies, as one that runs out of memory does."""

    __slots__ = ()

    def forecaster(self) -> Forecaster:
        os.kill(os.getpid(), 9)
        raise AssertionError


def rates(number: int) -> np.ndarray:
    rows = np.arange(300)
    noise = np.random.default_rng(number).normal(0, 3, len(rows))
    return np.maximum(0, 100 + 40 * np.sin(2 * np.pi * rows / (12 * (number + 1))) + noise)


def test_four_series_from_files(tmp_path: Path) -> None:
    files = [save_trace(Trace(f"s{n}", 300.0, rates(n)), tmp_path / f"s{n}.csv") for n in range(4)]
    out = tmp_path / "models"
    result = CliRunner().invoke(
        app, ["train", *map(str, files), "--models", ",".join(SPECS), "--out", str(out), "--cores", "2"]
    )
    assert result.exit_code == 0, result.output
    folder = ModelFolder(out)
    assert sorted(folder.series()) == ["s0", "s1", "s2", "s3"]
    for file in files:
        history = History(series=file.stem, rates=load_trace(file).rates, interval_s=300.0, day=288)
        for spec in SPECS:
            here = trained_model(Job(history=history, spec=spec))
            there = folder.read(file.stem, spec)
            assert there.header.errors == here.errors
            assert there.forecaster.forecast(5).tolist() == pickle.loads(here.pickled).forecast(5).tolist()


def test_a_worker_that_dies_takes_only_its_own_model(tmp_path: Path) -> None:
    histories = [History(series=f"s{n}", rates=rates(n), interval_s=300.0, day=288) for n in range(3)]
    jobs: list[Job] = [Job(history=history, spec="drift") for history in histories]
    jobs.insert(1, Killing(history=histories[0], spec="regression"))
    with training_session(2, tmp_path / "log") as spark:
        outcomes = [one for arrived in train(jobs, spark) for one in arrived]
    assert len(outcomes) == 4
    failed = [one for one in outcomes if one.failure]
    assert [one.job.spec for one in failed] == ["regression"]
    assert "the process that trained it was lost: Python worker exited unexpectedly" in str(failed[0].failure)
    assert all(one.fitted for one in outcomes if one.job.spec == "drift")
