"""How decisions turned out, once it is known what came."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.metrics.rows import (
    DecisionRow,
    ForecastRow,
    IntervalRecord,
    IntervalRow,
    OperatorRow,
    PromiseRow,
    ShadowRow,
)
from penstock.metrics.scores import Scored, scores

PROMISE = PromiseRow(late=0.01, target_ms=1000.0)


def record(number, entered, *, replicas=2, after=None, backlog=0, expected=None, **more):
    """An interval of 2 s: one operator at 20 ms an event, that gets all that enters."""
    clean = {"number": number, "operator": "clean"}
    seen = OperatorRow(
        **clean,
        received=entered,
        received_by={"in": entered},
        processed=entered,
        backlog=backlog,
        dropped=0,
        replicas=replicas,
        pool=8,
        busy_share=0.5,
        cpu_share=0.1,
        execution_time_s=0.02,
        incomplete=more.pop("incomplete", None),
    )
    interval = IntervalRow(
        number=number,
        time_s=2.0 * number,
        interval_s=2.0,
        source_input={"in": entered},
        entered=entered,
        source_output=entered,
        replicas=replicas,
        backlog=backlog,
        dropped=0,
        latency_count=0,
        latency_mean_ms=None,
        latency_p50_ms=None,
        latency_p99_ms=None,
    )
    planned = replicas if after is None else after
    decision = DecisionRow(**clean, before=replicas, after=planned, expected=None, reason="said")
    forecast = () if expected is None else (expected,)
    return IntervalRecord(
        interval=interval,
        operators=(seen,),
        decisions=(decision,),
        forecasts=tuple(ForecastRow(number=number, series="in", step=1, rate=one, forecaster="f") for one in forecast),
        decided_by="psps",
        **more,
    )


def test_enough_replicas_for_what_came():
    (one,) = scores(record(1, 100, replicas=1, after=3), record(2, 300, replicas=3), PROMISE)
    assert (one.number, one.policy, one.role, one.events, one.seconds) == (1, "psps", "decides", 300, 2.0)
    assert (one.replicas, one.needed) == ({"clean": 3}, {"clean": 3})
    assert (one.too_many, one.too_few, one.late) == (0, 0, 0.0)


def test_late_events_that_a_change_has_avoided():
    """150 a second, where one replica does 50: the wait is too long after 0.46 s of 2."""
    (one,) = scores(record(1, 100, replicas=1, after=3), record(2, 300, replicas=3), PROMISE)
    slack_s = 1.0 - 1.5 * 0.02 - 0.05
    assert one.nothing_late == pytest.approx(300 * (1 - slack_s * 50 / (100 * 2)))
    assert one.nothing_replicas == 1


@pytest.mark.parametrize(("after", "many", "few"), [(8, 5, 0), (3, 0, 0), (1, 0, 2)])
def test_too_many_and_too_few(after, many, few):
    (one,) = scores(record(1, 100, replicas=2, after=after), record(2, 300), PROMISE)
    assert (one.too_many, one.too_few) == (many, few)


def test_late_events_that_a_change_has_caused():
    (one,) = scores(record(1, 300, replicas=4, after=1), record(2, 300, replicas=1), PROMISE)
    assert one.nothing_late == 0.0
    assert one.late > 200


def test_what_waited_counts():
    calm, full = (scores(record(1, 100, backlog=n), record(2, 190), PROMISE)[0] for n in (0, 1000))
    assert (calm.late, full.late) == (0.0, 190.0)


def test_the_runner_up_is_the_cheapest_that_keeps_the_promise():
    (one,) = scores(record(1, 300, replicas=2, after=5), record(2, 300), PROMISE)
    assert (one.runner_up, one.runner_up_replicas, one.runner_up_late) == ("clean 4", 4, 0.0)
    (one,) = scores(record(1, 300, replicas=2, after=3), record(2, 310), PROMISE)
    assert (one.runner_up, one.runner_up_late) == ("clean 4", 0.0)


def test_the_forecast_beside_the_last_rate():
    (one,) = scores(record(1, 100, expected=140.0), record(2, 300), PROMISE)
    assert one.forecast_error == pytest.approx(10 / 150)
    assert one.naive_error == pytest.approx(100 / 150)
    (one,) = scores(record(1, 100), record(2, 0), PROMISE)
    assert (one.forecast_error, one.naive_error) == (None, None)


def test_who_is_in_the_shadow_is_scored_too():
    shadow = ShadowRow(number=1, policy="static:1", operator="clean", replicas=1, reason="static")
    first, second = scores(record(1, 300, replicas=3, shadows=(shadow,)), record(2, 300), PROMISE)
    assert [(one.policy, one.role, one.too_few) for one in (first, second)] == [
        ("psps", "decides", 0),
        ("static:1", "shadow", 2),
    ]
    assert first.late == 0.0
    assert second.late > 100


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (record(1, 100), record(3, 100)),
        (record(1, 100, incomplete="stale"), record(2, 100)),
        (record(1, 100), record(2, 100, incomplete="stale")),
        (replace(record(1, 100), decisions=()), record(2, 100)),
    ],
    ids=["missed", "not trusted before", "not trusted after", "nothing decided"],
)
def test_what_cannot_be_said(before, after):
    assert scores(before, after, PROMISE) == ()


def test_an_execution_time_that_nobody_knows():
    before = record(1, 100)
    unknown = replace(before, operators=tuple(replace(one, execution_time_s=None) for one in before.operators))
    (one,) = scores(unknown, record(2, 100), PROMISE)
    assert (one.needed, one.too_many, one.late, one.runner_up) == ({}, 0, None, None)


def test_each_record_gets_the_scores_of_the_one_before():
    scored = Scored("the run's", PROMISE)
    first = scored.after(replace(record(1, 100), decided_by=""))
    second = scored.after(record(2, 100))
    third = scored.after(record(3, 100))
    assert (first.scores, first.decided_by) == ((), "the run's")
    assert [(one.number, one.policy) for one in (*second.scores, *third.scores)] == [(1, "the run's"), (2, "psps")]
