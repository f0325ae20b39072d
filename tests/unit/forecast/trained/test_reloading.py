"""The forecaster `trained`: it takes over what was trained elsewhere, and nothing that is wrong there stops it."""

from __future__ import annotations

import logging
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.analyze import analyzer_for
from penstock.errors import InputError
from penstock.forecast.base import NotReady
from penstock.forecast.drift import Drift
from penstock.forecast.registry import FORECASTERS, forecaster_for
from penstock.forecast.trained import reloading
from penstock.forecast.trained.model_file import Header, Trained, packed
from penstock.forecast.trained.model_folder import ModelFolder
from penstock.forecast.trained.reloading import Followed, Reloading, trained
from penstock.policy.guards import guarded
from penstock.policy.psps import Psps
from penstock.testing.loads import snapshot


class Listening:
    """Remembers what it learnt, and forecasts a number of its own: one can see which model is at work."""

    def __init__(self, number: float, needs: int = 0) -> None:
        self.number, self.needs, self.learnt = number, needs, []

    @property
    def ready(self) -> bool:
        return len(self.learnt) >= self.needs

    def learn(self, rate: float) -> None:
        self.learnt.append(rate)

    def forecast(self, horizon: int):
        return np.full(horizon, self.number)


class Failing(Listening):
    def learn(self, rate: float) -> None:
        raise ZeroDivisionError("learnt too much")


class Speechless(Listening):
    def forecast(self, horizon: int):
        raise ValueError("nothing to say")


class Shelf:
    """A model folder without a disk."""

    def __init__(self) -> None:
        self.model: Trained | None = None
        self.trouble: Exception | None = None
        self.mark = 0
        self.reads = 0

    def put(self, forecaster, **header) -> None:
        facts = {
            "series": "tweets",
            "spec": "drift",
            "interval_s": 5.0,
            "day": 288,
            "rows": 10,
            "trained_at": "2026-01-01",
        }
        self.model = Trained(Header(**(facts | header)), forecaster)
        self.mark += 1

    def changed_since(self, series, mark):
        if self.trouble is not None:
            raise self.trouble
        if self.model is None:
            raise InputError(f"no model of {series}")
        new = ("file", 0, self.mark)
        return new if new != mark else None

    def read(self, series):
        self.reads += 1
        return self.model


@pytest.fixture
def shelf():
    return Shelf()


def learn(forecaster, *rates):
    for rate in rates:
        forecaster.learn(rate)


def following(shelf, run=None, every=3, fallback=None):
    return Reloading(shelf, Followed("tweets", run), every=every, fallback=fallback)


class TestTheFirstModel:
    def test_is_loaded_with_the_first_rate(self, shelf):
        model = Listening(7.0)
        shelf.put(model)
        forecaster = following(shelf)
        assert not forecaster.ready
        assert shelf.reads == 0  # making it touches no disk
        learn(forecaster, 10.0)
        assert forecaster.ready
        assert forecaster.forecast(2).tolist() == [7.0, 7.0]
        assert model.learnt == [10.0]
        assert forecaster.header == shelf.model.header

    def test_is_waited_for(self, shelf):
        forecaster = following(shelf)
        learn(forecaster, 1.0, 2.0)
        with pytest.raises(NotReady) as caught:
            forecaster.forecast(1)
        assert str(caught.value) == (
            "forecaster 'trained': needs a model of series 'tweets'; has none yet (no model of tweets)"
        )
        model = Listening(7.0)
        shelf.put(model)
        learn(forecaster, 3.0, 4.0)
        assert forecaster.forecast(1).tolist() == [7.0]
        assert model.learnt == [1.0, 2.0, 3.0, 4.0]

    def test_takes_over_from_the_fallback(self, shelf):
        fallback = Listening(1.0)
        forecaster = following(shelf, fallback=fallback)
        learn(forecaster, 10.0, 20.0)
        assert forecaster.forecast(1).tolist() == [1.0]
        shelf.put(Listening(7.0))
        learn(forecaster, 30.0, 40.0, 50.0)
        assert forecaster.forecast(1).tolist() == [7.0]
        assert fallback.learnt == [10.0, 20.0, 30.0, 40.0]  # and is let go


