from __future__ import annotations

import gzip
import math
from pathlib import Path
from time import process_time

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.workload import Trace, constant, data_file, data_folder, load_trace, save_trace


def written(folder: Path, text: str) -> Path:
    path = folder / "x.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "time_s,rate\n0,1\n60,2.5\n120,0\n",
        "time_s,rate\r\n0,1\r\n60,2.5\r\n120,0\r\n\r\n",
        "\ufefftime_s, rate\n\n3600, 1\n3660 ,2.5\n3720,0",
        "date,rate\n2019-03-08 00:00:00,1\n2019-03-08 00:01:00,2.5\n2019-03-08 00:02:00,0\n",
        "date,rate\n2019-03-08T00:00:00Z,1\n2019-03-08T00:01:00Z,2.5\n2019-03-08T01:02:00+01:00,0\n",
        '"time_s","rate"\n"0","1"\n"60","2.5"\n"120","0"\n',
    ],
)
def test_the_ways_to_write_a_trace(tmp_path, text):
    trace = load_trace(written(tmp_path, text))
    assert (trace.name, trace.step_s, trace.rates.tolist()) == ("x", 60.0, [1.0, 2.5, 0.0])


def test_times_that_were_rounded_are_regular(tmp_path):
    trace = load_trace(str(written(tmp_path, "time_s,rate\n0,1\n0.333,1\n0.667,1\n1.0,1\n")))
    assert trace.step_s == pytest.approx(1 / 3)


def test_rows_that_are_missing(tmp_path):
    """Real series have gaps, and were refused; played, their rates lie on a line between those beside them."""
    trace = load_trace(written(tmp_path, "time_s,rate\n0,1\n60,2\n240,8\n300,4\n420,6\n"))
    assert (trace.step_s, trace.missing, trace.duration_s) == (60.0, (2, 3, 6), 480.0)
    assert trace.rates.tolist() == [1.0, 2.0, 4.0, 6.0, 8.0, 4.0, 5.0, 6.0]
    assert [step for step, rate in enumerate(trace.measured) if math.isnan(rate)] == [2, 3, 6]
    assert trace.note == "3 of 8 steps are missing, and interpolated"
    assert trace.limited(240.0).missing == trace.scaled(10.0).limited(240.0).missing == (2, 3)
    assert trace.window(180.0, 480.0).missing == (0, 3)
    assert trace != Trace(trace.name, trace.step_s, trace.rates)


def test_times_that_were_rounded_may_have_gaps(tmp_path):
    text = "time_s,rate\n" + "".join(f"{n / 3:.3f},{n}\n" for n in range(60) if n not in (7, 8, 30))
    trace = load_trace(written(tmp_path, text))
    assert (len(trace.rates), trace.missing) == (60, (7, 8, 30))
    assert trace.rates == pytest.approx(range(60))


SAME_STEP = "time must grow by the same step, 60 s here, or several where rows are missing; got a step of "
REGULAR = "time_s,rate\n0,1\n60,2\n120,3\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", " line 1: the header must be 'time_s,rate' or 'date,rate'; got ''"),
        ("time,value\n0,1\n", " line 1: the header must be 'time_s,rate' or 'date,rate'; got 'time,value'"),
        ("time_s,rate\n", ": a trace must have at least 2 rows; got 0"),
        ("time_s,rate\n0,1\n", ": a trace must have at least 2 rows; got 1"),
        (REGULAR + "180\n", " line 5: a row must have 2 fields; got 1"),
        (REGULAR + "180,1,2\n", " line 5: a row must have 2 fields; got 3"),
        (REGULAR + "\nlater,1\n", " line 6: time_s must be a number; got 'later'"),
        ("date,rate\n7 March,1\n", " line 2: date must be an ISO date; got '7 March'"),
        (REGULAR + "180,many\n", " line 5: rate must be a number; got 'many'"),
        (REGULAR + "180,\n", " line 5: rate must be a number; got ''"),
        (REGULAR + "180,nan\n", " line 5: rate must be a finite number; got nan"),
        (REGULAR + "180,inf\n240,1\n", " line 5: rate must be a finite number; got inf"),
        (REGULAR + "180,1\n240,1\n300,-3\n", " line 7: rate must not be negative; got -3.0"),
        (REGULAR + "180,1e16\n", " line 5: rate must be at most 1e+15; got 1e+16"),
        (REGULAR + "inf,1\n", " line 5: time must be a finite number; got inf"),
        (REGULAR + "120,1\n", " line 5: time must be after that of the row before; got a step of 0 s"),
        (REGULAR + "60,1\n", " line 5: time must be after that of the row before; got a step of -60 s"),
        (REGULAR + "250,1\n", " line 5: " + SAME_STEP + "130 s"),
        (REGULAR + "150,1\n", " line 5: " + SAME_STEP + "30 s"),
        (REGULAR + "420,1\n480,1\n1500,1\n", ": at most half of its rows may be missing; got 6 of 26"),
    ],
)
def test_a_file_that_breaks_a_rule(tmp_path, text, message):
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        load_trace(path)
    assert str(caught.value) == f"trace '{path}'{message}"


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"trace '.*none.csv': the file must exist"):
        load_trace(tmp_path / "none.csv")


