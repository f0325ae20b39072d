"""What the benchmark of advice judges by."""

from __future__ import annotations

import pytest
from advice import compared


@pytest.mark.parametrize(
    ("seconds", "late", "within"),
    [(1000.0, 0.01, True), (1140.0, 0.014, True), (1160.0, 0.01, False), (1000.0, 0.016, False)],
)
def test_what_was_foretold_is_near_enough_or_not(seconds: float, late: float, within: bool) -> None:
    found = compared(
        {"executor_seconds": seconds, "late_ratio": late}, {"executor_seconds": 1000.0, "late_ratio": 0.01}
    )
    assert found["within"] is within
    assert found["off"] == pytest.approx(seconds / 1000 - 1)
    assert found["off_points"] == pytest.approx(100 * (late - 0.01))
