from __future__ import annotations

from penstock.control.managers.joining import USUAL_S, JoiningTime
from penstock.infra.worker import Worker, WorkerState


def worker(name, state):
    return Worker(name=name, region="here", capacity=4, state=state)


def joined(joining, name, since_s, until_s):
    joining.look(since_s, [worker(name, WorkerState.STARTING)])
    joining.look((since_s + until_s) / 2, [worker(name, WorkerState.JOINING)])
    joining.look(until_s, [worker(name, WorkerState.AVAILABLE)])
    return joining.longest_s


def test_the_longest_of_the_last_five():
    joining = JoiningTime()
    took = [
        joined(joining, f"w{n}", 100.0 * n, 100.0 * n + seconds) for n, seconds in enumerate([60, 12, 10, 11, 9, 13])
    ]
    assert took == [60, 60, 60, 60, 60, 13]


def test_what_was_there_from_the_start_says_nothing():
    joining = JoiningTime()
    joining.look(5.0, [worker("w1", WorkerState.AVAILABLE)])
    assert joining.longest_s == joining.median_s == USUAL_S


def test_one_that_never_came_up_is_forgotten():
    joining = JoiningTime()
    joining.look(0.0, [worker("w1", WorkerState.STARTING)])
    joining.look(50.0, [])
    joining.look(60.0, [worker("w1", WorkerState.AVAILABLE)])
    assert joining.longest_s == USUAL_S


def test_a_clock_that_goes_back_gives_no_negative_time():
    assert joined(JoiningTime(), "w1", 100.0, 20.0) == 0.0


def test_the_middle_one_is_of_those_that_came():
    joining = JoiningTime(usual_s=10.0)
    starting = [worker(f"w{n}", WorkerState.STARTING) for n in range(3)]
    joining.look(0.0, starting)
    assert joining.median_s == 10.0
    joining.look(6.0, [worker("w0", WorkerState.AVAILABLE), *starting[1:]])
    joining.look(20.0, [worker("w0", WorkerState.AVAILABLE), worker("w1", WorkerState.AVAILABLE)])  # w2 never came
    assert joining.median_s == 13.0
