from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.forecast.evaluation.series import Split, rows_per_day, split_at, split_in_parts
from penstock.workload import Trace, load_trace


def series(rows: int, step_s: float = 3600.0) -> Trace:
    return Trace("s", step_s, np.ones(rows))


def test_days_of_a_long_series_are_counted_from_its_start():
    assert split_in_parts(series(61 * 24)) == (Split(960, 240, 240), "days")
    assert split_in_parts(series(60 * 24)) == (Split(960, 240, 240), "days")


@pytest.mark.parametrize(
    ("rows", "step_s"), [(60 * 24 - 1, 3600.0), (100_000, 7000.0)], ids=["too short", "no whole day"]
)
def test_otherwise_they_are_shares(rows, step_s):
    split, meant = split_in_parts(series(rows, step_s))
    assert meant == "shares"
    assert split.end == rows
    assert split.train / rows == pytest.approx(4 / 6, abs=1e-3)


@given(rows=st.integers(10, 5000), train=st.integers(1, 50), validation=st.integers(0, 50), test=st.integers(1, 50))
def test_shares_use_every_row_once(rows, train, validation, test):
    try:
        split, _ = split_in_parts(series(rows, 7001.0), f"{train}/{validation}/{test}")
    except InputError:
        assert rows * min(train, test) / (train + validation + test) < 1
    else:
        assert split.end == rows
        assert min(split.train, split.test) >= 1


@pytest.mark.parametrize("text", ["40/10", "a/b/c", "0/10/10", "40/10/0", "40/-1/10", "", "inf/1/1"])
def test_a_split_that_cannot_be_read(text):
    with pytest.raises(InputError, match="--split: must be TRAIN/VALIDATION/TEST, as in 40/10/10; got"):
        split_in_parts(series(100), text)


def test_a_series_too_short_for_the_split():
    with pytest.raises(InputError, match="series 's': must be long enough to train and test on; got 3 rows"):
        split_in_parts(series(3), "98/1/1")


def test_the_published_test_parts_begin_where_the_user_says():
    assert split_at(series(504), 403) == Split(322, 81, 101)


@pytest.mark.parametrize("row", [0, 1, 504, -3])
def test_a_test_part_outside_the_series(row):
    with pytest.raises(InputError, match=f"--test-start must be a row from 2 to 503, its last; got {row}"):
        split_at(series(504), row)


@pytest.mark.parametrize(("step_s", "rows"), [(300.0, 288), (86_400.0, 1), (200_000.0, 1), (5.0, 17_280)])
def test_rows_of_a_day(step_s, rows):
    assert rows_per_day(step_s) == rows


def test_both_kinds_of_files(tmp_path: Path):
    (tmp_path / "a.csv").write_text("time_s,rate\n0,5\n60,6\n")
    (tmp_path / "b.csv").write_text("date,rate\n2020-01-01 00:00:00,5\n2020-01-01 00:15:00,6\n")
    assert (load_trace(tmp_path / "a.csv").step_s, load_trace(tmp_path / "b.csv").step_s) == (60.0, 900.0)
