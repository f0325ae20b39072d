"""Orders of a live run: noted with who and when, carried over to the next driver, and never kept back by the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from penstock import (
    Elastic,
    Freeze,
    Hold,
    InputError,
    Limit,
    SetTd,
    Stop,
    Unfreeze,
    UseCanary,
    UseForecaster,
    UsePolicy,
    UseShadow,
)
from penstock.control.orders import order_as_json
from penstock.elastic.steering import earlier_run, last_replicas, rates_before
from penstock.metrics.rows import IntervalRecord, OperatorRow, RunRow, SteeringRow
from penstock.metrics.store import Store
from penstock.policy.base import Policy, inside
from penstock.policy.guards import Canary, Shadow
from penstock.policy.penstock import Penstock

from .test_elastic import interval, run

POOL = 4


def made(tmp_path: Path, carried_on: int = 0, **options: object) -> Elastic:
    one = run()
    one.carried_on = carried_on
    one.clock = type("Clock", (), {"now": staticmethod(lambda: 50.0)})
    one.stop_sources = lambda: None
    one.folder = tmp_path
    return Elastic(one, store=tmp_path / "metrics.db", td_s=1.0, **options)  # type: ignore[arg-type]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Elastic]:
    one = made(tmp_path)
    assert one.store is not None
    one.store.start_run(one._row())
    yield one
    one._close()


def test_an_order_is_noted_with_who_and_when(live: Elastic) -> None:
    assert live.steer(Hold("work", 3), who="Ana").by_hand == {"work": 3}
    live.steer(Freeze())
    assert live.store is not None
    first, second = live.store.steering("run")
    assert (first.sequence, first.time_s, first.who, first.order) == (1, 50.0, "Ana", order_as_json(Hold("work", 3)))
    assert first.given_at <= second.given_at
    assert second.who
    assert live.steering.told == ("frozen", "work by hand: 3 replicas")


def test_what_is_refused_is_not_noted(live: Elastic) -> None:
    for order in (Hold("wrok", 1), Hold("work", POOL + 1), UsePolicy("hope"), UsePolicy("oracle"), SetTd(0.01)):
        with pytest.raises(InputError):
            live.steer(order)
    with pytest.raises(InputError, match="must be trained before a loop can use it"):
        live.steer(UseForecaster("gru"))
    assert live.store is not None
    assert live.store.steering("run") == []
    assert live.steering.told == ()


def test_a_store_that_fails_keeps_nobody_from_steering(
    live: Elastic, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OperationalError("insert", {}, Exception("the disk is full"))

    monkeypatch.setattr(Store, "write_order", full)
    assert live.steer(Freeze()).frozen
    assert "the store does not have it: the disk is full" in caplog.text


def test_a_stop_is_for_who_waits(live: Elastic) -> None:
    assert not live.stopping
    live.steer(Stop(within_s=5))
    assert live.stopping


def test_orders_change_what_the_loop_plans_with(live: Elastic) -> None:
    helm = live._helm
    policy = helm.planning.policy
    live.steer(SetTd(0.5))
    assert (helm._wanted.rules.td_s, helm._wanted.policy) == (0.5, policy)
    live.steer(UseForecaster("drift"))
    assert helm._wanted.policy is not policy, "one that can goes by the forecast"
    assert helm._wanted.analyzer is not None
    live.steer(UseForecaster("none"))
    assert helm._wanted.analyzer is None
    live.steer(UsePolicy("cba:12"))
    assert helm._wanted.analyzer is not None
    assert helm._wanted.analyzer.horizon == 12


def test_an_order_puts_a_policy_into_the_shadow(live: Elastic) -> None:
    helm = live._helm
    assert not _beside(helm._wanted.policy)
    live.steer(UseCanary("static:2,minutes=3"))
    (canary,) = _beside(helm._wanted.policy)
    assert isinstance(canary, Canary)
    assert (canary.names[1], canary.minutes, canary.late) == ("static:2", 3.0, live.promise["late"])
    live.steer(SetTd(0.5))
    assert _beside(helm._wanted.policy) == [canary], "it goes on with what it knows"
    live.steer(UseShadow("static:3"))
    (shadow,) = _beside(helm._wanted.policy)
    assert (type(shadow), shadow.names[1]) == (Shadow, "static:3")
    assert live.steering.told == ("shadow static:3", "td 0.5 s")
    live.steer(UseShadow("none"))
    assert not _beside(helm._wanted.policy)
    with pytest.raises(InputError, match="no such name 'hope'"):
        live.steer(UseCanary("hope"))


def test_who_is_in_the_shadow_may_be_given_at_the_start(tmp_path: Path) -> None:
    live = made(tmp_path, policy="psps", canary="static:2,minutes=3")
    (canary,) = _beside(live._helm.planning.policy)
    assert (canary.names, canary.target_ms) == (("psps", "static:2"), live.promise["target_ms"])
    live.steer(UseCanary("none"))
    assert not _beside(live._helm._wanted.policy)
    live._close()
    with pytest.raises(InputError, match="give one of shadow and canary"):
        made(tmp_path, shadow="static:2", canary="psps")


def test_what_the_store_is_given_has_scores(tmp_path: Path) -> None:
    live = made(tmp_path, policy="psps")
    assert live.store is not None
    live.store.start_run(live._row())
    for number in (1, 2, 3):
        one = interval(number)
        live.recording.record(replace(one, decisions=one.decisions[:1]))
    live._close()
    with closing(Store(str(tmp_path / "metrics.db"), must_exist=True)) as store:
        assert [(row.number, row.policy, row.role) for row in store.scores("run")] == [
            (1, "psps", "decides"),
            (2, "psps", "decides"),
        ]


def _beside(policy: Policy) -> list[Shadow]:
    return [one for one in inside(policy) if isinstance(one, Shadow)]


def test_the_next_driver_is_under_the_same_orders(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = made(tmp_path)
    assert first.store is not None
    assert first._enter(first.store) == {}
    orders = (UsePolicy("static:2"), Limit("work", most=3), Freeze(), Stop())
    for order in orders:
        first.steer(order, who="Ana")
    gone = SteeringRow(sequence=9, time_s=1.0, given_at="then", who="Ben", order=order_as_json(Hold("gone", 2)))
    first.store.write_order("run", gone)
    first.store.write("run", seen(replicas=3))
    first._close()
    second = made(tmp_path, carried_on=1)
    assert second.store is not None
    assert second._enter(second.store) == {"work": 3}, "frozen, it begins with what it had"
    assert second.steering.told == ("frozen", "work: at most 3", "policy static:2")
    assert "order of Ben at then is not carried over: order, operator: no such name 'gone'" in caplog.text
    second.steer(Unfreeze(), who="Ana")
    second._close()
    third = made(tmp_path, carried_on=2)
    assert third.store is not None
    assert third._enter(third.store) == {}
    assert third.steering.told == ("work: at most 3", "policy static:2")
    kept = third.store.steering("run.2")
    assert [(row.who, row.order["order"]) for row in kept] == [
        ("Ana", "policy"),
        ("Ana", "limit"),
        ("Ana", "freeze"),
        ("Ana", "unfreeze"),
    ]
    third._close()


def test_replicas_by_hand_are_there_from_the_start(tmp_path: Path) -> None:
    first = made(tmp_path)
    assert first.store is not None
    first._enter(first.store)
    first.steer(Hold("work", 2))
    first._close()
    second = made(tmp_path, carried_on=1)
    assert second.store is not None
    assert second._enter(second.store) == {"work": 2}
    second._close()


def test_the_next_driver_knows_what_came_before(tmp_path: Path) -> None:
    """After a restart `penstock` began with made bursts, though the store had the load of hours."""
    first = made(tmp_path, policy="penstock")
    assert first.store is not None
    first._enter(first.store)
    for number in range(1, 6):
        row = replace(interval(number).interval, interval_s=0.5 if number < 3 else 2.0, entered=100 * number)
        first.store.write("run", IntervalRecord(interval=row))
    first._close()
    second = made(tmp_path, carried_on=1, policy="penstock")
    assert second.store is not None
    second._enter(second.store)
    ours = next(one for one in inside(second._helm.planning.policy) if isinstance(one, Penstock))
    assert ours._before == ([300.0, 150.0, 150.0, 200.0, 200.0, 250.0, 250.0], 1.0)
    assert rates_before(second.store, "run.1") == []
    second._close()


def seen(replicas: int) -> IntervalRecord:
    one = interval(1)
    row = OperatorRow(
        number=1,
        operator="work",
        received=1,
        received_by={"in0": 1},
        processed=1,
        backlog=0,
        dropped=0,
        replicas=replicas,
        pool=POOL,
        busy_share=0.5,
        cpu_share=0.5,
        execution_time_s=None,
        incomplete=None,
    )
    return IntervalRecord(interval=one.interval, operators=(row,))


def test_the_run_before_is_found_by_its_name(tmp_path: Path) -> None:
    with closing(Store(str(tmp_path / "metrics.db"))) as store:
        for second, name in enumerate(["a1", "a1.2", "a12", "a1.2.3", "b", "a1.7"]):
            store.start_run(
                RunRow(run=name, topology="t", policy="p", td_s=1, started_at=f"2026-01-01T00:00:0{second}Z")
            )
        assert [earlier_run(store, name) for name in ("a1", "b", "c")] == ["a1.7", "b", None]
        assert last_replicas(store, "b") == {}
