from __future__ import annotations

import pytest

from penstock.control.managers.ledger import Seat, SlotLedger
from penstock.control.managers.region_manager import NO_SPARE, Ahead, RegionManager, RegionRules, Wish
from penstock.errors import InputError
from penstock.infra.worker import Worker, WorkerSize, WorkerState

ONE, FOUR = WorkerSize(name="one", capacity=1), WorkerSize(name="four", capacity=4, price=3.0)


def proposals(capacities, occupied=(), used=None, states=None, rules=None, sizes=(FOUR, ONE), spare=None):
    """Of a region with workers of these capacities, the first ones with so many replicas each."""
    ledger = SlotLedger()
    workers = [Worker(name=f"w{n}", region="here", capacity=size) for n, size in enumerate(capacities)]
    ledger.update([*workers, Worker(name="far", region="there", capacity=50)])
    for number, count in enumerate(occupied):
        for replica in range(count):
            ledger.take(Seat("app", f"o{number}", replica), f"w{number}")
    changed = [worker.turned((states or {}).get(worker.name, worker.state)) for worker in workers]
    ledger.update([*changed, Worker(name="far", region="there", capacity=50)])
    return RegionManager("here", rules).propose(ledger, used or {}, sizes, (), spare)


def test_the_smallest_workers_that_restore_the_spare_capacity():
    """Six workers of 1 with 3 replicas leave 3 slots; 5 should be free: two more."""
    found = proposals([1] * 6, [1, 1, 1])
    assert [(one.wish, one.size) for one in found] == [(Wish.START, ONE)] * 2
    assert found[0].reason == "3 slots are free, 5 should be"


def test_larger_workers_only_where_there_are_no_smaller_ones():
    found = proposals([4], [4], sizes=(FOUR,))
    assert [one.size for one in found] == [FOUR, FOUR]  # 5 slots: two of 4


def test_starting_workers_count():
    assert proposals([1] * 5, states={f"w{n}": WorkerState.STARTING for n in range(5)}) == ()


def test_draining_workers_do_not_count():
    found = proposals([1] * 6, states={"w0": WorkerState.DRAINING, "w1": WorkerState.DRAINING})
    assert [one.wish for one in found] == [Wish.START]


def test_empty_workers_beyond_the_spare_capacity_are_stopped():
    found = proposals([1] * 7)
    assert [one.wish for one in found] == [Wish.STOP, Wish.STOP]
    assert found[0].reason == "it is empty, and 6 slots stay free without it"


def test_an_empty_worker_whose_slots_are_needed_stays():
    assert proposals([4, 4], [2], rules=RegionRules(spare=5), used={"w0": 0.9}) == ()


def test_a_worker_that_is_hardly_used_is_freed_if_what_it_hosts_fits_elsewhere():
    found = proposals([1] * 7, [1], used={"w0": 0.1})
    assert [(one.wish, one.worker) for one in found] == [(Wish.STOP, "w1")]  # 6 free: one goes, then 5 are left
    found = proposals([4, 4, 4], [1, 4], used={"w0": 0.1, "w1": 0.9}, rules=RegionRules(spare=3))
    assert [(one.wish, one.worker) for one in found] == [(Wish.STOP, "w2")]
    found = proposals([4, 4, 4], [1, 1, 1], used={"w0": 0.05, "w1": 0.9, "w2": 0.9}, rules=RegionRules(spare=3))
    assert [(one.wish, one.worker) for one in found] == [(Wish.FREE, "w0")]
    assert found[0].reason == "it is used 0.05, and 5 slots stay free without it"


@pytest.mark.parametrize("used", [0.11, 0.5])
def test_a_worker_that_is_used_stays(used):
    rules = RegionRules(spare=1)
    assert proposals([4, 4], [1, 1], used={"w0": used, "w1": used}, rules=rules) == ()


def test_never_below_the_fewest():
    assert [one.wish for one in proposals([1] * 3, rules=RegionRules(spare=0, least=2))] == [Wish.STOP]
    found = proposals([1], rules=RegionRules(spare=0, least=3))
    assert [one.wish for one in found] == [Wish.START] * 2
    assert found[0].reason == "3 workers are the fewest"


@pytest.mark.parametrize("rules", [{"spare": -1}, {"low": 1.5}, {"least": -1}])
def test_rules_that_make_no_sense(rules):
    with pytest.raises(InputError, match="region manager: "):
        RegionRules(**rules)


def test_what_is_wanted_ahead_takes_the_place_of_a_constant():
    """Two workers of 4 with 6 replicas, and 14 slots wanted by the time one has joined: two more workers."""
    found = proposals([4, 4], [4, 2], sizes=(FOUR,), spare=Ahead(14, 14, "ready for twice the rate").beyond(6))
    assert [one.wish for one in found] == [Wish.START] * 2
    assert found[0].reason == "2 slots are free, 8 should be, ready for twice the rate"


def test_any_worker_goes_that_is_not_wanted_the_emptiest_first():
    """Twelve slots with 5 replicas, busy or not, and 7 wanted: what the worker with one of them has fits elsewhere."""
    ahead = Ahead(7, 7, "ready for the last rate")
    (found,) = proposals([4, 4, 4], [3, 1, 1], {f"w{n}": 0.9 for n in range(3)}, sizes=(FOUR,), spare=ahead.beyond(5))
    assert (found.wish, found.worker) == (Wish.FREE, "w1")
    assert found.reason == "it is used 0.9, and 3 slots stay free without it, ready for the last rate"


def test_what_was_wanted_while_one_joins_does_not_go():
    assert proposals([4, 4, 4], [3, 1, 1], sizes=(FOUR,), spare=Ahead(7, 9, "").beyond(5)) == ()


def test_a_region_that_keeps_nothing_free_lets_go_of_all_it_can():
    found = proposals([4, 4], [2], sizes=(FOUR,), rules=RegionRules(least=0), spare=NO_SPARE)
    assert [(one.wish, one.worker) for one in found] == [(Wish.STOP, "w1")]
