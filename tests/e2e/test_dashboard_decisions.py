"""Scores, refusals, shadows, latency and checkpoints in a browser: what the page shows is what the store has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from statistics import mean
from typing import Any

import numpy as np
import pytest

from penstock.metrics.rows import CheckpointRow, IntervalRecord, RunRow, ScoreRow
from penstock.metrics.store import Store
from penstock.simulator import Scenario, simulate
from penstock.topology import Topology
from penstock.ui.listen import Listen
from penstock.ui.server import serving
from penstock.workload import Trace

from ..services.tab import Tab
from .shown import (
    at,
    box,
    check_checkpoints,
    duration,
    go_to,
    legend,
    milliseconds,
    number,
    percent,
    share,
    table,
    tile,
)

LIGHT, HEAVY = [20.0] * 90, [200.0] * 60
MADE = "checkpointed"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Of a simulation in which a canary takes over and is taken back, and a pool is too small for what is wanted."""
    topology = Topology("two")
    topology.source("in")
    topology.operator("clean", lambda event: event, inputs=["in"], pool=16, execution_time_ms=20)
    topology.operator("store", lambda event: event, inputs=["clean"], pool=6, execution_time_ms=40)
    scenario = Scenario(topology, Trace("made", 1.0, np.array(LIGHT + HEAVY)))
    scenario = scenario.changed(canary="static:1,minutes=1", forecaster="last_value")
    place = str(tmp_path_factory.mktemp("simulated") / "run.db")
    simulate(scenario, "static:10", store=place)
    with closing(Store(place)) as opened:
        yield opened


@pytest.fixture(scope="module")
def url(store: Store) -> Iterator[str]:
    with serving(store, Listen(port=0)) as address:
        yield address


@pytest.fixture
def run(store: Store) -> str:
    return next(row.run for row in store.runs() if row.run != MADE)


@pytest.fixture
def page(tab: Tab, url: str, run: str) -> Tab:
    tab.open(f"{url}run/{run}")
    return tab


def test_scores_are_those_of_the_store(page: Tab, store: Store, run: str) -> None:
    for wanted in (at(page), 40):
        go_to(page, wanted)
        scores = [row for row in store.scores(run) if row.number < wanted]
        groups = sorted({(row.role, row.policy) for row in scores})
        assert len(groups) == (2 if wanted == 40 else 4)
        expected = [of_policy([row for row in scores if (row.role, row.policy) == one]) for one in groups]
        assert table(page, "scores") == expected
        (last,) = [row for row in scores if row.number == wanted - 1 and row.role == "decides"]
        assert legend(page, "too_many") == f"too many {number(last.too_many)}"
        avoided = None if last.late is None or last.nothing_late is None else round(last.nothing_late - last.late, 2)
        assert legend(page, "late_avoided") == f"avoided {number(avoided and max(0.0, avoided))}"
        assert legend(page, "late_caused") == f"caused {number(avoided and max(0.0, -avoided))}"
        assert legend(page, "naive_percent") == f"last rate {percent(hundred(last.naive_error))}"


def of_policy(scores: list[ScoreRow]) -> list[str]:
    """A row of the table: means over time, shares of all events, means of errors."""
    seconds, events = sum(row.seconds for row in scores), sum(row.events for row in scores)
    spare = [sum(getattr(row, name) * row.seconds for row in scores) / seconds for name in ("too_many", "too_few")]
    late = [total([getattr(row, name) for row in scores]) for name in ("late", "nothing_late")]
    errors = [known([getattr(row, name) for row in scores]) for name in ("forecast_error", "naive_error")]
    off = [percent(hundred(mean(one) if one else None)) for one in errors]
    first = [scores[0].policy, scores[0].role, number(len(scores))]
    return [*first, *map(number, spare), *(share(one, events) for one in late), *off]


def known(values: list[float | None]) -> list[float]:
    return [one for one in values if one is not None]


def total(values: list[float | None]) -> float | None:
    return sum(known(values)) if known(values) else None


def hundred(value: float | None) -> float | None:
    return None if value is None else 100 * value


def test_refusals_are_told_with_the_limit_that_was_binding(page: Tab, store: Store, run: str) -> None:
    made = {(row.number, row.operator): row for row in store.decisions(run)}
    limits = [row for row in store.limits(run) if made[row.number, row.operator].before == row_after(made, row)]
    assert {(row.operator, row.told) for row in limits} == {("store", "the pool has 6")}
    numbers = [row.number for row in limits]
    wanted, has = {row.wanted for row in limits}, max(row_after(made, row) for row in limits)
    assert wanted == {10}
    when = f"{number(numbers[0])}–{number(numbers[-1])} ({number(len(numbers))} ×)"
    assert table(page, "refusals") == [[when, "store", "10", str(has), "the pool has 6"]]


