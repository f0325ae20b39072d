"""A query as an operator: input, backlog, execution time, and when its numbers are not to be trusted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.attached.model.demand import Promise
from penstock.attached.model.progress import Batch
from penstock.attached.model.query import QueryState


def batch(number: int, rows: int = 500, *, start_s: float | None = None, seconds: float = 2.0) -> Batch:
    start_s = 5.0 * number if start_s is None else start_s
    return Batch(
        number=number,
        start_s=start_s,
        planned_s=start_s,
        seconds=seconds,
        rows=rows,
        core_s=rows * 0.01,
        slots=4,
        tasks=8,
    )


def state(*batches: Batch, trigger_s: float = 5.0, target_s: float = 12.0) -> QueryState:
    query = QueryState("clicks", trigger_s, Promise(target_s))
    for one in batches:
        query.learn(one)
    return query


def test_the_rate_is_what_came_between_two_plannings() -> None:
    query = state(batch(1, 800), batch(2, 500), batch(3, 1000))
    assert query.rate(5.0) == 200.0
    assert query.rate(10.0) == 150.0
    assert query.rate(1000.0) == 150.0  # when the rows of the first came nobody knows


def test_what_the_source_held_back_came_too() -> None:
    """Spark takes in 500 a batch, while 700 come: what waits grows."""
    first, second = replace(batch(1), waiting=100.0), replace(batch(2), waiting=300.0)
    query = state(first, second)
    assert query.rate(5.0) == 140.0
    assert query.backlog(12.0) == 300.0


def test_a_query_that_keeps_its_pace_has_no_backlog() -> None:
    query = state(batch(1), batch(2))
    assert [query.backlog(now_s) for now_s in (12.0, 15.0, 18.0, 20.0)] == [0.0] * 4


def test_a_batch_that_took_too_long_leaves_a_backlog() -> None:
    """100 rows/s, every 5 s: after a batch of 12 s the next has 12 s of rows, 700 more than it should have."""
    query = state(batch(1), batch(2, seconds=12.0))
    assert query.backlog(22.0) == 700.0
    assert query.backlog(26.0) == 700.0  # the next one may take 5 s
    assert query.backlog(30.0) == 1000.0  # and takes longer


def test_without_a_trigger_half_of_the_target_is_what_a_batch_may_have() -> None:
    quick = [batch(n, 100, start_s=float(n), seconds=1.0) for n in range(5)]
    query = state(*quick, trigger_s=0.0)
    assert query.rate(3.0) == 100.0
    assert query.backlog(5.5) == 0.0
    assert query.backlog(5.0 + 6.0 + 2.0) == 200.0


def test_a_backlog_that_somebody_else_knows_goes_before_the_sources_word() -> None:
    query = state(batch(1), replace(batch(2), waiting=300.0))
    query.outside = 4000.0
    assert query.backlog(12.0) == 4000.0
    assert query.load(12.0, 5.0, (0, 1), 8).outside == 4000


def test_rows_wait_from_their_arrival() -> None:
    query = state(batch(1), batch(2), target_s=6.0)
    assert query.delays.rows == 500  # of the first nobody knows when its rows came
    assert query.delays.histogram.mean_ms == pytest.approx(4500)  # 2 s, and up to 5 s before
    assert query.delays.late == 100


def test_after_a_lull_rows_are_not_older_than_sparks_last_look() -> None:
    """Between batches 1 and 9 Spark looked every 5 s, and nothing was there."""
    query = state(batch(1), batch(9, 300))
    assert query.delays.histogram.max_ms <= 7000
    quick = state(batch(1, 10), batch(9, 10, seconds=0.5), trigger_s=0.0)
    assert quick.delays.histogram.max_ms <= 600


def test_an_idle_query_is_heard_of_and_comes_to_nothing() -> None:
    query = state(batch(1), batch(2), batch(3, 0, start_s=20.0, seconds=0.0), batch(3, 0, start_s=30.0, seconds=0.0))
    assert query.rate(10.0) == 0.0
    assert query.backlog(39.0) == 0.0
    assert query.doubt(85.0) is None
    assert query.doubt(95.0) == "no progress for 65 s; not to be trusted after 60 s"


def test_before_the_first_batch_nothing_is_known() -> None:
    query = state()
    assert query.doubt(0.0) == "no batch has ended yet"
    assert query.execution_time_s(5.0) is None
    load = query.load(0.0, 5.0, (0,), 8)
    assert (load.received, load.backlog, load.execution_time_s) == (0, 0, None)


def test_after_one_batch_it_is_not_known_how_fast_rows_come() -> None:
    """On Spark, after the first batch, a query seemed to get no rows at all, and its executors were let go."""
    query = state(replace(batch(1), offsets=500.0))
    assert query.doubt(8.0) == "one batch has ended: how fast rows come is not known yet"
    query.see_running(1000.0)
    assert query.doubt(8.0) is None
    assert query.rate(5.0) == 200.0
    query.learn(batch(2))
    assert query.doubt(13.0) is None


def test_the_load_is_what_a_policy_needs() -> None:
    query = state(batch(1), batch(2), batch(3))
    load = query.load(17.0, 5.0, (0, 1, 2, 3), 16)
    assert load.received_by == {"clicks (source)": 500}
    assert (load.active, load.pool, load.backlog) == ((0, 1, 2, 3), 16, 0)
    assert load.execution_time_s is not None
    # 5 s of rows at 10 ms each in 5 s / 1.25 less the 0.75 s that no slot shortens: 5 / 3.25 slots
    assert 100 * load.execution_time_s == pytest.approx(5 / 3.25)
    assert load.busy_share == pytest.approx(dict.fromkeys(range(4), 0.25))


def test_a_batch_that_runs_shows_what_has_come() -> None:
    """After batches of 100 rows/s one of 3000 rows runs, planned 5 s after the last: 600 rows/s."""
    query = state(*(replace(batch(n), offsets=1000.0) for n in (1, 2)))  # two offsets a row
    query.see_running(6000.0)
    assert query.rate(5.0) == 600.0
    assert query.rate(10.0) == 350.0
    query.see_running(None)
    assert query.rate(5.0) == 100.0
    query.see_running(6000.0)
    query.learn(replace(batch(3, 3000), offsets=6000.0))
    assert query.rate(10.0) == 350.0  # not twice


def test_state_bounds_the_slots() -> None:
    query = state(replace(batch(1), state_partitions=4, state_bytes=1000))
    assert query.most_slots == 4
    assert query.load(7.0, 5.0, (0,), 4).state_bytes == 1000


def test_a_query_that_was_started_again_does_not_count_what_lies_between() -> None:
    query = state(batch(1), batch(2))
    query.forget_place()
    query.learn(batch(60, 30_000))  # all that came while it was away
    assert query.rate(5.0) == 100.0
    assert query.delays.rows == 500
    query.learn(batch(61))
    assert query.rate(5.0) == 100.0
