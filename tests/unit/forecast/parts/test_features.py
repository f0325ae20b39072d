import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.forecast.parts.features import Features

WIDE = Features(14, (6, 24), (12, 84), harmonics=2)
VALUES = np.random.default_rng(0).normal(size=400)


def test_the_columns_by_hand():
    values = np.arange(30.0) ** 2
    found = Features(2, (3,), (6,)).matrix(values, 0, range(20, 21))[0]
    steps = [0, 1, 2, 3]
    smooth = values + 2 / 3  # the mean of a square and its neighbours
    weights = 0.85 ** np.arange(3)
    means = [np.average(smooth[[20 + j - 6, 20 + j - 12, 20 + j - 18]], weights=weights) - 400 for j in steps]
    expected = [400, 361 - 400, 324 - 400, (400 + 361 + 324) / 3 - 400]
    expected += [(20 + j - 6) ** 2 - 400 for j in steps]
    assert found[:8] == pytest.approx(expected)
    assert found[8:12] == pytest.approx(means)


@pytest.mark.parametrize("season", range(4, 24))
def test_the_means_of_past_seasons_for_each_length_of_a_season(season):
    """At steps that are looked at closely and at the others, whichever of them go further ahead."""
    lags = Features(2)
    found = Features(2, (), (season,)).matrix(VALUES, 0, range(100, 103))
    ahead = [step for step in range(19) if step < season - 2]
    close = [step for step in ahead if step in (0, 1, 2, 3, 4, 6, 9, 12, 15, 18)]
    order = [*close, *(step for step in ahead if step not in close)]
    means = found[:, lags.matrix(VALUES, 0, range(100, 103)).shape[1] + len(close) :]
    for place, row in enumerate(range(100, 103)):
        expected = [_mean_of_seasons(VALUES[: row + 1], row + step, season) - VALUES[row] for step in order]
        assert means[place] == pytest.approx(expected)


def _mean_of_seasons(seen, row, season):
    """By the rule: rows a season apart, each with its neighbours, each season back 0.85 of the one after it."""
    rows = [back for back in range(row - season, -1, -season) if 0.85 ** ((row - back) // season - 1) >= 0.02]
    values = [seen[back - 1 : back + 2].mean() if back else seen[0] for back in rows]
    return np.average(values, weights=0.85 ** np.arange(len(rows)))


@given(st.integers(90, 380), st.integers(0, 2**32 - 1))
def test_no_row_sees_what_comes_after_it(row, seed):
    changed = VALUES.copy()
    changed[row + 1 :] = np.random.default_rng(seed).normal(size=len(VALUES) - row - 1)
    rows = range(row, row + 1)
    assert WIDE.matrix(VALUES, 7, rows).tolist() == WIDE.matrix(changed, 7, rows).tolist()


@given(st.integers(90, 380), st.integers(1, 19))
def test_a_row_alone_has_the_columns_it_has_among_others(row, others):
    many = WIDE.matrix(VALUES, 0, range(row, row + others))
    assert many[0] == pytest.approx(WIDE.matrix(VALUES, 0, range(row, row + 1))[0])


def test_the_last_row_has_them_as_when_it_was_not_the_last():
    assert WIDE.matrix(VALUES[:300], 0, range(299, 300))[0] == pytest.approx(WIDE.matrix(VALUES, 0, range(299, 300))[0])


def test_what_history_allows():
    assert WIDE.within(20) == Features(5, (), (), harmonics=2)
    assert WIDE.within(60) == Features(14, (6,), (12,), harmonics=2)
    assert WIDE.within(400) == WIDE
    assert Features(2, (), (1,)).within(1000).seasons == ()


@pytest.mark.parametrize("features", [WIDE, Features(14), Features(3, (5,), (12,), 1)])
def test_from_its_reach_on_all_rows_have_them(features):
    found = features.matrix(VALUES, 0, range(features.reach, 400))
    assert np.isfinite(found).all()
    assert 0 <= features.far < found.shape[1]
