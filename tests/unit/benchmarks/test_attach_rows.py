"""What the comparison of results judges by: what must come of rows, and what differs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from attach_rows import judged
from attach_rows_scenarios import KEYS, ROWS_A_SECOND, WINDOW_S, Feeder, difference, digest, last_row, results, row


def test_rows_have_the_same_time_in_every_run() -> None:
    assert json.loads(row(30)) == {"number": 30, "at": "2026-01-01T00:00:01.500000Z"}
    assert json.loads(last_row(30))["at"] == "2026-01-02T00:00:01.500000Z"


def test_every_row_is_counted_in_one_window() -> None:
    rows = 3 * ROWS_A_SECOND * WINDOW_S + 5
    wanted = results(rows)
    assert wanted["score"].total() == rows + 1
    assert sum(count for _, _, count in wanted["counts"]) == rows
    assert {window for window, _, _ in wanted["counts"]} == {0, 1, 2, 3}
    assert len(wanted["counts"]) == 3 * KEYS + 5


def test_what_is_missing_or_there_twice_is_told() -> None:
    wanted = Counter({(1, 1): 1, (2, 4): 1, (3, 9): 1})
    assert difference(wanted, wanted) == {"missing": 0, "too_many": 0}
    assert difference(Counter({(1, 1): 2, (2, 5): 1, (3, 9): 1}), wanted) == {"missing": 1, "too_many": 2}
    assert digest(wanted) == digest(Counter(sorted(wanted.elements(), reverse=True)))
    assert digest(wanted) != digest(wanted + wanted)


def test_runs_are_the_same_and_right_or_not() -> None:
    good = {"digests": {"score": "a"}, "wrong": {"score": {"missing": 0, "too_many": 0}}}
    lost = {"digests": {"score": "b"}, "wrong": {"score": {"missing": 1, "too_many": 0}}}
    assert [judged(good, good)[which] for which in ("same", "right")] == [True, True]
    assert [judged(lost, lost)[which] for which in ("same", "right")] == [True, False]
    assert [judged(lost, good)[which] for which in ("same", "right")] == [False, False]


def test_the_feeder_writes_rows_in_turn_and_one_after_all(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path / "rows", rate=400.0, most=150)
    feeder.start()
    feeder.join()
    feeder.end()
    files = sorted((tmp_path / "rows").iterdir())
    numbers = [json.loads(line)["number"] for file in files for line in file.read_text().splitlines()]
    assert numbers[:-1] == list(range(150))
    assert numbers[-1] == json.loads(last_row(150))["number"]
