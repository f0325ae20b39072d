"""`penstock advise`: words, a table, settings, JSON and a picture from an event log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

import penstock
from penstock.advise import replay
from penstock.cli.main import app
from tests.unit.attached.stores import kept_store

LOG = Path(__file__).parents[1] / "advise" / "data" / "app-4.3"


def command(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that plan ahead take seconds."""
    monkeypatch.setattr(replay.POLICIES, "_makers", {n: replay.POLICIES._makers[n] for n in ("psps", "keda", "ds2")})


def test_advice_in_words_with_settings_and_a_picture(tmp_path: Path) -> None:
    done = command("advise", str(LOG), "--executors", "1..6", "--picture", str(tmp_path / "advice.png"))
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "Query 'slow' (every 2 s): 4,350 rows; a row takes 5." in said
    assert "As it was: 0.049 executor-hours; 42." in said
    assert "All the time 2 executors would do" in said
    assert 'keeper = penstock.attach(spark.streams.active, executors="1..6", target_ms=10000, late=0.01, ' in said
    assert "forecaster=None, td_s=5, cooldown_s=30)" in said
    assert all(f"{key} {value}" in said for key, value in penstock.executor_settings().items())
    assert (tmp_path / "advice.png").read_bytes().startswith(b"\x89PNG")


def test_advice_for_programs() -> None:
    done = command("advise", str(LOG), "--target-ms", "60000", "--json", "-")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["spark"] == "4.3.0"
    assert told["keeps_promise"] is True
    assert {one["policy"] for one in told["policies"]} == {"psps", "keda", "ds2"}
    assert told["queries"]["slow"]["cost"]["by_row_s"] == pytest.approx(0.0058, rel=0.01)
    assert told["as_it_was"]["executor_seconds"] == pytest.approx(176.9, abs=0.1)
    assert told["left_out"] == {}


def test_advice_from_a_keepers_store(tmp_path: Path) -> None:
    place = kept_store(tmp_path / "advice.db", mode="advise", first=6, until_s=200.0)
    done = command("advise", place)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "As it was: 0.33 executor-hours" in said
    assert "% less" in said
    assert "keeper = penstock.attach(query, " in said


def test_mistakes_are_sentences(tmp_path: Path) -> None:
    for arguments, said in (
        ([str(tmp_path / "none")], "no such file or folder"),
        ([str(LOG), "--executors", "0"], "executors must be a number or least..most"),
        ([str(LOG), "--late", "2"], "promise: late must be above 0 and at most 1"),
        ([str(LOG), "--target-ms", "1000"], "query 'slow': target_ms must be above its trigger's interval of 2000 ms"),
    ):
        done = command("advise", *arguments)
        assert (done.exit_code, said in " ".join(done.output.split())) == (2, True), done.output
