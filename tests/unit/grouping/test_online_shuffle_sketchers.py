"""The replica's side of the online shuffle: when a sketch is stable, and what a request is answered with."""

from __future__ import annotations

import math
import pickle

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.grouping.online_shuffle import OnlineShuffleOptions, Reply, Request, Sketch, Sketching
from penstock.grouping.online_shuffle.sketchers import (
    STABILIZING,
    START,
    Sketchers,
    answer,
    execute,
    execute_all,
    sketchers,
)


def one(window: int = 4, mu: float = 0.05) -> Sketchers:
    return sketchers(1, 1, OnlineShuffleOptions(window=window, mu=mu))


def state(k: Sketchers) -> int:
    return int(k.status["state"][0])


def run(k: Sketchers, time_s: float, events: int, key: int = 7) -> list[bool]:
    return [execute(k, 0, 0, key, time_s) for _ in range(events)]


def test_a_constant_time_is_stable_after_two_windows() -> None:
    """Figure 7b: A after N events, C after N more."""
    k = one()
    assert not any(run(k, 0.5, 3))
    assert state(k) == START
    assert run(k, 0.5, 4) == [False] * 4
    assert state(k) == STABILIZING
    assert run(k, 0.5, 1) == [True]
    assert state(k) == START
    assert k.sketches.sum() == 0.0
    assert k.stable[0].sum(axis=2).tolist() == [[8.0] * 3, [4.0] * 3]


def test_after_a_stable_sketch_it_starts_again() -> None:
    k = one()
    assert [n for n, stable in enumerate(run(k, 0.5, 24), start=1) if stable] == [8, 16, 24]


def test_a_sketch_that_still_changes_is_not_sent() -> None:
    """Ψ at 4, 8, 12, 16 events: 1, 2, 2, 2 s; η = 1, 0. The sketch that is sent holds all 12 events (B)."""
    k = one()
    assert not any(run(k, 1.0, 4) + run(k, 3.0, 4))
    assert state(k) == STABILIZING
    assert run(k, 2.0, 4) == [False, False, False, True]
    assert k.stable[0].sum(axis=2).tolist() == [[12.0] * 3, [24.0] * 3]


@pytest.mark.parametrize(("mu", "stable"), [(0.25, True), (0.2499, False)])
def test_stable_is_a_change_of_at_most_mu(mu: float, stable: bool) -> None:
    """Four events of 1 s, four of 1.5 s: Ψ 1 → 1.25, η = 0.25 in every row."""
    k = one(mu=mu)
    run(k, 1.0, 4)
    assert run(k, 1.5, 4)[-1] is stable


def test_events_without_time_are_stable() -> None:
    assert run(one(), 0.0, 8) == [False] * 7 + [True]


@pytest.mark.parametrize("time_s", [math.nan, math.inf, -0.001])
def test_a_time_that_is_none_is_left_out(time_s: float) -> None:
    k = one(window=1)
    assert not execute(k, 0, 0, 7, time_s)
    assert state(k) == START
    assert answer(k, 0, 0, 0.0) == 0.0
    assert k.sketches.sum() == 0.0


def test_true_time_is_counted_by_sender() -> None:
    k = sketchers(1, 3, OnlineShuffleOptions())
    for sender, time_s in ((0, 0.5), (2, 0.25), (0, 1.0)):
        execute(k, 0, sender, 7, time_s)
    assert [answer(k, 0, sender, 1.0) for sender in range(3)] == [0.5, -1.0, -0.75]


def test_true_time_survives_the_reset() -> None:
    k = one(window=1)
    assert run(k, 0.5, 4) == [False, True, False, True]
    assert answer(k, 0, 0, 0.0) == 2.0


def test_rows_are_replicas_of_their_own() -> None:
    k = sketchers(2, 1, OnlineShuffleOptions(window=1))
    assert [execute(k, 0, 0, 7, 0.5) for _ in range(2)] == [False, True]
    assert [execute(k, 1, 0, 7, 0.25)] == [False]
    assert k.sketches[0].sum() == 0.0
    assert k.sketches[1].sum() == 3.75
    assert k.spent.tolist() == [[1.0], [0.25]]


times = st.lists(st.tuples(st.integers(0, 9), st.floats(0.0, 2.0)), max_size=60)


@given(events=times, cut=st.integers(0, 60), window=st.integers(1, 12))
def test_bundles_make_no_difference(events: list[tuple[int, float]], cut: int, window: int) -> None:
    keys, times_s = np.array([k for k, _ in events], np.uint32), np.array([t for _, t in events], float)
    whole, parts = one(window, mu=0.3), one(window, mu=0.3)
    stable = execute_all(whole, 0, 0, keys, times_s)
    first = execute_all(parts, 0, 0, keys[:cut], times_s[:cut])
    assert stable == (execute_all(parts, 0, 0, keys[cut:], times_s[cut:]) or first)
    assert pickle.dumps(whole) == pickle.dumps(parts)


