"""What a training keeps, and when: a loop that reads the folder meanwhile must find whole trainings only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from penstock.cli import training
from penstock.cli.kept import Kept, as_json, tell
from penstock.cli.main import app
from penstock.engine.training import Outcome, train_here
from penstock.forecast.models import ModelFolder
from penstock.forecast.training import History, Job

SPECS = ("last_value", "drift", "regression")  # the first is the fastest, and the worst on a ramp


def outcome(series: str, spec: str, rows: int = 50) -> Outcome:
    return train_here(Job(history=History(series=series, rates=np.arange(rows), interval_s=5.0, day=288), spec=spec))


def failed(series: str, spec: str) -> Outcome:
    return Outcome(outcome(series, spec).job, failure="too slow")


@pytest.fixture
def folder(tmp_path: Path) -> ModelFolder:
    folder = ModelFolder(tmp_path / "models")
    folder.prepare()
    return folder


def a_training(folder: ModelFolder, day: int = 2, models: int = len(SPECS)) -> Kept:
    return Kept(folder, f"2026-01-0{day}T00:00:00+00:00", models)


def told(kept: Kept) -> str:
    said = StringIO()
    tell(kept, Console(file=said, width=200))
    return said.getvalue()


def test_a_series_waits_for_all_of_its_models(folder: ModelFolder) -> None:
    """They were written as they arrived, and a loop changed to the fastest one, which was the best of the only one."""
    a_training(folder, day=1, models=1).keep([outcome("x", "drift")])
    kept = a_training(folder)
    for spec in SPECS[:-1]:
        kept.keep([outcome("x", spec)])
        assert folder.best("x").trained_at.startswith("2026-01-01")
    kept.keep([outcome("x", SPECS[-1])])
    assert set(folder.models("x")) == set(SPECS)
    assert folder.best("x").trained_at == kept.trained_at
    assert folder.best("x").spec != "last_value"


def test_a_series_does_not_wait_for_another(folder: ModelFolder) -> None:
    kept = a_training(folder)
    kept.keep([outcome("x", "drift"), *(outcome("y", spec) for spec in SPECS)])
    assert folder.series() == ("y",)
    assert (kept.done, kept.trained) == (1, 1)
    assert kept.best("x") is None


def test_a_model_that_failed_has_arrived_too(folder: ModelFolder) -> None:
    kept = a_training(folder)
    kept.keep([failed("x", "regression"), outcome("x", "drift"), failed("x", "last_value")])
    assert set(folder.models("x")) == {"drift"}
    kept.keep([failed("y", spec) for spec in SPECS])
    assert folder.series() == ("x",)
    assert (kept.done, kept.trained) == (2, 1)


def test_what_is_written_is_not_written_again(folder: ModelFolder) -> None:
    kept = a_training(folder)
    kept.keep([outcome("x", spec) for spec in SPECS])
    mark = folder.changed_since("x", None)
    kept.keep([outcome("y", "drift")])
    kept.keep_rest()
    assert folder.changed_since("x", mark) is None
    assert folder.series() == ("x", "y")


class TestWhenItIsStopped:
    def test_a_series_without_models_gets_what_has_arrived(self, folder: ModelFolder) -> None:
        kept = a_training(folder)
        kept.keep([outcome("x", "last_value"), outcome("x", "drift")])
        kept.keep_rest()
        assert set(folder.models("x")) == {"last_value", "drift"}
        best = kept.best("x")
        assert best is not None
        assert best.job.spec == folder.best("x").spec == "drift"

    def test_a_series_with_older_ones_keeps_these(self, folder: ModelFolder) -> None:
        a_training(folder, day=1, models=1).keep([outcome("x", "regression")])
        before = folder.changed_since("x", None)
        kept = a_training(folder)
        kept.keep([outcome("x", "last_value")])
        kept.keep_rest()
        assert folder.changed_since("x", before) is None
        assert set(folder.models("x")) == {"regression"}
        assert kept.trained == 0

    def test_that_is_said(self, folder: ModelFolder) -> None:
        a_training(folder, day=1, models=1).keep([outcome("x", "regression")])
        kept = a_training(folder)
        kept.keep([outcome("x", "last_value")])
        kept.keep_rest()
        said = told(kept)
        assert "older models stay, as some of the new ones had not arrived: x\n" in said
        assert said.endswith(f"models: {folder.path}\n")
        assert as_json(kept)["series"]["x"]["best"] is None

    def test_nothing_is_said_of_older_ones_where_there_are_none(self, folder: ModelFolder) -> None:
        kept = a_training(folder)
        kept.keep([outcome("x", "drift"), failed("y", "drift")])
        kept.keep_rest()
        assert "older models" not in told(kept)
        assert as_json(kept)["series"]["x"]["best"] == "drift"

    def test_by_ctrl_c(self, folder: ModelFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        @contextmanager
        def stopped(jobs: Sequence[Job], cores: int | None, log_file: Path) -> Iterator[Iterator[list[Outcome]]]:
            def arriving() -> Iterator[list[Outcome]]:
                yield [train_here(job) for job in jobs if job.spec == "last_value"]
                raise KeyboardInterrupt

            yield arriving()

        a_training(folder, day=1, models=1).keep([outcome("ramp", "drift")])
        monkeypatch.setattr(training, "on_spark", stopped)
        rows = "".join(f"{300 * n},{n}\n" for n in range(50))
        files = [tmp_path / "ramp.csv", tmp_path / "new.csv"]
        for file in files:
            file.write_text("time_s,rate\n" + rows)
        report = tmp_path / "out.json"
        options = ["--models", "last_value,drift", "--out", str(folder.path), "--json", str(report)]
        result = CliRunner().invoke(app, ["train", *map(str, files), *options])
        assert result.exit_code == 130
        assert folder.best("ramp").spec == "drift"
        assert folder.best("new").spec == "last_value"
        assert {name: one["best"] for name, one in json.loads(report.read_text())["series"].items()} == {
            "ramp": None,
            "new": "last_value",
        }
