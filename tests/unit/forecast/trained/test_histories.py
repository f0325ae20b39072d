"""Series from the store of a run; what `penstock train` says of files is in the tests of the command."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.forecast.trained.histories import histories_of
from penstock.forecast.trained.job import Job
from penstock.metrics.rows import IntervalRecord, IntervalRow, OperatorRow, RunRow
from penstock.metrics.store import Store


def interval(number: int, entered: int, interval_s: float = 2.0) -> IntervalRow:
    return IntervalRow(
        number=number,
        time_s=2.0 * number,
        interval_s=interval_s,
        source_input={"tweets": entered},
        entered=entered,
        source_output=0.0,
        replicas=1,
        backlog=0,
        dropped=0,
        latency_count=0,
        latency_mean_ms=None,
        latency_p50_ms=None,
        latency_p99_ms=None,
    )


def operator(number: int, name: str, received: int, incomplete: str | None = None) -> OperatorRow:
    return OperatorRow(
        number=number,
        operator=name,
        received=received,
        received_by={},
        processed=0,
        backlog=0,
        dropped=0,
        replicas=1,
        pool=1,
        busy_share=0.0,
        cpu_share=0.0,
        execution_time_s=None,
        incomplete=incomplete,
    )


class TestAStore:
    @pytest.fixture(autouse=True)
    def store(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Interval 3 was not recorded; in 4 nothing can be trusted, in 5 one operator; 6 took longer."""
        monkeypatch.chdir(tmp_path)
        store = Store("metrics.db")
        for name, settings in (("old", {}), ("new", {"speedup": 60.0})):
            started_at = "2026-01-02T00:00:00Z" if name == "new" else "2026-01-01T00:00:00Z"
            store.start_run(
                RunRow(run=name, topology="t", policy="psps", td_s=2.0, started_at=started_at, settings=settings)
            )
        for number in (1, 2, 4, 5, 6):
            length_s = 4.0 if number == 6 else 2.0
            doubts = {4: ("clock", "clock"), 5: ("stale", None)}.get(number, (None, None))
            operators = (operator(number, "a", 20 * number, doubts[0]), operator(number, "b", 2 * number, doubts[1]))
            seen = interval(number, 10 * number, length_s)
            if number == 4:
                seen = replace(seen, source_input={})
            store.write("new", IntervalRecord(interval=seen, operators=operators))
        store.write("old", IntervalRecord(interval=interval(1, 8)))
        store.close()

    def test_gives_the_rates_of_the_last_run(self) -> None:
        found = {one.series: one for one in histories_of(["metrics.db"])}
        nan = math.nan
        expected = {
            "tweets": [5, 10, nan, nan, 25, 15],
            "a": [10, 20, nan, nan, nan, 30],
            "b": [1, 2, nan, nan, 5, 3],
        }
        assert found.keys() == expected.keys()
        for series, rates in expected.items():
            np.testing.assert_array_equal(found[series].rates, rates)
            assert (found[series].run, found[series].interval, found[series].interval_s) == ("new", 6, 2.0)
            assert found[series].day == 720  # of a day played 60 times faster

    def test_gives_another_run_by_name(self) -> None:
        (history,) = histories_of(["sqlite:///metrics.db"], run="old")
        assert (history.series, history.rates.tolist(), history.day) == ("tweets", [4.0], 43200)

    def test_an_unknown_run_is_said_with_a_hint(self) -> None:
        rule = "store 'metrics.db', run: no such name 'nwe'; known: old, new; did you mean 'new'?"
        with pytest.raises(InputError, match=f"^{re.escape(rule)}$"):
            histories_of(["metrics.db"], run="nwe")

    def test_its_models_say_up_to_where(self) -> None:
        history = next(one for one in histories_of(["metrics.db"]) if one.series == "tweets")
        header = Job(history=history, spec="last_value").header({}, trained_at="2026-01-01")
        assert (header.run, header.interval, header.rows) == ("new", 6, 6)

    def test_without_a_run(self) -> None:
        Store("empty.db").close()
        with pytest.raises(InputError, match="must have a run; has none"):
            histories_of(["empty.db"])

    def test_a_run_without_intervals(self) -> None:
        store = Store("bare.db")
        store.start_run(RunRow(run="r", topology="t", policy="p", td_s=1.0, started_at="2026-01-01"))
        store.close()
        with pytest.raises(InputError, match="run 'r': must have intervals to learn from; has none"):
            histories_of(["bare.db"])

    def test_a_file_that_is_no_store(self, tmp_path: Path) -> None:
        (tmp_path / "text.db").write_text("not a database, but long enough to be looked at" * 9)
        with pytest.raises(InputError, match="cannot be opened; file is not a database"):
            histories_of(["text.db"])
