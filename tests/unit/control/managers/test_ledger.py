from __future__ import annotations

import pytest

from penstock.control.managers.ledger import Refused, Seat, SlotLedger
from penstock.infra.worker import Worker, WorkerState


def worker(name, capacity=1, state=WorkerState.AVAILABLE):
    return Worker(name=name, region="here", capacity=capacity, state=state)


def seat(replica, operator="a", application="app"):
    return Seat(application, operator, replica)


@pytest.fixture
def ledger():
    ledger = SlotLedger()
    ledger.update([worker("w1"), worker("w2", capacity=2)])
    return ledger


def test_slots_are_taken_and_given_back(ledger):
    ledger.take(seat(0), "w2")
    assert (ledger.free("w2"), ledger.hosted("w2"), ledger.worker_of(seat(0))) == (1, (seat(0),), "w2")
    ledger.leave(seat(0))
    assert (ledger.free("w2"), ledger.worker_of(seat(0))) == (2, None)


def test_two_applications_that_want_the_same_worker(ledger):
    ledger.take(seat(0), "w1")
    with pytest.raises(Refused, match="worker 'w1' is full: it hosts 1 of 1, a 0 of app"):
        ledger.take(seat(0, application="other"), "w1")


def test_a_seat_moves(ledger):
    ledger.take(seat(0), "w1")
    ledger.take(seat(0), "w2")
    assert (ledger.free("w1"), ledger.free("w2")) == (1, 1)
    ledger.take(seat(0), "w2")  # where it is already
    assert ledger.free("w2") == 1


@pytest.mark.parametrize("state", [WorkerState.STARTING, WorkerState.DRAINING])
def test_only_available_workers_are_taken(ledger, state):
    ledger.update([worker("w1", state=state)])
    with pytest.raises(Refused, match=f"worker 'w1' is {state}"):
        ledger.take(seat(0), "w1")


def test_a_worker_that_is_not_there(ledger):
    with pytest.raises(Refused, match="worker 'w9' is not there"):
        ledger.take(seat(0), "w9")


def test_the_seats_of_a_worker_that_is_gone_are_free_again(ledger):
    ledger.take(seat(0), "w1")
    ledger.take(seat(1), "w2")
    assert ledger.update([worker("w2", capacity=2)]) == (seat(0),)
    assert ledger.seats_of("app") == (seat(1),)


def test_a_draining_worker_keeps_what_it_hosts(ledger):
    ledger.take(seat(0), "w1")
    assert ledger.update([worker("w1", state=WorkerState.DRAINING)]) == ()
    assert ledger.hosted("w1") == (seat(0),)