class TestANewerModel:
    def test_is_found_after_so_many_rates_and_not_before(self, shelf):
        shelf.put(Listening(1.0))
        forecaster = following(shelf, every=3)
        learn(forecaster, 1.0)
        shelf.put(Listening(2.0))
        learn(forecaster, 2.0, 3.0)
        assert forecaster.forecast(1).tolist() == [1.0]
        learn(forecaster, 4.0)
        assert forecaster.forecast(1).tolist() == [2.0]

    def test_that_is_not_newer_is_not_read(self, shelf):
        shelf.put(Listening(1.0))
        learn(following(shelf), *range(100))
        assert shelf.reads == 1

    def test_of_another_run_learns_all_rates_that_are_kept(self, shelf):
        model = Listening(2.0)
        forecaster = following(shelf, run="today")
        learn(forecaster, *range(3))
        shelf.put(model, run="yesterday", interval=2)
        learn(forecaster, 3)
        assert model.learnt == [0, 1, 2, 3]

    def test_of_the_same_run_learns_later_rates_only(self, shelf):
        model = Listening(2.0)
        forecaster = following(shelf, run="today")
        learn(forecaster, 1, 2, 3)
        shelf.put(model, run="today", interval=2)
        learn(forecaster, 4)
        assert model.learnt == [3, 4]

    def test_of_the_same_run_may_know_everything_already(self, shelf):
        model = Listening(2.0)
        forecaster = following(shelf, run="today")
        learn(forecaster, 1, 2, 3)
        shelf.put(model, run="today", interval=4)
        learn(forecaster, 4)
        assert model.learnt == []
        learn(forecaster, 5)
        assert model.learnt == [5]

    def test_rates_that_are_forgotten_are_missing_to_it(self, shelf, monkeypatch):
        """Left out, they would shift the time of day."""
        monkeypatch.setattr(reloading, "KEPT", 3)
        model = Listening(2.0)
        forecaster = following(shelf, run="today", every=7)
        learn(forecaster, 1, 2, 3, 4, 5, 6, 7)
        shelf.put(model, run="today", interval=2)
        learn(forecaster, 8)
        assert [None if math.isnan(rate) else rate for rate in model.learnt] == [None, None, None, 6, 7, 8]

    def test_catches_up_a_little_at_a_time(self, shelf, monkeypatch):
        """4,096 rates at once would hold up the loop for seconds where a model learns slowly."""
        monkeypatch.setattr(reloading, "AT_ONCE", 4)
        old, new = Listening(1.0), Listening(2.0)
        shelf.put(old)
        forecaster = following(shelf, every=10)
        learn(forecaster, *range(10))
        shelf.put(new)
        at_work = []
        for rate in range(10, 15):
            before = len(new.learnt)
            learn(forecaster, rate)
            assert len(new.learnt) - before <= 4
            at_work.append(forecaster.forecast(1)[0])
        assert at_work == [1.0, 1.0, 1.0, 2.0, 2.0]
        assert new.learnt == list(range(15))
        assert old.learnt == list(range(14))

    def test_takes_over_when_it_is_ready(self, shelf):
        shelf.put(Listening(1.0))
        forecaster = following(shelf, every=2)
        learn(forecaster, 0, 0)
        shelf.put(Listening(2.0, needs=5))
        at_work = []
        for _ in range(4):
            learn(forecaster, 0)
            at_work.append(forecaster.forecast(1)[0])
        assert at_work == [1.0, 1.0, 2.0, 2.0]

    @given(
        before=st.integers(0, 60),
        every=st.integers(1, 20),
        at_once=st.integers(2, 10),
        unseen=st.integers(0, 60),
        after=st.integers(1, 120),
    )
    @settings(max_examples=60)
    def test_has_learnt_every_later_rate_once_and_in_order(self, before, every, at_once, unseen, after):
        shelf, model = Shelf(), Listening(2.0)
        trained_up_to = max(0, before - unseen)
        forecaster = following(shelf, run="today", every=every)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reloading, "AT_ONCE", at_once)
            learn(forecaster, *range(1, before + 1))
            shelf.put(model, run="today", interval=trained_up_to)
            learn(forecaster, *range(before + 1, before + after + 1))
        expected = list(range(trained_up_to + 1, before + after + 1))
        assert model.learnt == expected[: len(model.learnt)]
        if forecaster.header is not None:
            assert model.learnt[-1:] == expected[-1:]


class TestNothingStopsIt:
    @pytest.fixture
    def forecaster(self, shelf):
        shelf.put(Listening(1.0))
        forecaster = following(shelf, every=2)
        learn(forecaster, 10.0)
        return forecaster

    @pytest.mark.parametrize("trouble", [InputError("model file 'x': must be whole"), OSError("the disk is gone")])
    def test_a_file_that_cannot_be_read_is_said_once(self, shelf, forecaster, caplog, trouble):
        shelf.trouble = trouble
        learn(forecaster, *[20.0] * 20)
        assert forecaster.forecast(1).tolist() == [1.0]
        assert [record.getMessage() for record in caplog.records] == [
            f"series 'tweets': {trouble}; goes on with model 'drift' of 2026-01-01"
        ]

    def test_it_is_said_again_after_it_was_well(self, shelf, forecaster, caplog):
        for trouble in (OSError("gone"), None, OSError("gone")):
            shelf.trouble = trouble
            learn(forecaster, 20.0, 20.0)
        assert len(caplog.records) == 2

    def test_a_whole_file_later_is_taken(self, shelf, forecaster):
        shelf.trouble = InputError("half a file")
        learn(forecaster, 20.0, 20.0)
        shelf.trouble = None
        shelf.put(Listening(2.0))
        learn(forecaster, 20.0, 20.0)
        assert forecaster.forecast(1).tolist() == [2.0]

    @pytest.mark.parametrize("broken", [Failing(2.0), Speechless(2.0)])
    def test_a_model_that_cannot_go_on_does_not_take_over(self, shelf, forecaster, caplog, broken):
        shelf.put(broken, trained_at="2026-02-02")
        learn(forecaster, *[20.0] * 20)
        assert forecaster.forecast(1).tolist() == [1.0]
        assert shelf.reads == 2  # it is not tried again and again
        assert len(caplog.records) == 1
        assert "the model of 2026-02-02 cannot go on: " in caplog.records[0].getMessage()

    def test_a_model_of_other_rows_is_refused(self, shelf, forecaster, caplog):
        shelf.put(Listening(2.0), day=24)
        learn(forecaster, *[20.0] * 20)
        assert forecaster.forecast(1).tolist() == [1.0]
        assert len(caplog.records) == 1
        assert "a day must have 288 rows, as it has here; got 24: train it with --day 288" in caplog.text

    def test_a_new_model_is_noted(self, shelf, forecaster, caplog):
        shelf.put(Listening(2.0), trained_at="2026-02-02")
        with caplog.at_level(logging.INFO, logger="penstock"):
            learn(forecaster, 20.0, 20.0)
        assert caplog.messages == ["series 'tweets': now with model 'drift' of 2026-02-02"]


