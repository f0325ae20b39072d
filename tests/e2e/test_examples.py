"""Every program in `examples/` that needs Spark prints what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.examples import PROGRAMS, printed, promised
from tests.waiting import LONG_S

WITHOUT_SPARK = {"arena"}  # tests/unit/test_examples.py runs it
VARYING = {"policy"}  # when an interval ends is not known to the event


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - WITHOUT_SPARK - VARYING))
def test_it_prints_what_it_says(name: str, tmp_path: Path) -> None:
    assert printed(name, tmp_path, timeout_s=2 * LONG_S) == promised(name)


def test_the_policy_follows_the_work(tmp_path: Path) -> None:
    """Up to the pool, step by step; how soon it is down again is the machine's affair."""
    *steps, end = printed("policy", tmp_path, timeout_s=2 * LONG_S)
    *_, promised_end = promised("policy")
    assert end == promised_end
    moves = [re.match(r"work (\d) → (\d): \d+ events are (\d+\.\d) s of work(.*)", step) for step in steps]
    assert all(moves), steps
    counts = [1, *(int(move[2]) for move in moves if move)]
    assert max(counts) == 4
    assert [int(move[1]) for move in moves if move] == counts[:-1]
