"""A load played again: as it was, it comes to what it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.advise.event_log import LoggedApplication, LoggedQuery, read_log
from penstock.advise.replay import Load, Rules, arrivals, fewest, logged_load, policies, replay, shared_slots
from penstock.attached.model.cost import Cost
from penstock.attached.model.demand import Promise
from penstock.attached.model.need import Bounds
from penstock.attached.model.plant import SimulatedQuery
from penstock.errors import InputError

LOG = Path(__file__).parent / "data" / "app-4.3"
COST = Cost(by_row_s=0.04, by_batch_s=0.2, fixed_s=0.5, spread=1.1)
RULES = Rules(promise=Promise(10.0), bounds=Bounds(1, 8))


def came(now_s: float) -> int:
    """10 rows a second, and 150 from 300 to 600 s."""
    return int(10 * now_s + 140 * min(max(0.0, now_s - 300), 300))


def _steady(rate: float) -> Callable[[float], int]:
    return lambda now_s: int(rate * now_s)


def logged(executors: int = 4) -> LoggedApplication:
    """What a log has of a query of known cost, on executors of two cores that stay."""
    query = SimulatedQuery("clicks", 5.0, COST, came)
    query.advance(900.0, slots=2 * executors)
    there = [(-60.0, str(number), 2) for number in range(executors)]
    found = LoggedApplication(id="app-1", version="4.3.0", executors=there)
    batches = [replace(one, slots=found.slots_between(one.start_s, one.end_s)) for one in query.batches()]
    found.queries["q"] = LoggedQuery("q", "clicks", batches)
    return found


def test_costs_are_found_again_and_the_replay_comes_to_what_was() -> None:
    load = logged_load(logged(), Promise(10.0))
    (query,) = load.queries
    assert (load.slots_each, query.trigger_s) == (2, 5.0)
    assert query.cost.by_row_s == pytest.approx(COST.by_row_s, rel=0.03)
    assert query.cost.seconds(750, 8) == pytest.approx(COST.seconds(750, 8), rel=0.03)
    again, was = replay(load, 4, RULES), load.was
    assert again.executor_seconds == pytest.approx(was.executor_seconds, rel=0.01)
    assert again.rows == pytest.approx(was.rows, rel=0.01)
    assert again.late_ratio == pytest.approx(was.late_ratio, abs=0.005)
    assert again.p50_ms == pytest.approx(was.p50_ms, rel=0.1)


def test_queries_that_share_slots_are_played_as_they_ran() -> None:
    """Each was played on the slots that it needed, however many were free; and had been taken for slow by sharing."""
    slow = Cost(by_row_s=0.06, by_batch_s=0.2, fixed_s=0.4)
    queries = [SimulatedQuery(name, 3.0, slow, _steady(rate)) for name, rate in (("a", 40), ("b", 20))]
    for step in range(1, 1200):
        for one, slots in shared_slots(queries, 8):
            one.advance(step / 2, slots)
    found = LoggedApplication(id="app-1", version="4.3.0", executors=[(-60.0, str(number), 2) for number in range(4)])
    for one in queries:
        batches = [replace(batch, slots=8.0) for batch in one.batches()]
        found.queries[one.name] = LoggedQuery(one.name, one.name, batches)
    load = logged_load(found, Promise(10.0))
    assert [one.cost.spread for one in load.queries] == pytest.approx([1.0, 1.0], abs=0.1)
    again, was = replay(load, 4, RULES), load.was
    assert again.p50_ms == pytest.approx(was.p50_ms, rel=0.05)
    assert again.p99_ms == pytest.approx(was.p99_ms, rel=0.05)
    assert replay(load, 8, RULES).p99_ms < 0.9 * again.p99_ms


def test_a_log_of_sparks_played_on_its_own_executors_comes_to_what_it_was() -> None:
    """Two queries shared two executors: 41 % were foretold to be late, where none was. Java was warm after 49 s."""
    found = read_log(LOG)
    begun_s = min(batch.start_s for query in found.queries.values() for batch in query.batches)
    for query in found.queries.values():
        query.batches = [batch for batch in query.batches if batch.start_s > begun_s + 49]
    load = logged_load(found, Promise(10.0))
    again, was = replay(load, 2, RULES), load.was
    assert again.executor_seconds == pytest.approx(was.executor_seconds, rel=0.01)
    assert again.late_ratio == was.late_ratio == 0
    assert again.p50_ms == pytest.approx(was.p50_ms, rel=0.15)
    assert again.p99_ms == pytest.approx(was.p99_ms, rel=0.15)


def test_fewer_executors_are_cheaper_and_later() -> None:
    load = logged_load(logged(), Promise(10.0))
    one, four, eight = (replay(load, number, RULES) for number in (1, 4, 8))
    assert one.executor_seconds < four.executor_seconds < eight.executor_seconds
    assert one.late_ratio > 0.5 > four.late_ratio >= eight.late_ratio == 0
    least = fewest(load, RULES)
    assert least is not None
    assert least.executors == ((0.0, int(least.policy)),)
    assert replay(load, int(least.policy) - 1, RULES).late_ratio > 0.01
    assert fewest(load, Rules(promise=Promise(10.0), bounds=Bounds(1, 1))) is None


def test_a_policy_follows_the_load() -> None:
    load = logged_load(logged(), Promise(10.0))
    found = replay(load, "psps", RULES)
    peak = replay(load, 6, RULES)
    assert found.executor_seconds < 0.6 * peak.executor_seconds
    assert found.changes > 3
    assert found.executors[0][1] <= 3 < max(number for _, number in found.executors)


def test_every_policy_that_is_listed_can_be_played() -> None:
    load = logged_load(read_log(LOG), Promise(10.0))
    short = Load(load.name, load.slots_each, load.start_s, 40.0, load.was, queries=load.queries)
    assert {"cba", "optimal", "psps", "spea"} <= set(policies())
    for policy in policies():
        assert replay(short, policy, RULES).rows > 1000, policy
    assert "oracle" not in policies()


def test_rows_come_between_two_looks_of_sparks() -> None:
    load = logged_load(read_log(LOG), Promise(10.0))
    slow = next(one for one in load.queries if one.name == "slow")
    assert slow.came(0.0) == 0
    assert slow.came(load.seconds) == 4350
    assert slow.came(60.0) - slow.came(40.0) == pytest.approx(1000, rel=0.1)  # 50 a second


def test_after_a_lull_rows_came_at_the_last_look() -> None:
    found = logged().queries["q"]
    first, second = found.batches[0], found.batches[10]
    lull = LoggedQuery("q", "clicks", [first, second])
    when = arrivals(lull, 5.0, 0.0)
    assert when(second.start_s - 5.0) == 0
    assert when(second.start_s) == second.rows


def test_a_log_of_one_batch_says_too_little() -> None:
    found = logged()
    found.queries["q"].batches = found.queries["q"].batches[:1]
    with pytest.raises(InputError, match="at least two batches with rows"):
        logged_load(found, Promise(10.0))
