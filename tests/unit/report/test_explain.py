"""Decisions explained from a store: what was seen and expected, what was binding, and what else might have been."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock import Scenario, simulate
from penstock.cli.main import app
from penstock.errors import InputError
from penstock.metrics.rows import PromiseRow, RunRow
from penstock.metrics.store import Store
from penstock.report.explain import DECIDED, NOTHING, RUNNER_UP, explain
from penstock.report.explain_past import Past
from penstock.report.explain_queries import played_queries, promise_of
from penstock.report.explain_words import lines
from penstock.simulator.what_if import Standing, StateAtHand, played_on
from penstock.topology import Topology
from penstock.workload import Trace
from tests.unit.attached.stores import kept_store

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


def test_an_overload_is_played_from_before_it_began(store: Store) -> None:
    """Two intervals after the jump, what waits is older than the target: late, whatever is done."""
    run = store.run().run
    jumped = next(row.number for row in store.intervals(run) if row.entered > 500)
    state = Past(store, store.run(), {row.number: row for row in store.intervals(run)}, jumped).state(2.0)
    assert state.past
    assert state.past[-1].rates["queries"] == pytest.approx(160.0, rel=0.01)
    assert sum(state.past[0].waited.values()) < sum(one.backlog for one in state.operators.values())
    assert explain(store, interval=jumped).outcomes[DECIDED].late > 0


def test_intervals_that_were_cut_short_are_played_as_long_as_they_were(store: Store) -> None:
    """A loop that a jump wakes ends intervals early: three of these were played as if each took all of td."""
    run = store.run()
    seen = {row.number: row for row in store.intervals(run.run) if row.number <= 7}
    for number in (6, 7):  # what is one interval, in two parts
        ends_s = seen[5].time_s + 2.5 * (number - 5)
        seen[number] = replace(seen[number], time_s=ends_s, interval_s=2.5, source_input={"queries": 100})
    state = Past(store, run, seen, 5).state(2.0)
    assert state.rates["queries"] == pytest.approx((40.0,))
    assert state.seconds == 5.0


def test_what_waits_keeps_its_age_while_the_backlog_falls(tmp_path: Path) -> None:
    """The interval with the least backlog was the one at hand, so that all that waited counted as new."""
    topology = Topology("falls")
    topology.operator("work", len, inputs=topology.source("in"), pool=2, execution_time_ms=10)
    trace = Trace("falls", 1.0, [200.0] * 4 + [20.0] * 10)
    simulate(Scenario(topology, trace).changed(target_ms=500), "static:1", store=str(tmp_path / "run.db"))
    with closing(Store(str(tmp_path / "run.db"))) as store:
        seen = {row.number: row for row in store.intervals(store.run().run)}
        falling = next(number for number, row in seen.items() if row.backlog < seen[1].backlog)
        assert falling > 4
        state = Past(store, store.run(), seen, falling).state(0.5)
        assert len(state.past) >= falling - 2
        assert played_on(state, {"work": 1}).late >= seen[falling].backlog


# ── of a keeper ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The store of a keeper whose query's load jumps from 20 to 100 rows a second after 100 s."""
    return kept_store(tmp_path_factory.mktemp("kept") / "metrics.db", "my clicks.v2")


def test_every_interval_of_a_keeper_can_be_explained(kept: str) -> None:
    """None could: the name of a query's source is none that a topology takes."""
    with closing(Store(kept, must_exist=True)) as store:
        for row in store.intervals(store.run().run):
            told = "\n".join(lines(explain(store, interval=row.number)))
            assert "my clicks.v2 " in told


def test_a_keepers_query_is_played_on_in_batches(kept: str) -> None:
    with closing(Store(kept, must_exist=True)) as store:
        found = explain(store, interval=changed(store))
    assert (found.in_batches, found.promise.target_ms) == (True, 10_000.0)
    assert "played on for 15.00 s in batches, with slots for replicas, with what came:" in lines(found)
    decided, nothing = found.outcomes[DECIDED], found.outcomes[NOTHING]
    assert nothing.late > 500 > decided.late
    assert nothing.events == decided.events >= 1500
    (only,) = found.operators
    assert nothing.replica_seconds == 15.0 * only.decision.before
    assert decided.backlog == nothing.backlog == 0  # what was slow to begin with is made up for, too late


def test_what_one_batch_may_take_is_not_late() -> None:
    """A row waits up to 5 s for its batch, and that takes up to 5 s: 10 s are on time."""
    busy = Standing(execution_time_s=0.1, pool=8, replicas=4, backlog=0, shares={"clicks (source)": 1.0})
    state = StateAtHand({"clicks": busy}, {"clicks (source)": (40.0,) * 6}, 5.0, 10.0)
    enough, few = (played_queries(state, {"clicks": slots}, {"clicks": 5.0}) for slots in (4, 3))
    assert (enough.events, enough.late, enough.backlog) == (1200, 0, 0)
    assert few.late > 200
    assert few.replica_seconds == 90.0


def test_a_keepers_promise_from_before_it_was_kept_is_among_its_settings(kept: str) -> None:
    with closing(Store(kept, must_exist=True)) as store:
        run = replace(store.run(), run="another")
        assert promise_of(store, run) == PromiseRow(late=0.01, target_ms=10_000.0)


def test_the_command_explains_a_keeper(kept: str) -> None:
    done = CliRunner().invoke(app, ["explain", kept, "--at", "110"])
    assert done.exit_code == 0, done.output
    assert "in batches" in done.stdout


def test_the_command_prints_it(place: str) -> None:
    done = CliRunner().invoke(app, ["explain", place, "--at", "30"])
    assert done.exit_code == 0
    assert "interval" in done.stdout.splitlines()[0]
    wrong = CliRunner().invoke(app, ["explain", place])
    assert (wrong.exit_code, "give one of --interval N and --at SECONDS" in wrong.output) == (2, True)