class TestOnDisk:
    def test_a_loop_swaps_models_that_a_training_writes(self, tmp_path):
        folder, header = (
            ModelFolder(tmp_path),
            Header(series="tweets", spec="drift", interval_s=5, day=288, rows=2, trained_at="2026-01-01"),
        )
        forecaster = trained(folder=str(tmp_path), every=1, series="tweets")
        learn(forecaster, 10.0)
        for window in (3, 5):
            folder.write((header, packed(Drift(window))))
            learn(forecaster, 20.0)
            assert forecaster.header == header
        folder.path.joinpath(next(tmp_path.glob("*.model"))).write_bytes(b"broken")
        learn(forecaster, 40.0)
        assert forecaster.forecast(1).tolist() == [50.0]  # (40 − 10) / 3 a step

    def test_each_source_of_a_loop_gets_its_own_model(self, tmp_path):
        for series, rates in (("x", (10, 20)), ("y", (50, 40))):
            model = Drift()
            learn(model, *rates)
            header = Header(
                series=series,
                spec="drift",
                interval_s=300,
                day=288,
                rows=2,
                trained_at="2026-01-01",
                run="r",
                interval=0,
            )
            ModelFolder(tmp_path).write((header, packed(model)))
        analyzer = analyzer_for(guarded(Psps(use_forecast=True)), f"trained:{tmp_path}", 300.0, run="r")
        forecast = analyzer.analyze(snapshot({"x": 30, "y": 30}, []))
        assert forecast.rates == {"x": (40.0,), "y": (20.0,)}

    def test_goes_on_the_same_after_pickling(self, tmp_path):
        header = Header(series="tweets", spec="drift", interval_s=5, day=288, rows=2, trained_at="2026-01-01")
        ModelFolder(tmp_path).write((header, packed(Drift())))
        forecaster = trained(folder=str(tmp_path), every=1, series="tweets")
        learn(forecaster, 10.0, 20.0)
        copy = pickle.loads(pickle.dumps(forecaster))
        learn(copy, 30.0)
        assert copy.forecast(1).tolist() == [40.0]

    def test_its_size_does_not_grow(self, shelf):
        one, two = following(ModelFolder("none")), following(ModelFolder("none"))
        learn(one, 1.0)
        learn(two, *range(5000))
        assert len(pickle.dumps(two)) == len(pickle.dumps(one))


class TestTheMaker:
    def test_the_loop_tells_it_the_series_the_run_and_the_day(self):
        made = forecaster_for("trained:every=9", interval_s=5.0, day_s=1440.0, series="tweets", run="r1")
        assert made.followed == Followed("tweets", "r1", 288)
        assert made.every == 9

    def test_what_the_user_says_goes_first(self):
        made = forecaster_for("trained:series=all,day=24", interval_s=5.0, day_s=1440.0, series="tweets")
        assert made.followed == Followed("all", None, 24)

    def test_before_there_is_a_model_it_forecasts_with_auto(self, monkeypatch):
        monkeypatch.setitem(FORECASTERS._makers, "auto", (lambda day: Listening(day), None))
        forecaster = trained(folder="nowhere", series="tweets", day=24)
        learn(forecaster, 1.0)
        assert forecaster.forecast(1).tolist() == [24.0]

    def test_without_auto_it_waits(self, monkeypatch):
        monkeypatch.delitem(FORECASTERS._makers, "auto", raising=False)
        forecaster = trained(folder="nowhere", series="tweets")
        learn(forecaster, 1.0)
        with pytest.raises(NotReady, match=r"has none yet \(model folder 'nowhere': must have an index"):
            forecaster.forecast(1)

    @pytest.mark.parametrize("every", [0, -1])
    def test_it_looks_at_least_now_and_then(self, every):
        with pytest.raises(InputError, match="forecaster 'trained': every must be whole and at least 1; got"):
            trained(every=every)

    @pytest.mark.parametrize("rate", [-1.0, math.inf])
    def test_it_refuses_what_is_no_rate(self, shelf, rate):
        with pytest.raises(InputError, match="a rate must be a number of at least 0"):
            following(shelf).learn(rate)
