"""The model folder: what is written is read back, and whatever is wrong with a file is said with its name."""

from __future__ import annotations

import json
import os
import pickle
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.forecast.drift import Drift
from penstock.forecast.last_value import LastValue
from penstock.forecast.trained import model_file
from penstock.forecast.trained.model_file import Header, packed
from penstock.forecast.trained.model_folder import INDEX, ModelFolder, best_of

HEADER = Header(
    series="tweets",
    spec="drift",
    interval_s=5.0,
    day=17280,
    rows=3,
    trained_at="2026-01-01T00:00:00+00:00",
    errors={"smape": 3.0, "rmse": 2.0, "mae": 1.0},
    run="twitter-1",
    interval=3,
)


def drift(*rates):
    model = Drift()
    for rate in rates:
        model.learn(rate)
    return model


MODEL = packed(drift(10, 20, 30))


@pytest.fixture
def folder(tmp_path):
    folder = ModelFolder(tmp_path / "models")
    folder.write((HEADER, MODEL))
    return folder


def only_file(folder):
    return next(folder.path.glob("*.model"))


class TestWhatIsWritten:
    def test_is_there(self, folder, tmp_path):
        assert folder.has("tweets")
        assert not folder.has("words")
        assert not ModelFolder(tmp_path / "empty").has("tweets")

    def test_is_read_back_with_its_header(self, folder):
        trained = folder.read("tweets")
        assert trained.header == HEADER
        assert trained.forecaster.forecast(2).tolist() == [40.0, 50.0]
        assert folder.series() == ("tweets",)
        assert folder.models("tweets") == {"drift": HEADER}

    def test_has_an_index_for_people(self, folder):
        index = json.loads((folder.path / INDEX).read_text())
        shelf = index["series"]["tweets"]
        assert shelf["best"] == "drift"
        assert shelf["models"]["drift"]["file"] == only_file(folder).name
        assert shelf["models"]["drift"]["header"]["errors"] == {"smape": 3.0, "rmse": 2.0, "mae": 1.0}
        assert (folder.path / INDEX).read_text().count("\n") > 10  # one figure a line

    def test_leaves_nothing_half_done_beside_it(self, folder):
        assert {path.name for path in folder.path.iterdir()} == {INDEX, ".lock", only_file(folder).name}

    def test_takes_the_place_of_the_model_of_the_same_series_and_spec(self, folder):
        folder.write((replace(HEADER, rows=9), packed(drift(1, 1))))
        assert folder.read("tweets").header.rows == 9
        assert len(list(folder.path.glob("*.model"))) == 1

    def test_many_at_once(self, folder):
        folder.write(*((replace(HEADER, series=f"s{n}"), MODEL) for n in range(20)))
        assert len(folder.series()) == 21

    @given(names=st.sets(st.text(min_size=1, max_size=60), min_size=2, max_size=4))
    @settings(max_examples=25)
    def test_any_name_of_a_series_has_a_file_of_its_own(self, tmp_path_factory, names):
        folder = ModelFolder(tmp_path_factory.mktemp("names"))
        folder.write(*((replace(HEADER, series=name), packed(drift(n, n))) for n, name in enumerate(names)))
        for n, name in enumerate(names):
            assert folder.read(name).forecaster.forecast(1).tolist() == [float(n)]

    def test_survives_two_trainings_at_a_time(self, folder):
        """Each reads the index, adds to it and writes it: without a lock one of them would lose what it added."""
        writers = [threading.Thread(target=write_some, args=(folder, f"w{n}")) for n in range(2)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert len(folder.series()) == 1 + 2 * 15


def write_some(folder, name):
    for n in range(15):
        folder.write((replace(HEADER, series=f"{name}-{n}"), MODEL))


class TestTheBest:
    def test_is_the_one_of_least_smape(self, folder):
        folder.write((replace(HEADER, spec="last_value", errors={"smape": 2.0, "rmse": 99.0}), packed(LastValue())))
        assert folder.best("tweets").spec == "last_value"
        assert isinstance(folder.read("tweets").forecaster, LastValue)
        assert isinstance(folder.read("tweets", "drift").forecaster, Drift)

    def test_of_equal_ones_has_the_least_rmse(self):
        one, two = (
            replace(HEADER, spec=name, errors={"smape": 1.0, "rmse": rmse}) for name, rmse in (("a", 2), ("b", 1))
        )
        assert best_of([one, two]) == two

    def test_has_a_figure_if_any_has(self):
        unknown = replace(HEADER, spec="a", errors={})
        assert best_of([unknown, HEADER]) == HEADER
        assert best_of([unknown]) == unknown

    def test_is_of_the_last_training_however_lucky_an_earlier_one_was(self):
        """Errors of different days are not comparable, and a lucky old model must not stay for ever."""
        lucky = replace(HEADER, spec="a", trained_at="2026-01-01T12:00:00", errors={"smape": 0.1})
        later = replace(HEADER, spec="b", trained_at="2026-01-01T14:00:00+01:00", errors={"smape": 5.0})
        assert best_of([lucky, later]) == later

    def test_another_spec_is_named_with_a_hint(self, folder):
        with pytest.raises(InputError, match="no such name 'drfit'; known: drift; did you mean 'drift'"):
            folder.read("tweets", "drfit")


class TestTheMark:
    def test_changes_with_the_model_only(self, folder):
        mark = folder.changed_since("tweets", None)
        assert mark is not None
        assert folder.changed_since("tweets", mark) is None
        folder.write((replace(HEADER, series="other"), MODEL))
        assert folder.changed_since("tweets", mark) is None
        folder.write((HEADER, MODEL))
        assert folder.changed_since("tweets", mark) not in (None, mark)

    def test_changes_when_another_model_is_best(self, folder):
        mark = folder.changed_since("tweets", None)
        folder.write((replace(HEADER, spec="last_value", errors={"smape": 1.0}), packed(LastValue())))
        assert folder.changed_since("tweets", mark) is not None

    def test_of_a_file_that_is_gone(self, folder):
        only_file(folder).unlink()
        with pytest.raises(InputError, match=r"model file '.*\.model': must exist; nothing is there"):
            folder.changed_since("tweets", None)


class TestWhatIsWrong:
    def refused(self, folder, message):
        with pytest.raises(InputError, match=re.escape(message)) as caught:
            folder.read("tweets")
        return str(caught.value)

    def test_no_folder(self, tmp_path):
        self.refused(ModelFolder(tmp_path / "gone"), f"model folder '{tmp_path / 'gone'}': must have an index")

    def test_no_such_series(self, folder):
        with pytest.raises(InputError, match="must have a model of series 'tweats'; has tweets"):
            folder.best("tweats")

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"series": {"tweets": 3}}', '{"format": 2, "series": {"t": {}}}'])
    def test_a_broken_index(self, folder, text):
        (folder.path / INDEX).write_text(text)
        assert INDEX in self.refused(folder, "index '")
        with pytest.raises(InputError, match="index '"):
            folder.prepare()

    def test_an_index_of_another_version(self, folder):
        (folder.path / INDEX).write_text('{"format": 1, "series": {}}')
        self.refused(folder, "must be whole and of version 2; got version 1: train anew")

    def test_a_missing_file(self, folder):
        only_file(folder).unlink()
        self.refused(folder, "must be a file that can be read; No such file")

    @pytest.mark.parametrize("left", [0, 5, 60, -1])
    def test_a_file_that_is_cut_off(self, folder, left):
        path = only_file(folder)
        path.write_bytes(path.read_bytes()[:left])
        assert str(path) in self.refused(folder, "model file '")

    def test_one_byte_that_is_another(self, folder):
        path = only_file(folder)
        content = bytearray(path.read_bytes())
        content[-2] ^= 1
        path.write_bytes(content)
        self.refused(folder, "must be whole; its checksum is wrong")

    def test_a_foreign_file(self, folder):
        only_file(folder).write_bytes(pickle.dumps(drift(1, 2)))
        self.refused(folder, "must begin with 'penstock model'; got another kind of file")

    def test_another_version_of_penstock(self, folder, monkeypatch):
        monkeypatch.setattr(model_file, "version", lambda _name: "99.0")
        self.refused(folder, "its penstock must be 99.0; got")

    def test_another_version_of_the_file(self, folder, monkeypatch):
        monkeypatch.setattr(model_file, "FORMAT", 3)
        self.refused(folder, "its format must be 3; got 2: train it again")

    def test_the_file_of_another_series(self, folder):
        folder.write((replace(HEADER, series="other"), MODEL))
        files = sorted(folder.path.glob("*.model"))
        assert files[1].name.startswith("tweets")
        files[1].write_bytes(files[0].read_bytes())
        self.refused(folder, "must be of series 'tweets'; got 'other'")

    def test_what_cannot_be_unpickled(self, folder):
        folder.write((HEADER, b"no pickle at all"))
        self.refused(folder, "must hold a forecaster; got UnpicklingError")

    def test_what_is_no_forecaster(self, folder):
        folder.write((HEADER, pickle.dumps({"a": 1})))
        self.refused(folder, "must hold a forecaster; got a dict")

    def test_a_date_that_is_none(self, folder):
        with pytest.raises(InputError, match="trained_at must be an ISO date; got 'yesterday'"):
            folder.write((replace(HEADER, trained_at="yesterday"), MODEL))

    def test_a_place_that_cannot_be_written(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(InputError, match="must be a folder that can be written; "):
            ModelFolder(tmp_path / "file").prepare()

    def test_a_full_disk_leaves_the_old_model(self, folder, monkeypatch):
        def full(_descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match="cannot be written; No space left on device"):
            folder.write((replace(HEADER, rows=9), MODEL))
        assert folder.read("tweets").header.rows == 3
        assert not [path for path in Path(folder.path).iterdir() if path.name.startswith(".tweets")]