def test_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"time_s,rate\n\xff\xfe\x00,1\n")
    with pytest.raises(InputError, match="the file must be readable as CSV; got"):
        load_trace(path)
    with pytest.raises(InputError, match="the file must be readable as CSV; got"):
        load_trace(tmp_path)


def test_a_compressed_file_is_read_like_a_plain_one(tmp_path):
    packed = tmp_path / "rates.csv.gz"
    packed.write_bytes(gzip.compress(REGULAR.encode()))
    trace = load_trace(packed)
    assert trace.name == "rates"
    assert trace.rates.tolist() == load_trace(written(tmp_path, REGULAR)).rates.tolist()


@pytest.mark.parametrize(
    "content", [b"", REGULAR.encode(), gzip.compress(REGULAR.encode(), mtime=0)[:-9]], ids=["empty", "plain", "cut"]
)
def test_a_compressed_file_that_is_none_or_not_whole(tmp_path, content):
    packed = tmp_path / "rates.csv.gz"
    packed.write_bytes(content)
    with pytest.raises(
        InputError, match=r"trace '.*rates.csv.gz'.*: (the file must be readable as CSV; got|the header)"
    ):
        load_trace(packed)


def test_a_long_trace_loads_quickly(tmp_path):
    rates = np.random.default_rng(0).random(65_000) * 1000
    path = written(tmp_path, "time_s,rate\n" + "".join(f"{i},{r}\n" for i, r in enumerate(rates)))
    start = process_time()
    trace = load_trace(path)
    assert process_time() - start < 1.0
    assert np.array_equal(trace.rates, rates)


@pytest.mark.parametrize(
    ("name", "rows", "peak_to_mean", "cv", "autocorrelation"),
    [
        ("bgelasor_periodic_300s", 17_568, 2.19, 0.59, 0.968),
        ("bgelasor_fluctuate_600s", 8_784, 21.27, 1.09, 0.807),
        ("demeter_cars_1s", 64_803, 2.05, 0.43, 1.000),
        ("azure_llm_code_2023_1s", 3_437, 26.11, 2.27, 0.756),
    ],
)
def test_real_traces_have_the_numbers_their_page_says(name, rows, peak_to_mean, cv, autocorrelation):
    about = load_trace(data_file("traces", f"{name}.csv")).describe()
    assert about.rows == rows
    assert about.peak_to_mean == pytest.approx(peak_to_mean, abs=0.006)
    assert about.cv == pytest.approx(cv, abs=0.006)
    assert about.autocorrelation == pytest.approx(autocorrelation, abs=0.001)


def test_every_real_trace_can_be_replayed():
    folder = data_folder("traces")
    assert folder is not None
    paths = sorted(folder.glob("*.csv.gz"))
    assert len(paths) == 7
    for path in paths:
        trace = load_trace(path)
        replay = trace.compressed(trace.duration_s / 600.0).scaled(mean_rate=100.0)
        due = replay.time_of(np.arange(round(replay.events)))
        assert (np.diff(due) >= 0).all()
        assert due[-1] < 600.0 * (1 + 1e-9)
        np.testing.assert_allclose(replay.cumulated(due), np.arange(len(due)), atol=1e-6)


def test_a_saved_trace_is_read_back(tmp_path: Path) -> None:
    trace = constant(12.5, duration_s=3.0, step_s=0.5)
    again = load_trace(save_trace(trace, tmp_path / "constant.csv"))
    assert again.step_s == trace.step_s
    assert again.rates.tolist() == trace.rates.tolist()
