"""Lateness by row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.attached.model.delay import Delays, DelaySum


def test_rows_of_a_batch_are_late_by_their_age() -> None:
    """A batch of 400 rows that came over 4 s and took 2 s: the first waited 6 s, the last 2 s."""
    delays = Delays(400, 2.0, 6.0)
    assert [delays.late(target_s) for target_s in (1.0, 2.0, 3.0, 5.0, 6.0, 9.0)] == [400, 400, 300, 100, 0, 0]


def test_sums_have_the_mean_and_the_percentiles_of_all_rows() -> None:
    total = DelaySum(5.0)
    total.add(Delays(300, 1.0, 3.0))
    total.add(Delays(100, 4.0, 8.0))
    assert (total.rows, total.late) == (400, 75)
    assert total.histogram.mean_ms == pytest.approx((300 * 2000 + 100 * 6000) / 400)
    assert total.histogram.percentile_ms(0.75) == pytest.approx(3000, rel=0.05)
    assert total.histogram.percentile_ms(0.99) == pytest.approx(7840, rel=0.05)


@given(st.integers(0, 10_000), st.floats(0, 100), st.floats(0, 100), st.floats(0.1, 100))
def test_every_row_counts_once(rows: int, least_s: float, more_s: float, target_s: float) -> None:
    total = DelaySum(target_s)
    total.add(Delays(rows, least_s, least_s + more_s))
    assert total.rows == rows
    assert 0 <= total.late <= rows
