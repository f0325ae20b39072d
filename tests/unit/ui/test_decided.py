"""What was decided and refused, who decided and how it turned out, as the page shows it; and when it does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.metrics.rows import DeciderRow, DecisionRow, LimitRow, PromiseRow, RunRow, ShadowRow
from penstock.metrics.scores import Scored
from penstock.metrics.store import Store
from penstock.simulator import Scenario, compare
from penstock.ui.compare import totals_of
from penstock.ui.decided import LOOKED_BACK, Lately
from penstock.ui.moment import latency_s, moment
from penstock.ui.operators import operator_series, replicas_over_time
from penstock.ui.series import RunSeries
from penstock.workload import Trace

from .conftest import RUN, Make, operator

PROMISE = PromiseRow(late=0.01, target_ms=2000.0)


@pytest.fixture
def scored(tmp_path: Path, make: Make) -> Iterator[Store]:
    """Five intervals; in all but the first nothing may change for want of slots, and somebody is in the shadow."""
    with closing(Store(str(tmp_path / "scored.db"))) as store:
        store.start_run(RunRow(run=RUN, topology="words", policy="psps", td_s=2.0, started_at="now"), PROMISE)
        scores = Scored("psps", PROMISE)
        for number in range(1, 6):
            made = make(number)
            if number > 1:
                kept = tuple(replace(one, after=one.before) for one in made.decisions)
                limits = (LimitRow(number=number, operator="split", wanted=number + 1, told="the pool has 8"),)
                made = replace(made, decisions=kept, limits=limits)
            shadow = ShadowRow(number=number, policy="static:1", operator="split", replicas=1, reason="static")
            begins = DeciderRow(number=1, time_s=made.interval.time_s, policy="psps", before=None, reason="begins")
            made = replace(made, shadows=(shadow,), deciders=(begins,) if number == 1 else ())
            store.write(RUN, scores.after(made))
        yield store


def test_a_change_is_shown_with_how_it_turned_out(scored: Store) -> None:
    count, split = Lately(scored, RUN).at(5).decisions()
    assert (count["operator"], split["operator"], split["before"], split["after"]) == ("count", "split", 1, 2)
    assert split["score"] == count["score"]
    assert split["score"]["too_many"] == 2, "51 a second at 10 ms need one of two replicas, twice"
    assert (split["score"]["late"], split["score"]["nothing_late"], split["score"]["nothing_replicas"]) == (0, 0, 2)
    assert split["score"]["runner_up"] == "split 3"
    assert split["score"]["runner_up_replicas"] == 5, "what it would have cost"


def test_at_its_own_time_the_outcome_is_not_known(scored: Store) -> None:
    assert [one["score"] for one in Lately(scored, RUN).at(1).decisions()] == [None, None]


def test_refusals_are_told_once_with_their_limit(scored: Store) -> None:
    (one,) = Lately(scored, RUN).at(5).refusals()
    assert (one["operator"], one["told"]) == ("split", "the pool has 8")
    assert (one["first"], one["last"], one["times"]) == (2, 5, 4)
    assert (one["wanted_least"], one["wanted_most"], one["replicas"]) == (3, 6, 5)
    assert Lately(scored, RUN).at(1).refusals() == []


def test_moving_on_gives_what_reading_all_of_it_gives(
    scored: Store, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every interval that somebody watched the thousand before it were read: 7 % of a core at one a second."""
    monkeypatch.setattr("penstock.ui.decided.LOOKED_BACK", 3)
    for number in range(6, 12):
        made = make(number)
        kept = tuple(replace(one, after=one.before) for one in made.decisions[number % 2 :])
        told = "the pool has 8" if number < 8 else "slots do not suffice"
        limits = (LimitRow(number=number, operator="count", wanted=number - 2, told=told),)
        scored.write(RUN, replace(made, decisions=(*made.decisions[: number % 2], *kept), limits=limits))
    moving = Lately(scored, RUN)
    for number in (1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 11, 5, 6):
        anew = Lately(scored, RUN).at(number)
        moving.at(number)
        assert moving.decisions() == anew.decisions()
        assert moving.refusals() == anew.refusals()
        assert moving.scores() == anew.scores()
        assert (moving.late, moving.events, moving.events_now) == (anew.late, anew.events, number)
    assert moving.at(11).refusals()[0]["first"] == 9, "what is older than is looked back is forgotten"
    assert LOOKED_BACK == 1000


