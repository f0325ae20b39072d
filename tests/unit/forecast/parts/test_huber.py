import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.forecast.parts.huber import Layer, Standard, huber_ridge


def points(seed, rows=200):
    draw = np.random.default_rng(seed)
    columns = draw.normal(size=(rows, 3))
    truth = draw.normal(size=(3, 2))
    return columns, columns @ truth + [1.0, -2.0] + 0.1 * draw.normal(size=(rows, 2)), truth


@given(st.integers(0, 10**6))
def test_without_outliers_in_mind_it_is_the_ridge_of_the_text_books(seed):
    columns, targets, _ = points(seed)
    centred = columns - columns.mean(axis=0)
    slopes, constants = huber_ridge(centred, targets, np.full(targets.shape, True), 5.0, robust=False)
    expected = np.linalg.solve(centred.T @ centred + 5.0 * np.eye(3), centred.T @ targets)
    assert slopes == pytest.approx(expected, abs=1e-6)
    assert constants == pytest.approx(targets.mean(axis=0), abs=1e-6)


@given(st.integers(0, 10**6))
def test_one_row_in_ten_may_be_wild(seed):
    columns, targets, truth = points(seed)
    targets[::10] += 100
    everywhere = np.full(targets.shape, True)
    slopes, constants = huber_ridge(columns, targets, everywhere, 0.1)
    plain, _ = huber_ridge(columns, targets, everywhere, 0.1, robust=False)
    assert np.abs(slopes - truth).max() < 0.5
    assert np.abs(slopes - truth).sum() < np.abs(plain - truth).sum()
    assert constants == pytest.approx([1.0, -2.0], abs=0.3)


def test_targets_that_are_not_known_pull_nothing():
    columns, targets, truth = points(3)
    known = np.full(targets.shape, True)
    known[150:, 1] = False
    targets[150:, 1] = 1e6
    slopes, _ = huber_ridge(columns, targets, known, 0.1)
    assert slopes == pytest.approx(truth, abs=0.1)


def test_a_column_that_does_not_vary_is_nothing():
    standard = Standard.of(np.array([[5.0, 1.0], [5.0, 3.0]]))
    assert standard(np.array([[5.0, 1.0], [9.0, 2.0]])).tolist() == [[0.0, -1.0], [0.0, 0.0]]


def test_bends_are_the_same_every_time():
    columns = np.ones((1, 6))
    assert Layer.drawn(4, 10)(columns).tolist() == Layer.drawn(4, 10)(columns).tolist()
    assert Layer.drawn(4, 10)(columns)[0] == pytest.approx(Layer.drawn(4, 10)(columns[:, :4])[0])
