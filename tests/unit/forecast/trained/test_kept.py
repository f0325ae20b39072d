"""What a training keeps, and when: a loop that reads the folder meanwhile must find whole trainings only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from penstock.forecast.trained.job import History, Job, Outcome, train_here
from penstock.forecast.trained.kept import Kept
from penstock.forecast.trained.model_folder import ModelFolder

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

    def test_older_ones_that_stay_are_named(self, folder: ModelFolder) -> None:
        a_training(folder, day=1, models=1).keep([outcome("x", "regression")])
        kept = a_training(folder)
        kept.keep([outcome("x", "last_value")])
        kept.keep_rest()
        assert kept.given_up == ["x"]
        assert kept.as_json()["series"]["x"]["best"] is None

    def test_nothing_is_given_up_where_there_are_no_older_ones(self, folder: ModelFolder) -> None:
        kept = a_training(folder)
        kept.keep([outcome("x", "drift"), failed("y", "drift")])
        kept.keep_rest()
        assert kept.given_up == []
        assert [one.job.whose for one in kept.failed] == [("y", "drift")]
        assert kept.as_json()["series"]["x"]["best"] == "drift"

    @pytest.mark.parametrize("end", [KeyboardInterrupt, RuntimeError])
    def test_what_has_arrived_is_kept_however_it_ends(self, folder: ModelFolder, end: type[BaseException]) -> None:
        def arriving() -> Iterator[list[Outcome]]:
            yield [outcome("x", "drift")]
            raise end

        kept, seen = a_training(folder), []
        with pytest.raises(end):
            kept.keep_all(arriving(), lambda now: seen.append(now.trained))
        assert folder.best("x").spec == "drift"
        assert (seen, kept.trained) == ([0], 1)