def test_scores_by_policy(scored: Store) -> None:
    psps, static = Lately(scored, RUN).at(5).scores()
    assert (psps["policy"], psps["role"], static["policy"], static["role"]) == ("psps", "decides", "static:1", "shadow")
    assert (psps["intervals"], static["intervals"]) == (4, 4)
    assert psps["too_many"] > static["too_many"]
    assert psps["naive_error"] == pytest.approx((1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 4)
    assert Lately(scored, RUN).at(1).scores() == []


def test_the_moment_has_all_of_it(scored: Store) -> None:
    found = moment(scored, scored.run(RUN), 5, 10.0)
    assert found is not None
    assert [one["reason"] for one in found["deciders"]] == ["begins"]
    assert len(found["scores"]) == 2
    assert len(found["refusals"]) == 1


def test_scores_over_time_are_those_of_the_interval_that_was_decided_for(scored: Store) -> None:
    series = RunSeries(scored, RUN)
    series.refresh()
    mean = series.overview()["mean"]
    assert mean["too_many"][0] is None
    assert mean["too_many"][1] == 2
    assert mean["naive_percent"][1:] == [50.0, 33.33, 25.0, 20.0]
    assert (mean["late_avoided"][0], mean["late_avoided"][1], mean["late_caused"][1]) == (None, 0, 0)


def test_late_events_that_decisions_avoided_or_caused_over_time(scored: Store, make: Make) -> None:
    """As metrics have them: the difference to changing nothing, on the side where it is."""
    (last,) = scored.scores(RUN)[-1:]
    for number, late, nothing_late in ((6, 3.0, 40.0), (7, 5.0, 1.0)):
        score = replace(last, number=number - 1, role="decides", late=late, nothing_late=nothing_late)
        scored.write(RUN, replace(make(number), scores=(score,)))
    series = RunSeries(scored, RUN)
    series.refresh()
    mean = series.overview()["mean"]
    assert (mean["late_avoided"][-2:], mean["late_caused"][-2:]) == ([37, 0], [0, 4])


def test_of_a_run_that_goes_on_only_what_is_new_is_read(scored: Store, make: Make) -> None:
    series = RunSeries(scored, RUN)
    series.refresh()
    last = Scored("psps", PROMISE)
    last.after(make(5))
    scored.write(RUN, last.after(make(6)))
    series.refresh()
    assert series.since(5)["mean"]["naive_percent"] == [16.67]


def test_latency_is_what_its_backlog_takes_and_its_own_time() -> None:
    assert latency_s(operator(1, "a", "in", backlog=50), 2.0) == pytest.approx(1.01)
    assert latency_s(operator(1, "a", "in", backlog=0), 2.0) == pytest.approx(0.01)
    assert latency_s(operator(1, "a", "in", backlog=5, processed=0), 2.0) is None
    assert latency_s(operator(1, "a", "in", execution_time_s=None), 2.0) is None


def test_an_arenas_store_opens_like_any_other(tmp_path: Path) -> None:
    """`penstock compare --store`: a run for each policy, and whatever the page asks for is there."""
    place = str(tmp_path / "arena.db")
    scenario = Scenario("dns", Trace("made", 1.0, np.array([30.0] * 10))).changed(slots=6)
    compare(scenario, ["psps", "static:3"], store=place)
    with closing(Store(place, must_exist=True)) as store:
        runs = store.runs()
        assert {row.policy for row in runs} == {"psps", "static:3"}
        for run in runs:
            series = RunSeries(store, run.run)
            last = series.refresh()
            assert last is not None
            shown = moment(store, run, last, series.start_s)
            assert shown is not None
            names = [one["operator"] for one in shown["operators"]]
            assert operator_series(store, run.run, names[0])["replicas"]
            assert set(replicas_over_time(store, run.run)["replicas"]) == set(names)
            assert totals_of(store, run.run)
            assert [one["role"] for one in shown["scores"]] == ["decides"]


def test_what_is_not_let_have_is_kept_as_it_was_decided(make: Make) -> None:
    """The guards' own words, not a guess at the text of a reason."""
    from penstock.control.step import Step, interval_record
    from penstock.policy.guards import guarded
    from penstock.policy.static import Static
    from penstock.testing.loads import load, snapshot

    seen = snapshot({"in": 10}, [load("a", {"in": 10}, pool=3, replicas=3)])
    plan = guarded(Static(9)).plan(seen)
    record = interval_record(Step(number=7, time_s=1.0, snapshot=seen, plan=plan), seen)
    assert record.limits == (LimitRow(number=7, operator="a", wanted=9, told="the pool has 3"),)
    assert record.decisions[0] == DecisionRow(
        number=7, operator="a", before=3, after=3, expected=None, reason="static; the pool has 3"
    )
