"""What is judged in `benchmarks/counterfactuals.py`, and what came of a change that was withheld."""

from __future__ import annotations

import numpy as np
import pytest
from counterfactuals import Row
from counterfactuals_scenarios import outcome


@pytest.mark.parametrize(
    ("said", "true", "holds"),
    [((90, 100.0), (100, 100.0), True), ((70, 100.0), (100, 100.0), False), ((100, 70.0), (100, 100.0), False)],
)
def test_late_events_and_replica_seconds_must_both_be_near(
    said: tuple[int, float], true: tuple[int, float], holds: bool
) -> None:
    assert Row("live x", 1, 10.0, 1000, said[0], true[0], said[1], true[1]).holds is holds


def test_so_few_that_they_are_promised_to_be_late_count_for_nothing() -> None:
    few, none = (Row("live x", 1, 10.0, 1000, 0, late, 30.0, 30.0) for late in (10, 0))
    assert (few.holds, few.matters, none.matters) == (True, False, False)
    assert not Row("live x", 1, 10.0, 1000, 0, 11, 30.0, 30.0).holds


def test_what_is_still_there_at_the_end_is_late_if_it_is_old() -> None:
    """Target 0.5 s, 10 s from the 100th second on: gone before, in time, late, still there and old, and too new."""
    born_s = np.array([99.0, 100.0, 101.0, 109.0, 109.8, 111.0])
    left_s = np.array([99.9, 100.2, 102.0, 112.0, 112.0, 112.0])
    found = outcome(born_s, left_s, 100.0, 42.0)
    assert (found.events, found.late, found.backlog, found.replica_seconds) == (4, 2, 2, 42.0)
