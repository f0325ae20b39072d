"""Decisions explained from a store: what was seen and expected, what was binding, and what else might have been."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock import Scenario, simulate
from penstock.cli.main import app
from penstock.errors import InputError
from penstock.metrics.rows import RunRow
from penstock.metrics.store import Store
from penstock.report.explain import DECIDED, NOTHING, RUNNER_UP, explain
from penstock.report.explain_words import lines
from penstock.workload import Trace

TD_S = 5.0


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A simulated run whose load jumps from 40 to 160 events a second after 50 s."""
    place = str(tmp_path_factory.mktemp("explained") / "run.db")
    trace = Trace("jump", TD_S, [40.0] * 10 + [160.0] * 10)
    simulate(Scenario("dns", trace).changed(td_s=TD_S, slots=20, forecaster="drift"), "psps", store=place)
    return place


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    with closing(Store(place, must_exist=True)) as opened:
        yield opened


def changed(store: Store) -> int:
    """The interval after which most replicas were added."""
    run = store.run().run
    added: dict[int, int] = {}
    for row in store.decisions(run):
        added[row.number] = added.get(row.number, 0) + row.after - row.before
    return max(added, key=lambda number: added[number])


def test_what_was_seen_and_decided_is_what_the_store_has(store: Store) -> None:
    number = changed(store)
    found = explain(store, interval=number)
    assert found.interval == next(row for row in store.intervals(found.run.run) if row.number == number)
    decisions = {row.operator: row for row in store.decisions(found.run.run) if row.number == number}
    assert {one.decision.operator: one.decision for one in found.operators} == decisions
    assert found.changes
    for one in found.operators:
        assert one.decision.reason.startswith(one.wanted)


def test_a_forecast_is_scored_beside_the_naive_one(store: Store) -> None:
    number = changed(store)
    (source,) = explain(store, interval=number).expected
    rates = {row.number: row.entered / row.interval_s for row in store.intervals(store.run().run)}
    assert (source.last, source.came) == (pytest.approx(rates[number]), pytest.approx(rates[number + 1]))
    assert source.low <= source.rate <= source.high
    assert source.error == pytest.approx(abs(source.rate - rates[number + 1]) / rates[number + 1])


def test_doing_nothing_after_a_jump_is_later_and_cheaper(store: Store) -> None:
    found = explain(store, interval=changed(store))
    decided, nothing = found.outcomes[DECIDED], found.outcomes[NOTHING]
    assert nothing.late > decided.late
    assert nothing.replica_seconds < decided.replica_seconds
    assert RUNNER_UP in found.outcomes
    assert found.runner_up is not None
    name, count = found.runner_up
    after = {one.decision.operator: one.decision.after for one in found.operators}
    assert abs(after[name] - count) == 1
    assert found.known


def test_where_nothing_was_changed_there_is_nothing_to_compare_with_nothing(store: Store) -> None:
    found = explain(store, at_s=30.0)
    assert (found.changes, NOTHING in found.outcomes) == ([], False)
    assert found.outcomes[DECIDED].late == 0
    assert all(one.needed is not None for one in found.operators)


def test_at_the_end_what_was_expected_is_played_on(store: Store) -> None:
    last = store.intervals(store.run().run)[-1].number
    found = explain(store, interval=last)
    assert not found.known
    assert found.ahead_s >= 10.0
    assert all(one.needed is None for one in found.operators)
    assert all(one.came is None for one in found.expected)


def test_time_leads_to_the_interval_that_ends_then_or_next(store: Store) -> None:
    number = explain(store, at_s=30.0).interval.number
    assert explain(store, at_s=29.0).interval.number == number
    assert explain(store, at_s=30.1).interval.number == number + 1


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "give one of --interval N and --at SECONDS"),
        ({"interval": 3, "at_s": 1.0}, "give one of --interval N and --at SECONDS"),
        ({"interval": 999}, "intervals are 1 to"),
        ({"at_s": 1e6}, "lasts from 0 to"),
        ({"at_s": -1.0}, "lasts from 0 to"),
    ],
)
def test_a_time_that_there_is_not(store: Store, given: dict[str, float], told: str) -> None:
    with pytest.raises(InputError, match=told):
        explain(store, **given)  # type: ignore[arg-type]


def test_a_run_without_intervals(tmp_path: Path) -> None:
    with closing(Store(str(tmp_path / "new.db"))) as new:
        new.start_run(RunRow(run="new", topology="t", policy="p", td_s=1, started_at="now"))
        with pytest.raises(InputError, match="run 'new': must have an interval; has none yet"):
            explain(new, interval=1)


def test_in_words_the_reason_comes_before_what_else_might_have_been(store: Store) -> None:
    found = explain(store, interval=changed(store))
    told = lines(found)
    first = found.changes[0]
    assert f"{first.decision.operator} {first.decision.before} → {first.decision.after}: {first.wanted}" in told
    assert "  binding: nothing; it is what the policy wanted" in told
    decided, nothing = (next(place for place, one in enumerate(told) if key in one) for key in (DECIDED, NOTHING))
    assert decided < nothing
    assert any(one.startswith("  so the change avoids ") for one in told)


def test_the_command_prints_it(place: str) -> None:
    done = CliRunner().invoke(app, ["explain", place, "--at", "30"])
    assert done.exit_code == 0
    assert "interval" in done.stdout.splitlines()[0]
    wrong = CliRunner().invoke(app, ["explain", place])
    assert (wrong.exit_code, "give one of --interval N and --at SECONDS" in wrong.output) == (2, True)