def row_after(made: dict[tuple[int, str], Any], row: Any) -> int:
    after: int = made[row.number, row.operator].after
    return after


def test_who_decides_and_why(page: Tab, store: Store, run: str) -> None:
    deciders = store.deciders(run)
    assert [row.policy for row in deciders] == ["static:10", "static:1", "static:10"]
    first = store.intervals(run)[0]
    start_s = first.time_s - first.interval_s
    rows = [[duration(row.time_s - start_s), row.policy, row.reason] for row in deciders]
    assert table(page, "deciders") == rows[::-1]
    go_to(page, deciders[1].number)
    assert table(page, "deciders") == rows[1::-1], "what came later is not known yet"


def test_decisions_are_shown_with_how_they_turned_out(page: Tab, store: Store, run: str) -> None:
    changed = [row for row in store.decisions(run) if row.before != row.after]
    scores = {row.number: row for row in store.scores(run) if row.role == "decides"}
    newest = sorted(changed, key=lambda row: (-row.number, row.operator))[:12]
    expected = [
        [number(row.number), row.operator, f"{row.before} → {row.after}", row.reason, outcome(scores[row.number])]
        for row in newest
    ]
    assert table(page, "decisions") == expected
    go_to(page, newest[0].number)
    assert table(page, "decisions")[0][-1] == "not known yet"


def outcome(score: ScoreRow) -> str:
    """As the page has it."""
    spare = [f"{number(n)} {what}" for n, what in ((score.too_many, "too many"), (score.too_few, "too few")) if n]
    told = f"{', '.join(spare) or 'just right'},{late(score.late)}"
    if score.nothing_late is not None:
        told += f"; doing nothing ({number(score.nothing_replicas)}):{late(score.nothing_late)}"
    second = f"; runner-up {score.runner_up} ({number(score.runner_up_replicas)}):{late(score.runner_up_late)}"
    return told + (second if score.runner_up else "")


def late(value: float | None) -> str:
    return "" if value is None else f" {number(value, 0)} late"


def test_the_graph_has_every_operators_latency(page: Tab, store: Store, run: str) -> None:
    for wanted in (50, 100, at(page)):  # while one waits for the canary, is late, and is taken back
        go_to(page, wanted)
        (interval,) = [row for row in store.intervals(run) if row.number == wanted]
        for row in (row for row in store.operators(run) if row.number == wanted):
            assert row.execution_time_s is not None
            waits_s = row.backlog * interval.interval_s / row.processed if row.backlog else 0.0
            shown = f"latency ≈ {milliseconds(1000 * (waits_s + row.execution_time_s))}, estimated"
            assert shown in box(page, row.operator)


def test_a_simulation_shows_nothing_of_checkpoints(page: Tab) -> None:
    assert page.value("document.getElementById('checkpoints').closest('section').hidden")
    assert page.value("document.querySelector('[data-tile=\"checkpoint age\"]')") is None
    assert page.value("document.querySelector('[data-line=checkpoint_ms]').closest('section').hidden")


def test_checkpoints_are_shown_as_they_went(tab: Tab, url: str, store: Store, run: str) -> None:
    """Intervals of the simulation, with checkpoints beside them: none yet, one in time, one that is too old."""
    none = CheckpointRow(
        number=1, checkpoint=None, age_s=4.0, took_s=None, size_bytes=None, committed=0, given_up=0, every_s=10.0
    )
    first = replace(none, number=2, checkpoint=1_000_000_001, age_s=2.5, took_s=0.021, size_bytes=740, committed=1)
    old = replace(first, number=3, age_s=75.0, took_s=12.4, size_bytes=8_260, given_up=2)
    store.start_run(RunRow(run=MADE, topology="two", policy="static:10", td_s=1.0, started_at="2026-01-01T00:00:00Z"))
    for row in (none, first, old):
        interval = next(one for one in store.intervals(run) if one.number == row.number)
        operators = tuple(one for one in store.operators(run) if one.number == row.number)
        store.write(MADE, IntervalRecord(interval=interval, operators=operators, checkpoints=(row,)))
    tab.open(f"{url}run/{MADE}")
    assert tile(tab, "checkpoint age") == "1:15 min"
    for row in (old, first, none):
        go_to(tab, row.number)
        check_checkpoints(tab, store, MADE)
        bad = tab.value("document.querySelector('[data-tile=\"checkpoint age\"]').className")
        assert (bad == "bad") == (row is old)
