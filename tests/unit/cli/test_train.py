"""`penstock train`: what it reads, what it writes and what it says; Spark itself is in tests/spark."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from penstock.cli import training
from penstock.cli.histories import histories_of
from penstock.cli.main import app
from penstock.engine.training import Outcome, _cause, train_here
from penstock.forecast.models import ModelFolder
from penstock.forecast.registry import FORECASTERS
from penstock.forecast.training import Job
from penstock.metrics.rows import IntervalRecord, IntervalRow, OperatorRow, RunRow
from penstock.metrics.store import Store


@pytest.fixture(autouse=True)
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Job]]:
    """What was to be trained on Spark, and is trained here."""
    calls: list[Sequence[Job]] = []

    @contextmanager
    def here(jobs: Sequence[Job], cores: int | None, log_file: Path) -> Iterator[Iterator[list[Outcome]]]:
        calls.append(jobs)
        yield ([train_here(job)] for job in jobs)

    monkeypatch.setattr(training, "on_spark", here)
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

    monkeypatch.setattr(training, "on_spark", stopped)
    result = penstock("ramp.csv", "flat.csv", "--models", "drift", "--out", "m")
    assert result.exit_code == 130
    assert result.output.endswith("stopped\n")
    assert ModelFolder("m").series() == ("ramp",)


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
    "no day": (("ramp.csv", "--day", "0"), "--day must be at least 1 row; got 0"),
    "no cores": (("ramp.csv", "--cores", "0"), "--cores must be at least 1; got 0"),
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


def interval(number: int, entered: int, interval_s: float = 2.0) -> IntervalRow:
    return IntervalRow(
        number=number,
        time_s=2.0 * number,
        interval_s=interval_s,
        source_input={"tweets": entered},
        entered=entered,
        source_output=0.0,
        replicas=1,
        backlog=0,
        dropped=0,
        latency_count=0,
        latency_mean_ms=None,
        latency_p50_ms=None,
        latency_p99_ms=None,
    )


def operator(number: int, name: str, received: int, incomplete: str | None = None) -> OperatorRow:
    return OperatorRow(
        number=number,
        operator=name,
        received=received,
        received_by={},
        processed=0,
        backlog=0,
        dropped=0,
        replicas=1,
        pool=1,
        busy_share=0.0,
        cpu_share=0.0,
        execution_time_s=None,
        incomplete=incomplete,
    )


class TestAStore:
    @pytest.fixture(autouse=True)
    def store(self, tmp_path: Path) -> None:
        """Interval 3 was not recorded; in 4 nothing can be trusted, in 5 one operator; 6 took longer."""
        store = Store("metrics.db")
        for name, settings in (("old", {}), ("new", {"speedup": 60.0})):
            started_at = "2026-01-02T00:00:00Z" if name == "new" else "2026-01-01T00:00:00Z"
            store.start_run(
                RunRow(run=name, topology="t", policy="psps", td_s=2.0, started_at=started_at, settings=settings)
            )
        for number in (1, 2, 4, 5, 6):
            length_s = 4.0 if number == 6 else 2.0
            doubts = {4: ("clock", "clock"), 5: ("stale", None)}.get(number, (None, None))
            operators = (operator(number, "a", 20 * number, doubts[0]), operator(number, "b", 2 * number, doubts[1]))
            seen = interval(number, 10 * number, length_s)
            if number == 4:
                seen = replace(seen, source_input={})
            store.write("new", IntervalRecord(interval=seen, operators=operators))
        store.write("old", IntervalRecord(interval=interval(1, 8)))
        store.close()

    def test_gives_the_rates_of_the_last_run(self) -> None:
        found = {one.series: one for one in histories_of(["metrics.db"])}
        nan = math.nan
        expected = {
            "tweets": [5, 10, nan, nan, 25, 15],
            "a": [10, 20, nan, nan, nan, 30],
            "b": [1, 2, nan, nan, 5, 3],
        }
        assert found.keys() == expected.keys()
        for series, rates in expected.items():
            np.testing.assert_array_equal(found[series].rates, rates)
            assert (found[series].run, found[series].interval, found[series].interval_s) == ("new", 6, 2.0)
            assert found[series].day == 720  # of a day played 60 times faster

    def test_gives_another_run_by_name(self) -> None:
        (history,) = histories_of(["sqlite:///metrics.db"], run="old")
        assert (history.series, history.rates.tolist(), history.day) == ("tweets", [4.0], 43200)

    def test_an_unknown_run_is_said_with_a_hint(self) -> None:
        result = penstock("metrics.db", "--run", "nwe", "--models", "drift")
        assert result.output == (
            "error: store 'metrics.db', run: no such name 'nwe'; known: old, new; did you mean 'new'?\n"
        )

    def test_its_models_say_up_to_where(self) -> None:
        assert penstock("metrics.db", "--models", "last_value", "--out", "m").exit_code == 0
        header = ModelFolder("m").best("tweets")
        assert (header.run, header.interval, header.rows) == ("new", 6, 6)

    def test_without_a_run(self) -> None:
        Store("empty.db").close()
        assert "must have a run; has none" in penstock("empty.db", "--models", "drift").output

    def test_a_run_without_intervals(self) -> None:
        store = Store("bare.db")
        store.start_run(RunRow(run="r", topology="t", policy="p", td_s=1.0, started_at="2026-01-01"))
        store.close()
        assert "run 'r': must have intervals to learn from; has none" in penstock("bare.db", "--models", "drift").output

    def test_a_file_that_is_no_store(self, tmp_path: Path) -> None:
        (tmp_path / "text.db").write_text("not a database, but long enough to be looked at" * 9)
        assert "cannot be opened; file is not a database" in penstock("text.db", "--models", "drift").output


def test_what_spark_says_is_cut_to_the_cause() -> None:
    message = (
        "An error occurred while calling collectAndServe.\n: org.apache.spark.SparkException: Job aborted due to stage "
        "failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0 (TID 3) (host): "
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider setting things.\n\tat x"
    )
    assert _cause(message) == "Python worker exited unexpectedly (crashed)"
    assert _cause("out of memory\nand more") == "out of memory"
