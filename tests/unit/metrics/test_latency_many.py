from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.metrics.latency import LatencyHistogram


@given(st.lists(st.floats(-5, 1e6), max_size=200))
def test_many_at_once_are_the_same_as_one_by_one(latencies_ms: list[float]) -> None:
    together, apart = LatencyHistogram(), LatencyHistogram()
    together.add_many(latencies_ms)
    for latency_ms in latencies_ms:
        apart.add(latency_ms)
    assert together.count == apart.count
    assert together.total_ms == pytest.approx(apart.total_ms)
    assert together.max_ms == pytest.approx(apart.max_ms)
    for q in (0.1, 0.5, 0.99):
        if latencies_ms:
            assert together.percentile_ms(q) == pytest.approx(apart.percentile_ms(q), rel=0.06)


def test_several_alike_count_as_so_many() -> None:
    several, one_by_one = LatencyHistogram(), LatencyHistogram()
    several.add(12.5, 40)
    for _ in range(40):
        one_by_one.add(12.5)
    assert several == one_by_one
