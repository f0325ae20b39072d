"""`penstock backtest`: what it writes, and how it answers what is wrong."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app

FIELDS = ["series", "model", "horizon", "smape", "rmse", "mae", "fit_s", "forecast_ms"]


@pytest.fixture(autouse=True)
def user_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rates = [100 + 40 * math.sin(hour * math.pi / 12) for hour in range(24 * 12)]
    (tmp_path / "wave.csv").write_text(
        "time_s,rate\n" + "".join(f"{n * 3600},{rate}\n" for n, rate in enumerate(rates))
    )
    (tmp_path / "ramp.csv").write_text("date,rate\n" + "".join(f"2020-01-{n + 1:02d},{n}\n" for n in range(30)))
    (tmp_path / "words.csv").write_text("time_s,rate\n0,five\n1,5\n")
    return tmp_path


def penstock(*arguments: str) -> Any:
    return CliRunner().invoke(app, ("backtest", *arguments))


def scores(*arguments: str) -> list[dict[str, Any]]:
    done = penstock(*arguments, "--json", "scores.json")
    assert done.exit_code == 0, done.output
    found: list[dict[str, Any]] = json.loads(Path("scores.json").read_text())
    return found


def test_it_writes_a_list_with_the_nearest_model_first() -> None:
    found = scores("ramp.csv", "--models", "last_value,drift,moving_average:3", "--horizon", "2")
    assert [one["model"] for one in found] == ["drift", "last_value", "moving_average:3"]
    assert list(found[0]) == FIELDS
    assert [one["mae"] for one in found] == [0.0, 2.0, 3.0]
    assert {(one["series"], one["horizon"]) for one in found} == {("ramp", 2)}
    assert all(one["fit_s"] >= 0 and one["forecast_ms"] >= 0 for one in found)


def test_overlapping_forecasts_are_averaged() -> None:
    (last,) = scores("ramp.csv", "--models", "last_value", "--horizon", "3", "--overlap", "mean", "--test-start", "20")
    assert last["mae"] == pytest.approx((1 + 1.5 + 8 * 2) / 10)


def test_the_table_and_the_split_are_shown() -> None:
    done = penstock("ramp.csv", "wave.csv", "--models", "drift", "--split", "5/1/2")
    words = " ".join(done.output.split())
    assert "ramp: 5 rows to train, 1 to validate, 2 to test (from row 6); 5/1/2 are days from the start" in words
    assert "wave: 120 rows to train, 24 to validate, 48 to test (from row 144)" in words
    assert "a day has 24 rows of 3600 s" in words
    assert "mean over 2 series" in words


def test_rows_that_are_missing_are_learnt_as_such_and_not_compared(user_folder: Path) -> None:
    """A file with a gap was refused."""
    whole = (user_folder / "wave.csv").read_text().splitlines(keepends=True)
    (user_folder / "gaps.csv").write_text("".join(whole[:50] + whole[53:271] + whole[272:]))
    models = "last_value,holt_winters,ridge,auto"
    done = penstock("gaps.csv", "--models", models, "--json", "scores.json", "--html", "page.html")
    words = " ".join(done.output.split())
    assert "to test (from row 240); 4 are missing, and not compared; 40/10/10" in words
    assert "no figures" not in words
    found = {one["model"]: one["mae"] for one in json.loads(Path("scores.json").read_text())}
    whole_mae = {one["model"]: one["mae"] for one in scores("wave.csv", "--models", models)}
    assert found.keys() == whole_mae.keys()
    assert found["last_value"] == pytest.approx(whole_mae["last_value"], rel=0.1)
    assert max(found.values()) < 20


def test_shares_are_said_where_there_are_too_few_days() -> None:
    assert "40/10/10 are shares of all rows" in " ".join(penstock("wave.csv", "--models", "drift").output.split())


def test_a_model_that_cannot_be_fitted_is_said_and_the_others_go_on() -> None:
    done = penstock("ramp.csv", "--models", "arima,drift", "--json", "scores.json")
    assert done.exit_code == 0
    assert "arima has no figures: forecaster 'arima': training needs at least 200 rates; got 20" in done.output
    assert {one["model"] for one in json.loads(Path("scores.json").read_text())} == {"drift", "last_value"}


def test_the_page_stands_alone() -> None:
    done = penstock("wave.csv", "ramp.csv", "--models", "drift,arima", "--html", "pages/page.html")
    assert done.exit_code == 0, done.output
    page = Path("pages/page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert page.count('src="data:image/png;base64,') == 2
    assert "Mean over all series" in page
    assert "http" not in page


def test_the_same_seed_gives_the_same_errors() -> None:
    arguments = ("wave.csv", "--models", "svr:window=12", "--seed", "3")
    one, two = ([(s["model"], s["smape"]) for s in scores(*arguments)] for _ in range(2))
    assert one == two


CASES = {
    "no file": (("gone.csv",), "trace 'gone.csv': the file must exist; nothing is there"),
    "a word": (("words.csv",), "trace 'words.csv' line 2: rate must be a number; got 'five'"),
    "a model": (
        ("wave.csv", "--models", "drifd"),
        "forecaster: no such name 'drifd'",
    ),
    "an option": (
        ("wave.csv", "--models", "drift:speed=3"),
        "forecaster 'drift': no such option 'speed'; known: window",
    ),
    "an option's value": (("wave.csv", "--models", "drift:1"), "window must be whole and at least 2; got 1"),
    "what was trained": (
        ("wave.csv", "--models", "drift,trained:folder=models,every=5"),
        "--models: 'trained' loads what was trained, maybe on the rows to test on; name the forecasters to compare",
    ),
    "no models": (("wave.csv", "--models", ","), "must be names separated by commas; got ','"),
    "a split": (("wave.csv", "--split", "4/1"), "--split: must be TRAIN/VALIDATION/TEST, as in 40/10/10; got '4/1'"),
    "both": (("wave.csv", "--split", "4/1/1", "--test-start", "5"), "give either --test-start ROW or --split PARTS"),
    "a start": (("wave.csv", "--test-start", "288"), "--test-start must be a row from 2 to 287, its last; got 288"),
    "a horizon": (("wave.csv", "--horizon", "0"), "the horizon must be at least 1 interval; got 0"),
    "a rule": (("wave.csv", "--overlap", "median"), "--overlap: must be mean, or left out; got 'median'"),
    "a day": (("wave.csv", "--day", "0"), "backtest: day must be whole and at least 1; got 0"),
    "twice": (("wave.csv", "./wave.csv"), "files must have different names; got 2 named 'wave'"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_said_in_one_sentence_before_anything_runs(case: str) -> None:
    arguments, words = CASES[case]
    done = penstock(*arguments, "--json", "scores.json")
    assert done.exit_code == 2
    assert done.output.startswith("error: ")
    assert words in " ".join(done.output.split())
    assert not Path("scores.json").exists()
