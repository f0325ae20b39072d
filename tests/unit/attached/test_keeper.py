"""The keeper around queries on paper: executors follow the load, and faults do the queries no harm."""

from __future__ import annotations

import html
import logging
import math
import threading
from collections.abc import Callable

import pytest

from penstock.attached.keeper import Keeper
from penstock.attached.model import monitor
from penstock.attached.model.cost import Cost
from penstock.attached.model.demand import Promise
from penstock.attached.model.need import Bounds
from penstock.attached.model.plant import SimulatedExecutors, SimulatedQuery
from penstock.attached.options import KeeperOptions
from penstock.errors import EngineError, InputError
from tests.waiting import LONG_S

COST = Cost(by_row_s=0.04, by_batch_s=0.2, fixed_s=0.5, spread=1.1)


class Played:
    """Queries, their executors and a keeper, on one clock."""

    def __init__(
        self,
        *queries: SimulatedQuery,
        first: int = 1,
        join_s: float = 10.0,
        mode: str = "act",
        lag: Callable[[], float] | None = None,
        calendar: str | None = None,
    ) -> None:
        self.now_s = 0.0
        self.executors = SimulatedExecutors(first, slots_each=2, join_s=join_s, now=lambda: self.now_s)
        options = KeeperOptions(
            bounds=Bounds(1, 8),
            promise=Promise(10.0),
            mode=mode,
            policy="psps",
            forecaster=None,
            td_s=5.0,
            calendar=calendar,
        )
        self.queries = queries
        self.keeper = Keeper(self.executors, options)
        for one in queries:
            self.keeper.add(one, lag)
        self.counts: list[int] = []

    def until(self, time_s: float) -> Played:
        while self.now_s < time_s:
            self.now_s += 0.5
            share = self.executors.slots() // max(1, len(self.queries))
            for one in self.queries:
                one.advance(self.now_s, max(1, share))
            if self.now_s % 5 == 0:
                assert self.keeper.step(self.now_s).failures == {}
                self.counts.append(self.executors.count())
        return self


def rising(low: float, high: float, from_s: float, to_s: float) -> Callable[[float], int]:
    """Rows that have come: few, many in between, few again."""

    def came(now_s: float) -> int:
        many_s = min(max(0.0, now_s - from_s), to_s - from_s)
        return int(low * now_s + (high - low) * many_s)

    return came


def query(came: Callable[[float], int], name: str = "clicks", trigger_s: float = 5.0) -> SimulatedQuery:
    return SimulatedQuery(name, trigger_s, COST, came)


def test_executors_come_with_the_load_and_go_with_it() -> None:
    played = Played(query(rising(10.0, 150.0, 300.0, 600.0)))
    played.until(280.0)
    assert played.counts[-1] == 1
    played.until(590.0)
    assert 4 <= played.counts[-1] <= 6  # 150 · 0.04 · 1.1 = 6.6 slots, and room for fixed costs and surprises
    played.until(900.0)
    assert played.counts[-1] == 1
    state = played.keeper.monitor.states["clicks"]
    assert state.cost is not None
    assert state.cost.by_row_s == pytest.approx(COST.by_row_s, rel=0.05)
    assert state.delays.rows + played.queries[0].unfinished >= state.processed - 200
    assert state.delays.late < 0.08 * state.delays.rows  # those of the rise
    assert played.keeper.kept is not None
    assert played.keeper.kept.joining.median_s == 10.0


def test_after_the_rise_all_rows_are_on_time() -> None:
    played = Played(query(rising(10.0, 120.0, 100.0, 2000.0))).until(400.0)
    late = played.keeper.monitor.states["clicks"].delays.late
    played.until(1500.0)
    assert played.keeper.monitor.states["clicks"].delays.late == late
    assert played.keeper.kept is not None
    assert played.keeper.kept.changes < 16


@pytest.mark.parametrize("trigger_s", [0.0, 2.0])
def test_other_triggers(trigger_s: float) -> None:
    played = Played(query(rising(10.0, 80.0, 100.0, 500.0), trigger_s=trigger_s)).until(450.0)
    assert 2 <= played.counts[-1] <= 6
    played.until(900.0)
    assert played.counts[-1] == 1


def test_two_queries_share_the_executors_by_need() -> None:
    steady, burst = query(lambda s: int(20 * s), "steady"), query(rising(5.0, 60.0, 200.0, 500.0), "burst")
    played = Played(steady, burst).until(450.0)
    wanted = played.keeper.allotment.wanted
    assert wanted["burst"] > wanted["steady"] >= 1
    assert played.executors.slots() >= sum(wanted.values())
    played.until(800.0)
    assert played.executors.count() <= 2


def test_advice_changes_nothing_and_says_what_it_would_do() -> None:
    played = Played(query(lambda s: int(10 * s)), first=6, mode="advise").until(300.0)
    assert set(played.counts) == {6}
    told = played.keeper.summary()
    assert told["wanted_executor_seconds"] < 0.4 * told["executor_seconds"]
    assert played.keeper.kept is None
    assert played.keeper.decisions[0].after < played.keeper.decisions[0].before
    assert "would have 1 of 1 to 8" not in str(played.keeper)  # it has not been started
    assert "query 'clicks'" in str(played.keeper)


