"""The online shuffle inside another compiled function, as a simulation has it: rows for senders and replicas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray

from penstock.grouping.base import Receivers, Sender
from penstock.grouping.online_shuffle import OnlineShuffle, OnlineShuffleOptions, Sketch
from penstock.grouping.online_shuffle.scheduler import choose, set_active, take_reply, take_sketch
from penstock.grouping.online_shuffle.sketchers import answer, execute, sketchers
from penstock.grouping.online_shuffle.state import Schedulers, enlarged, schedulers
from penstock.workload.keys import value_times, zipf_keys

OPTIONS = OnlineShuffleOptions(window=128)
REPLICAS = 4


@njit
def simulate(s: Any, k: Any, keys: Any, times_s: Any, chosen: Any) -> None:
    """Every event is executed at once; senders take turns; sketches go to all of them, replies to one."""
    rows = len(s.status)
    for event in range(len(keys)):
        row = event % rows
        replica, epoch, estimate_s = choose(s, row, keys[event])
        chosen[event] = replica
        stable = execute(k, replica, row, keys[event], times_s[event])
        if epoch > 0:
            take_reply(s, row, replica, epoch, answer(k, replica, row, estimate_s))
        if stable:
            for other in range(rows):
                take_sketch(s, other, replica, k.stable[replica])


def stream(size: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    values, times_ms = zipf_keys(64, size, seed=4), value_times(64, seed=4)
    return values * 2654435761 % 2**32, np.array([times_ms[value] / 1000 for value in values.tolist()])


def simulated(senders: int, size: int) -> tuple[Schedulers, NDArray[np.int64], NDArray[np.float64]]:
    s, k = schedulers(senders, REPLICAS, OPTIONS), sketchers(REPLICAS, senders, OPTIONS)
    for row in range(senders):
        set_active(s, row, np.arange(REPLICAS), REPLICAS)
    keys, times_s = stream(size)
    chosen = np.empty(size, np.int64)
    simulate(s, k, keys, times_s, chosen)
    return s, chosen, k.spent


@pytest.mark.parametrize("senders", [1, 2, 4, 8])
def test_several_senders_balance_together(senders: int) -> None:
    _, _, spent = simulated(senders, 40_000)
    by_replica = spent.sum(axis=1)
    assert by_replica.max() / by_replica.mean() < 1.002
    by_sender = spent / spent.mean(axis=0)
    assert by_sender.max() < 1.01


def test_estimates_are_true_to_what_was_executed() -> None:
    """Corrected at every epoch, Ĉ differs from C by less than the events since then can make."""
    s, _, spent = simulated(2, 40_000)
    assert np.abs(s.receivers["load"] - s.receivers["start"] - spent.T).max() < 1.0
    assert spent.min() > 50.0


def test_a_live_sender_does_what_a_simulated_one_does() -> None:
    size = 10_000
    keys, times_s = stream(size)
    _, expected, _ = simulated(1, size)
    live, k = OnlineShuffle(Sender(), options=OPTIONS), sketchers(REPLICAS, 1, OPTIONS)
    live.update(Receivers(tuple(range(REPLICAS))))
    chosen = []
    for key, time_s in zip(keys.tolist(), times_s.tolist(), strict=True):
        replica = int(live.assign_hashes([key])[0])
        chosen.append(replica)
        stable = execute(k, replica, 0, key, time_s)
        for request in live.requests():
            live.take_reply(replica, request.epoch, answer(k, replica, 0, request.estimate_s))
        if stable:
            live.take_sketch(replica, Sketch.of(k.stable[replica]))
    assert live.state == "RUN"
    assert chosen == expected.tolist()


def test_room_for_a_larger_pool_keeps_what_is_known() -> None:
    s, _, _ = simulated(2, 4000)
    larger = enlarged(s, REPLICAS + 3)
    assert larger.receivers.shape == (2, REPLICAS + 3)
    assert np.array_equal(larger.receivers[:, :REPLICAS], s.receivers)
    assert np.array_equal(larger.sketches[:, :REPLICAS], s.sketches)
    assert [choose(larger, row, 7) for row in (0, 1, 0)] == [choose(s, row, 7) for row in (0, 1, 0)]
