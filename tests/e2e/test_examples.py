"""Every program in `examples/` that needs Spark prints what it says."""

from __future__ import annotations

import math
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
    """Up to the pool; how soon it is down again is the machine's affair, and every step is as the policy says."""
    *steps, end = printed("policy", tmp_path, timeout_s=2 * LONG_S)
    *_, promised_end = promised("policy")
    assert end == promised_end
    moves = [re.match(r"work (\d) → (\d): \d+ events are (\d+\.\d) s of work(.*)", step) for step in steps]
    assert all(moves), steps
    counts = [1, *(int(move[2]) for move in moves if move)]
    assert max(counts) == 4
    assert [int(move[1]) for move in moves if move] == counts[:-1]
    for move in filter(None, moves):
        if move[4] in ("", "; the pool has 4"):  # no guard has held it
            work_s, to = float(move[3]), int(move[2])
            least, most = (min(4, max(1, math.ceil(1.5 * one_s))) for one_s in (work_s - 0.05, work_s + 0.05))
            assert least <= to <= most, move[0]