def test_a_request_is_answered_after_its_event() -> None:
    sketching = Sketching(senders=2)
    requests = [Request(2, 0, 4, 1.0), Request(0, 0, 3, 1.0)]
    sketch, replies = sketching.executed(1, [7, 8, 9, 7], [0.5, 0.25, 0.125, 8.0], requests)
    assert sketch is None
    assert replies == [Reply(3, -0.5), Reply(4, -0.125)]
    assert sketching.executed(1, [], [], ()) == (None, [])
    assert sketching.executed(1, [7], [0.0], [Request(0, 0, 5, 8.875)]) == (None, [Reply(5, 0.0)])


def test_the_newest_of_several_stable_sketches_is_sent() -> None:
    sketching = Sketching(senders=1, options=OnlineShuffleOptions(window=1))
    sketch, _ = sketching.executed(0, [7] * 5, [1.0, 1.0, 2.0, 2.0, 3.0])
    assert sketch is not None
    assert sketch.array().sum(axis=2).tolist() == [[2.0] * 3, [4.0] * 3]


def test_a_copy_goes_on_where_the_original_was() -> None:
    sketching = Sketching(senders=1, options=OnlineShuffleOptions(window=3))
    sketching.executed(0, [7, 8], [0.5, 0.25])
    copy = pickle.loads(pickle.dumps(sketching))
    assert copy.executed(0, [7] * 4, [0.5] * 4) == sketching.executed(0, [7] * 4, [0.5] * 4)


def test_a_sketch_travels_in_a_few_kilobytes() -> None:
    sketching = Sketching(senders=1, options=OnlineShuffleOptions(window=64))
    sketch, _ = sketching.executed(0, list(range(64)) * 2, [n / 64 for n in range(64)] * 2)
    assert sketch is not None
    payload = msgspec.msgpack.encode(sketch)
    assert len(payload) < 3000
    assert msgspec.msgpack.decode(payload, type=Sketch) == sketch


@pytest.mark.parametrize("message", [Request(3, 1, 2, 0.5), Reply(2, -0.25)])
def test_requests_and_replies_travel(message: Request | Reply) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=type(message)) == message


def test_sketches_that_are_none() -> None:
    with pytest.raises(InputError) as caught:
        Sketch(2, 4, bytes(100)).array()
    assert str(caught.value) == "sketch: 2 × 4 cells must come in 128 bytes; got 100"
    for cell in (math.nan, math.inf, -1.0):
        with pytest.raises(InputError, match=r"every cell must be a number from 0 on"):
            Sketch.of(np.full((2, 1, 1), cell)).array()
    with pytest.raises(InputError):
        Sketch(0, 4, b"").array()


@pytest.mark.parametrize(
    ("sender", "keys", "times_s", "message"),
    [
        (2, [7], [0.5], "sender must be in 0..1; got 2"),
        (-1, [7], [0.5], "sender must be in 0..1; got -1"),
        (0, [7, 8], [0.5], "every event must have one time; got (1,) for (2,)"),
    ],
)
def test_bundles_that_cannot_be(sender: int, keys: list[int], times_s: list[float], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Sketching(senders=2).executed(sender, keys, times_s)
    assert str(caught.value) == f"grouping 'online_shuffle': {message}"


def test_a_replica_has_at_least_one_sender() -> None:
    with pytest.raises(InputError) as caught:
        Sketching(senders=0)
    assert str(caught.value) == "grouping 'online_shuffle': senders must be whole and at least 1; got 0"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be above 0 and below 1; got 0.0"),
        ({"delta": 1.0}, "delta must be above 0 and below 1; got 1.0"),
        ({"delta": math.nan}, "delta must be above 0 and below 1; got nan"),
        ({"mu": -0.1}, "mu must be a number from 0 on; got -0.1"),
        ({"mu": math.inf}, "mu must be a number from 0 on; got inf"),
        ({"window": 0}, "window must be whole and at least 1; got 0"),
        ({"window": 2.5}, "window must be whole and at least 1; got 2.5"),
        ({"patience": 0}, "patience must be whole and at least 1; got 0"),
        ({"seed": -1}, "seed must be whole and at least 0; got -1"),
    ],
)
def test_options_that_cannot_be(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError) as caught:
        OnlineShuffleOptions(**options)  # type: ignore[arg-type]
    assert str(caught.value) == f"grouping 'online_shuffle': {message}"
