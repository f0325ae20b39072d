"""`penstock train`: what it reads, what it writes and what it says; Spark itself is in tests/spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.forecast.registry import FORECASTERS
from penstock.forecast.trained.job import Job, Outcome, train_here
from penstock.forecast.trained.model_folder import ModelFolder


@pytest.fixture(autouse=True)
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Job]]:
    """What was to be trained on Spark, and is trained here."""
    calls: list[Sequence[Job]] = []

    @contextmanager
    def here(jobs: Sequence[Job], cores: int | None, log_file: Path) -> Iterator[Iterator[list[Outcome]]]:
        calls.append(jobs)
        yield ([train_here(job)] for job in jobs)

    monkeypatch.setattr("penstock.cli.train.on_spark", here)
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "ramp.csv", range(50))
    write_csv(tmp_path / "flat.csv", [7] * 50)
    write_csv(tmp_path / "short.csv", [1, 2])
    return calls


def write_csv(path: Path, rates: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("time_s,rate\n" + "".join(f"{300 * n},{rate}\n" for n, rate in enumerate(rates)))


def penstock(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["train", *arguments])


def test_models_of_files() -> None:
    result = penstock(
        "ramp.csv", "flat.csv", "--models", "last_value,drift:window=3", "--out", "m", "--json", "out.json"
    )
    assert result.exit_code == 0
    assert "2 series of 50 rows, 2 models each" in result.output
    folder = ModelFolder("m")
    assert folder.series() == ("ramp", "flat")
    assert folder.best("ramp").spec == "drift:window=3"
    assert folder.best("ramp").day == 288
    assert folder.read("ramp").forecaster.forecast(1).tolist() == [50.0]
    told = json.loads(Path("out.json").read_text())
    assert told["series"]["ramp"]["best"] == "drift:window=3"
    assert told["series"]["ramp"]["models"]["last_value"]["mae"] == 1.0


def test_a_model_that_fails_is_said_and_stops_no_other() -> None:
    result = penstock("ramp.csv", "short.csv", "--models", "drift", "--out", "m", "--json", "out.json")
    assert result.exit_code == 0
    assert "not trained" in result.output
    assert "needs 2 rates; has" in result.output
    assert ModelFolder("m").series() == ("ramp",)
    assert json.loads(Path("out.json").read_text())["series"]["short"]["best"] is None


def test_nothing_at_all_is_exit_1() -> None:
    result = penstock("short.csv", "--models", "drift", "--out", "m")
    assert result.exit_code == 1
    assert "nothing could be trained" in result.output


def test_ctrl_c_keeps_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def stopped(jobs: Sequence[Job], cores: int | None, log_file: Path) -> Iterator[Iterator[list[Outcome]]]:
        def arriving() -> Iterator[list[Outcome]]:
            yield [train_here(jobs[0])]
            raise KeyboardInterrupt

        yield arriving()

    monkeypatch.setattr("penstock.cli.train.on_spark", stopped)
    result = penstock("ramp.csv", "flat.csv", "--models", "drift", "--out", "m")
    assert result.exit_code == 130
    assert result.output.endswith("stopped\n")
    assert ModelFolder("m").series() == ("ramp",)


def test_ctrl_c_leaves_a_series_its_older_models_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def stopped(jobs: Sequence[Job], cores: int | None, log_file: Path) -> Iterator[Iterator[list[Outcome]]]:
        def arriving() -> Iterator[list[Outcome]]:
            yield [train_here(job) for job in jobs if job.spec == "last_value"]
            raise KeyboardInterrupt

        yield arriving()

    assert penstock("ramp.csv", "--models", "drift", "--out", "m").exit_code == 0
    monkeypatch.setattr("penstock.cli.train.on_spark", stopped)
    result = penstock("ramp.csv", "flat.csv", "--models", "last_value,drift", "--out", "m", "--json", "out.json")
    assert result.exit_code == 130
    folder = ModelFolder("m")
    assert (folder.best("ramp").spec, folder.best("flat").spec) == ("drift", "last_value")
    assert "older models stay, as some of the new ones had not arrived: ramp\nmodels: m\n" in result.output
    told = json.loads(Path("out.json").read_text())["series"]
    assert {name: one["best"] for name, one in told.items()} == {"ramp": None, "flat": "last_value"}


def test_horizon_day_and_validation_reach_the_models(started: list[Sequence[Job]]) -> None:
    penstock("ramp.csv", "--models", "last_value", "--horizon", "3", "--day", "24", "--validation", "0.5", "--out", "m")
    (job,) = started[0]
    assert (job.horizon, job.validation, job.history.day) == (3, 0.5, 24)
    assert ModelFolder("m").best("ramp").errors["mae"] == 3.0


CASES = {
    "no file": (("gone.csv",), "trace 'gone.csv': the file must exist; nothing is there"),
    "no store": (
        ("gone.db",),
        "source 'gone.db': must be a CSV file, a store's file or its URL; there is no such file",
    ),
    "no rows": (("empty.csv",), "trace 'empty.csv': a trace must have at least 2 rows; got 0"),
    "unknown model": (
        ("ramp.csv", "--models", "drfit"),
        "forecaster: no such name 'drfit'; known: {known}; did you mean 'drift'?",
    ),
    "unknown option": (
        ("ramp.csv", "--models", "drift:size=3"),
        "forecaster 'drift': no such option 'size'; known: window",
    ),
    "no model": (("ramp.csv", "--models", ","), "forecaster: must be names separated by commas; got ','"),
    "what loads models": (
        ("ramp.csv", "--models", "trained"),
        "--models: 'trained' loads what was trained; name the forecasters to train",
    ),
    "the same series twice": (
        ("ramp.csv", "other/ramp.csv"),
        "series 'ramp': must come from one source; is in ramp.csv and other/ramp.csv",
    ),
    "a run of no store": (("ramp.csv", "--run", "r1"), "--run is for a store; there is none among ramp.csv"),
    "no horizon": (("ramp.csv", "--horizon", "0"), "forecaster: the horizon must be at least 1 interval; got 0"),
    "no validation": (
        ("ramp.csv", "--validation", "0"),
        "training: the share of validation must be between 0 and 1; got 0.0",
    ),
    "no day": (("ramp.csv", "--day", "0"), "training: day must be whole and at least 1; got 0"),
    "no cores": (("ramp.csv", "--cores", "0"), "training: cores must be whole and at least 1; got 0"),
    "a file for a folder": (
        ("ramp.csv", "--out", "flat.csv"),
        "model folder 'flat.csv': must be a folder that can be written; File exists",
    ),
    "a folder of somebody else's": (
        ("ramp.csv", "--out", "theirs"),
        "index 'theirs/models.json': must be one that penstock train wrote; Input data was truncated",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_one_sentence_before_spark_starts(case: str, tmp_path: Path, started: list[Sequence[Job]]) -> None:
    (tmp_path / "empty.csv").write_text("time_s,rate\n")
    write_csv(tmp_path / "other" / "ramp.csv", range(5))
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "models.json").write_text("{")
    arguments, told = CASES[case]
    models = () if "--models" in arguments else ("--models", "last_value")
    result = penstock(*arguments, *models)
    assert result.output == f"error: {told.format(known=', '.join(FORECASTERS.names))}\n"
    assert result.exit_code == 2
    assert started == []
    assert not (tmp_path / "models").exists()
