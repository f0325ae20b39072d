"""Every option of every forecaster, with values that make no sense: an InputError, or something that works."""

from __future__ import annotations

import math

import pytest

from penstock.errors import InputError
from penstock.forecast.base import NotReady
from penstock.forecast.recurrent import RECURRENT, installed
from penstock.forecast.registry import FORECASTERS, make_forecaster

NETWORKS = {network.name for network in RECURRENT}
OPTIONS = [(name, option) for name in FORECASTERS.distinct for option in FORECASTERS.options(name)]
WORDS = {("trained", "folder"), ("trained", "series"), ("trained", "run")}  # anything may be a name
LEVELS = {("auto", "level")}
SWITCHES = {("seasonal_naive", "week")}


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def works(forecaster):
    """It can be used: what it has to say comes, or that it is not ready."""
    for rate in (10.0, 20.0, math.nan, 30.0):
        forecaster.learn(rate)
    try:
        return forecaster.forecast(2).shape == (2,)
    except NotReady:
        return True


@pytest.mark.parametrize("value", ["abc", "", "2.5", "-3", "-0.5", "0", "nan", "inf", "true", "false"])
@pytest.mark.parametrize(("name", "option"), OPTIONS, ids=lambda part: part)
def test_a_value_works_or_is_an_input_error(name, option, value):
    """`drift:abc` and `moving_average:2.5` ended in a TypeError, some of them only when the loop ran."""
    if name in NETWORKS and not installed():
        pytest.skip("needs the extra 'deep'")
    spec = f"{name}:{option}={value}"
    if makes_sense(name, option, value):
        assert works(make_forecaster(spec))
    else:
        with pytest.raises(InputError, match=f"^forecaster '{name}': {option} must be .*; got "):
            make_forecaster(spec)


def makes_sense(name, option, value):
    if (name, option) in SWITCHES:
        return value in ("true", "false")
    return (name, option) in WORDS or (option, value) == ("seed", "0")


@pytest.mark.parametrize(("name", "option"), sorted({*OPTIONS} - WORDS - LEVELS - SWITCHES))
def test_whole_numbers_that_make_sense_are_taken(name, option):
    if name in NETWORKS and not installed():
        pytest.skip("needs the extra 'deep'")
    made = make_forecaster(f"{name}:{option}=20")
    assert getattr(made, option, 20) == 20
    assert works(made)


def test_a_run_named_by_a_number_is_a_name():
    """A model's file says '20260101', and never was of the run that the user had named."""
    assert make_forecaster("trained:run=20260101,series=7").followed.run == "20260101"