def test_a_query_that_falls_silent_keeps_its_executors(caplog: pytest.LogCaptureFixture) -> None:
    came = rising(100.0, 100.0, 0.0, 1.0)
    silent = query(came)
    played = Played(silent).until(200.0)
    before = played.counts[-1]
    silent.batches = lambda: ()  # type: ignore[method-assign]
    played.until(600.0)
    assert min(played.counts[-60:]) >= before
    plan = played.keeper.state.seen
    assert plan is not None
    assert plan.plan is not None
    assert "nothing is scaled in" in plan.plan.notes[0]


def test_executors_stay_until_the_first_batches_have_ended() -> None:
    """Two queries on three slots had one each by rounding, and the third was let go before anything was known."""
    silent = [query(lambda s: int(10 * s), name) for name in ("clicks", "views", "orders", "likes")]
    played = Played(*silent, first=3)
    for one in silent:
        one.batches = lambda: ()  # type: ignore[method-assign]
    played.until(100.0)
    assert set(played.counts) == {3}


def test_a_cluster_that_refuses_executors_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    played = Played(query(lambda s: int(100 * s)))
    asked: list[int] = []
    request = played.executors.request

    def refuse(total: int) -> None:
        asked.append(total)
        raise EngineError(f"executors: the cluster did not take the request for {total}")

    played.executors.request = refuse  # type: ignore[method-assign]
    while played.now_s < 100.0:
        played.now_s += 5.0
        played.queries[0].advance(played.now_s, played.executors.slots())
        played.keeper.step(played.now_s)
    assert played.executors.count() == 1
    assert len(asked) > 2
    assert "infrastructure failed: EngineError" in caplog.text
    played.executors.request = request  # type: ignore[method-assign]
    played.until(200.0)
    assert played.executors.count() > 1


def test_executors_that_are_taken_away_are_asked_for_again() -> None:
    played = Played(query(lambda s: int(100 * s))).until(200.0)
    before = played.executors.count()
    played.executors.decommission(played.executors.ids()[-1])
    played.executors.decommission(played.executors.ids()[-1])
    played.until(240.0)
    assert played.executors.count() >= before


def test_a_lag_of_the_users_own_counts_and_one_that_fails_does_not(caplog: pytest.LogCaptureFixture) -> None:
    waits = [2000.0]
    played = Played(query(lambda s: int(10 * s)), lag=lambda: waits[0])
    played.until(100.0)
    assert played.counts[-1] == 8  # 2000 rows of 40 ms
    for wrong in (math.nan, -1.0, math.inf):
        waits[0] = wrong
        played.until(played.now_s + 5)
        assert played.keeper.monitor.states["clicks"].outside is None
    waits.clear()
    played.until(played.now_s + 5)
    assert "its lag cannot be asked" in caplog.text


def test_a_lag_is_used_in_the_step_that_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was asked after the step, and counted in the next."""
    monkeypatch.setattr(monitor, "WITHIN_S", LONG_S)  # the machine may be busy
    played = Played(query(lambda s: int(10 * s)), lag=lambda: 500.0).until(5.0)
    load = played.keeper.state.seen
    assert load is not None
    assert load.snapshot is not None
    assert load.snapshot.operators["clicks"].outside == 500


def test_a_lag_that_never_answers_holds_nobody_up() -> None:
    answered = threading.Event()
    played = Played(query(lambda s: int(10 * s)), lag=lambda: float(answered.wait(LONG_S))).until(20.0)
    answered.set()
    assert len(played.counts) == 4
    assert played.keeper.monitor.states["clicks"].outside is None


def test_a_freeze_keeps_executors_and_an_event_has_them_ready() -> None:
    """From 200 s to 400 s after the clock's beginning nothing changes; from 700 s on there are ten slots at least."""
    calendar = "freeze 1970-01-01 00:03-00:06; least clicks=10 1970-01-01 00:12-00:15"
    played = Played(query(rising(10.0, 150.0, 200.0, 300.0)), calendar=calendar)
    played.until(175.0)
    before = played.counts[-1]
    played.until(355.0)
    assert {before} == set(played.counts[-34:])
    played.until(700.0)
    assert played.counts[-1] == 1
    played.until(760.0)
    assert played.counts[-1] == 5
    assert any("at least 10 by the calendar" in one.reason for one in played.keeper.decisions)


def test_in_a_notebook_it_is_text_and_nothing_else() -> None:
    played = Played(query(lambda s: int(10 * s), name="<b>clicks</b> & more")).until(50.0)
    shown = played.keeper._repr_html_()
    assert (shown[:5], shown[-6:]) == ("<pre>", "</pre>")
    assert "query '&lt;b&gt;clicks&lt;/b&gt; &amp; more'".replace("'", "&#x27;") in shown
    assert "<b>" not in shown
    assert html.unescape(shown[5:-6]) == str(played.keeper)


def test_a_query_is_attached_once() -> None:
    played = Played(query(lambda s: 0))
    with pytest.raises(InputError, match="query 'clicks': is attached already"):
        played.keeper.add(query(lambda s: 0))


def test_the_logs_of_this_test_are_quiet(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        Played(query(lambda s: int(10 * s))).until(100.0)
    assert caplog.text == ""
