"""Count-Min sketches: hash functions, counts that are never too low, times, and when a sketch is stable."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from penstock.grouping.online_shuffle.hashing import cell, coefficients, shape
from penstock.grouping.online_shuffle.sketch import OMEGA, PHI, add, estimate, look_up, renew

P = 2**61 - 1
hashes = st.integers(0, 2**32 - 1)


def sketched(keys: list[int], rows: int, columns: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
    sketch, ab = np.zeros((2, rows, columns)), coefficients(rows, seed)
    for key in keys:
        add(sketch, ab, key, 1.0)
    return sketch, ab


@pytest.mark.parametrize(
    ("epsilon", "delta", "expected"),
    [(0.05, 0.05, (3, 54)), (0.70, 0.25, (2, 4)), (0.1, 0.01, (5, 27)), (0.01, 0.5, (1, 270))],
)
def test_the_size_follows_from_the_precision(epsilon: float, delta: float, expected: tuple[int, int]) -> None:
    assert shape(epsilon, delta) == expected


@given(a=st.integers(1, P - 1), b=st.integers(0, P - 1), key=hashes, columns=st.integers(1, 1000))
def test_a_cell_is_a_x_plus_b_mod_p_mod_c(a: int, b: int, key: int, columns: int) -> None:
    assert cell(np.array([[a, b]], np.uint64), 0, key, columns) == (a * key + b) % P % columns


@pytest.mark.parametrize("a", [1, 2**32 - 1, 2**32, P - 1])
@pytest.mark.parametrize("b", [0, 1, P - 1])
@pytest.mark.parametrize("key", [0, 1, 2**32 - 1])
def test_a_cell_at_the_ends_of_the_ranges(a: int, b: int, key: int) -> None:
    assert cell(np.array([[a, b]], np.uint64), 0, key, 2**31) == (a * key + b) % P % 2**31


def test_hash_functions_are_written_down() -> None:
    """Other processes and later versions must find the same cells."""
    ab = coefficients(rows=3, seed=0)
    assert [[cell(ab, row, key, 54) for row in range(3)] for key in (0, 1, 3485271718)] == [
        [35, 51, 52],
        [22, 10, 5],
        [9, 1, 18],
    ]
    assert (coefficients(3, seed=1) != ab).all()


@pytest.mark.parametrize("other", [1, 77, 2**31 - 1, 2**32 - 1])
def test_two_keys_meet_no_more_often_than_by_chance(other: int) -> None:
    """2^31 − 1 as p would let 0 and 2^31 − 1 meet every time."""
    trials, columns = 4000, 8
    ab = coefficients(trials, seed=5)
    met = sum(cell(ab, row, 0, columns) == cell(ab, row, other, columns) for row in range(trials))
    chance = trials / columns
    assert met <= chance + 4 * math.sqrt(chance)


@given(keys=st.lists(st.integers(0, 30), max_size=80), seed=st.integers(0, 50))
def test_counts_are_never_too_low(keys: list[int], seed: int) -> None:
    sketch, ab = sketched(keys, rows=2, columns=4, seed=seed)
    for key, count in Counter(keys).items():
        assert count <= look_up(sketch, ab, key)[0] <= len(keys)


@given(keys=st.lists(st.integers(0, 30), max_size=80))
def test_every_row_adds_up_to_all_events(keys: list[int]) -> None:
    sketch, _ = sketched(keys, rows=3, columns=5)
    assert sketch.sum(axis=2).tolist() == [[len(keys)] * 3] * 2


def test_the_error_is_within_epsilon_with_probability_1_minus_delta() -> None:
    """The hardest case: 1/ε keys share all events. One row alone errs in 3 of 10 cases, more than δ allows."""
    epsilon, delta, trials = 0.25, 0.25, 1000
    heavy = [3485271718, 1281784366, 917, 2**31 + 5] * 5
    wrong = {1: 0, 2: 0}
    for rows in wrong:
        for seed in range(trials):
            sketch, ab = sketched(heavy, rows, shape(epsilon, delta)[1], seed)
            wrong[rows] += look_up(sketch, ab, 0)[0] >= epsilon * len(heavy)
    assert shape(epsilon, delta)[0] == 2
    assert wrong[2] <= delta * trials < wrong[1]


def test_a_time_is_omega_over_phi() -> None:
    sketch, ab = np.zeros((2, 3, 54)), coefficients(3, 0)
    for time_s in (0.25, 0.5, 0.75):
        add(sketch, ab, 7, time_s)
    assert look_up(sketch, ab, 7) == (3.0, 1.5)
    assert estimate(sketch, ab, 7, 9.0) == 0.5


def test_a_time_is_taken_where_phi_is_least() -> None:
    """Figure 6's size, 2 × 4. In the first row the key shares its cell with 9 events of 1 s, in the second with one."""
    sketch, ab = np.zeros((2, 2, 4)), coefficients(2, 0)
    first, second = cell(ab, 0, 7, 4), cell(ab, 1, 7, 4)
    sketch[PHI, 0, first], sketch[OMEGA, 0, first] = 10.0, 9.25
    sketch[PHI, 1, second], sketch[OMEGA, 1, second] = 2.0, 0.75
    assert estimate(sketch, ab, 7, 9.0) == 0.375
    sketch[PHI, 0, first] = 1.0
    assert estimate(sketch, ab, 7, 9.0) == 9.25


def test_an_empty_cell_says_nothing() -> None:
    sketch, ab = np.zeros((2, 2, 4)), coefficients(2, 0)
    assert estimate(sketch, ab, 7, 0.125) == 0.125
    sketch[:, 0, cell(ab, 0, 7, 4)] = 5.0
    assert estimate(sketch, ab, 7, 0.125) == 0.125


@given(st.dictionaries(hashes, st.floats(0.0, 100.0), min_size=1, max_size=20))
def test_an_estimate_lies_between_the_shortest_and_the_longest_time(times_s: dict[int, float]) -> None:
    sketch, ab = np.zeros((2, 2, 4)), coefficients(2, 0)
    for key, time_s in times_s.items():
        add(sketch, ab, key, time_s)
    low, high = min(times_s.values()), max(times_s.values())
    for key in times_s:
        assert low * (1 - 1e-9) <= estimate(sketch, ab, key, math.nan) <= high * (1 + 1e-9)


def test_change_since_the_last_snapshot() -> None:
    """Ψ 1 2 0 → 1 3 1: |0| + |1| + |1| over 3."""
    snapshot = np.array([[1.0, 2.0, 0.0]])
    sketch = np.array([[[2.0, 1.0, 4.0]], [[2.0, 3.0, 4.0]]])
    assert renew(snapshot, sketch) == pytest.approx(2 / 3)
    assert snapshot.tolist() == [[1.0, 3.0, 1.0]]
    assert renew(snapshot, sketch) == 0.0


def test_change_from_nothing() -> None:
    snapshot = np.zeros((1, 2))
    assert renew(snapshot, np.zeros((2, 1, 2))) == 0.0
    assert renew(snapshot, np.ones((2, 1, 2))) == math.inf
    assert renew(snapshot, np.zeros((2, 1, 2))) == 1.0
