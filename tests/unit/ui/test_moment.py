"""What troubles an operator."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from penstock.metrics.rows import RunRow
from penstock.metrics.store import Store
from penstock.ui.moment import moment, trouble, waiting_s

from .conftest import RUN, Make, checkpoint, operator


@pytest.mark.parametrize(
    ("changes", "level", "why"),
    [
        ({}, "calm", ()),
        ({"backlog": 100}, "warning", ("backlog is more than a quarter of what it gets done in an interval",)),
        ({"backlog": 101, "processed": 100}, "bad", ("backlog is more than it gets done in an interval",)),
        ({"backlog": 1, "processed": 0}, "bad", ("backlog is more than it gets done in an interval",)),
        ({"busy_share": 0.9}, "warning", ("replicas are 90% busy",)),
        ({"replicas": 8, "busy_share": 0.75}, "warning", ("all replicas of its pool are active",)),
        ({"replicas": 8}, "calm", ()),
        ({"dropped": 1200}, "bad", ("dropped 1,200 events",)),
        ({"incomplete": "stale"}, "bad", ("numbers are not to be trusted: stale",)),
    ],
)
def test_trouble_is_told_by_level_and_in_words(changes: dict[str, object], level: str, why: tuple[str, ...]) -> None:
    found = trouble(operator(1, "count", "split", **changes), interval_s=2.0, td_s=2.0)
    assert (found.level, found.why) == (level, why)


def test_the_worst_is_told_first() -> None:
    found = trouble(operator(1, "count", "split", busy_share=0.95, dropped=3), interval_s=2.0, td_s=2.0)
    assert found.why == ("dropped 3 events", "replicas are 95% busy")


def test_a_backlog_takes_time_at_the_pace_of_the_interval() -> None:
    assert waiting_s(operator(1, "count", "split", backlog=50), 2.0) == 1.0
    assert waiting_s(operator(1, "count", "split", backlog=0, processed=0), 2.0) == 0.0
    assert waiting_s(operator(1, "count", "split", backlog=5, processed=0), 2.0) is None


def test_checkpoints_are_shown_as_they_were_and_when_the_last_is_too_old(store: Store) -> None:
    found = [moment(store, store.run(RUN), number, 10.0) for number in (1, 2, 3)]
    shown = [one["checkpoints"] for one in found if one is not None]
    assert [one.pop("old") for one in shown] == [False, False, True]
    assert shown == [asdict(checkpoint(number)) for number in (1, 2, 3)]


def test_a_run_without_checkpoints_shows_nothing_of_them(store: Store, make: Make) -> None:
    store.start_run(RunRow(run="simulated", topology="words", policy="psps", td_s=2.0, started_at="2026-01-01"))
    store.write("simulated", replace(make(1), checkpoints=()))
    found = moment(store, store.run("simulated"), 1, 10.0)
    assert found is not None
    assert found["checkpoints"] is None
