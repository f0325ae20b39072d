from __future__ import annotations

import math
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.policy.learning import Learning
from penstock.policy.registry import make_policy
from penstock.testing.loads import load, snapshot

ET_S = 0.02


def seen(rate, replicas, *, busy=None, **more):
    """One interval of an operator of 20 ms that has no queue: it is busy rate · et / replicas of the time."""
    share = min(1.0, rate * ET_S / replicas) if busy is None else busy
    one = load("a", {"in": rate}, replicas=replicas, busy_share=dict.fromkeys(range(replicas), share), **more)
    return snapshot({"in": rate}, [one])


def follow(policy, rates, replicas=1):
    """Let the policy's plans be carried out; the replicas of every interval."""
    ran = []
    for rate in rates:
        ran.append(replicas)
        replicas = policy.plan(seen(rate, replicas)).replicas["a"]
    return ran


DAY = [round(200 + 180 * math.sin(n / 20)) for n in range(126)]  # 20 to 380 a second and back: 0.4 to 7.6 replicas


@pytest.mark.parametrize(
    ("busy", "pressure"), [(1.0, 1.0), (0.9, 0.5), (0.8, 0.0), (0.5, 0.0), (0.4, -0.2), (0.0, -1.0), (1.3, 1.0)]
)
def test_pressure_by_hand(busy, pressure):
    """(0.9 − 0.8) / 0.2 = 0.5; (0.4 − 0.5) / 0.5 = −0.2."""
    assert Learning()._pressure(busy) == pytest.approx(pressure)


def test_too_busy_at_a_new_rate_is_one_more_at_once():
    policy = Learning(explore=0)
    got = policy.plan(seen(100, 1)).targets["a"]
    assert got.replicas == 2
    assert got.reason == "gets 100 events a second: 2 replicas, as learnt at such rates (lessons: 1)"


def test_it_climbs_to_the_number_that_is_busy_enough_and_stays():
    """300 · 0.02 = 6 replicas' time: 7 would be busy 0.86 of it, 8 are busy 0.75."""
    assert follow(Learning(explore=0), [300] * 12) == [1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 8]


def test_it_comes_down_again():
    """30 · 0.02 = 0.6: nine down to one, which is busy 0.6 of the time."""
    assert follow(Learning(explore=0), [30] * 10, replicas=9) == [9, 8, 7, 6, 5, 4, 3, 2, 1, 1]


def test_what_was_learnt_is_taken_at_once_when_the_rate_comes_back():
    policy = Learning(explore=0)
    follow(policy, [300] * 20)
    follow(policy, [30] * 20, replicas=8)
    assert follow(policy, [300, 300], replicas=1)[1] == 8


def test_a_new_rate_starts_with_what_the_nearest_learnt():
    policy = Learning(explore=0)
    follow(policy, [300] * 20)
    got = policy.plan(seen(390, 8, busy=0.7)).targets["a"]
    assert got.replicas == 8
    trained = Learning(explore=0, train=False)
    trained._known = policy._known
    assert trained.plan(seen(2000, 1)).targets["a"].reason == (
        "gets 2000 events a second, new to it: 8 replicas, as at the nearest rates"
    )


def test_without_knowledge_and_training_it_keeps():
    got = Learning(train=False).plan(seen(300, 3)).targets["a"]
    assert (got.replicas, got.reason) == (3, "keeps 3: gets 300 events a second, and nothing is learnt yet")


def test_queues_do_not_count():
    policy = Learning(explore=0)
    follow(policy, [30] * 20)
    assert policy.plan(seen(30, 1, backlog=100_000)).replicas == {"a": 1}


def test_a_busy_share_that_was_not_measured_teaches_nothing():
    policy = Learning()
    plan = policy.plan(snapshot({"in": 10}, [load("a", {"in": 10}, replicas=3)]))
    assert plan.replicas == {"a": 3}
    assert policy._known.operators == {}


def test_incomplete_operators_keep_and_are_not_learnt_from():
    policy = Learning()
    one = load("a", {"in": 300}, busy_share={0: 1.0})
    got = policy.plan(snapshot({"in": 300}, [one], incomplete={"a": "stale"})).targets["a"]
    assert (got.replicas, got.reason) == (1, "keeps 1: numbers are not to be trusted (stale)")
    assert policy._known.operators == {}


def test_an_interval_without_length():
    one = load("a", {"in": 300}, busy_share={0: 1.0})
    got = Learning().plan(snapshot({"in": 300}, [one], interval_s=0.0)).targets["a"]
    assert (got.replicas, got.reason) == (1, "keeps 1: an interval without length")


def test_it_explores_by_its_seed_less_and_less_and_then_not_at_all():
    policy = Learning(explore=1.0)
    tries = [policy.plan(seen(300, 8)).targets["a"].reason.count("tries") for _ in range(120)]
    assert sum(tries[:20]) > sum(tries[20:40]) > 0
    assert sum(tries[50:]) == 0


def test_the_same_seed_the_same_run_and_another_seed_another():
    one, two, other = (follow(Learning(explore=0.5, seed=seed), DAY) for seed in (1, 1, 2))
    assert one == two
    assert one != other


def test_it_tries_one_more_or_fewer_and_says_so():
    policy = Learning(explore=1.0)
    targets = [policy.plan(seen(300, 8)).targets["a"] for _ in range(40)]
    tried = [one for one in targets if "tries" in one.reason]
    assert {one.replicas for one in tried} == {7, 9}
    assert f"tries {tried[0].replicas} replicas beside the 8 learnt" in tried[0].reason


def test_trained_on_the_stream_it_knows_the_replicas_of_every_rate(tmp_path):
    """The paper's way: train on the test stream, then act on what is known. What it then runs with is busy enough.

    Within a bin the rate differs by 1.25, so the busy share may be that much off the bounds.
    """
    teacher = Learning(explore=0.2, seed=3)
    replicas = 1
    for _ in range(8):
        replicas = follow(teacher, DAY, replicas)[-1]
    teacher.save(tmp_path / "known.json")
    pupil = make_policy(f"learning:{tmp_path / 'known.json'},train=false")
    for rate in DAY:
        plan = pupil.plan(seen(rate, 5))
        assert plan == pupil.plan(seen(rate, 5))
        work = rate * ET_S
        assert work / plan.replicas["a"] <= 0.8 * 1.25
        assert plan.replicas["a"] <= max(2, work / 0.5 * 1.25 + 1)
    pupil.save(tmp_path / "after.json")
    assert (tmp_path / "after.json").read_bytes() == (tmp_path / "known.json").read_bytes()


def test_without_training_it_neither_learns_nor_tries(tmp_path):
    """Few lessons and much to explore; two replicas are taken for 30 a second, however idle they are."""
    teacher = Learning(explore=0)
    teacher.plan(seen(30, 2, busy=0.6))
    teacher.save(tmp_path / "known.json")
    pupil = Learning(knowledge=tmp_path / "known.json", explore=1.0, train=False)
    assert {pupil.plan(seen(30, 2, busy=0.0)).replicas["a"] for _ in range(20)} == {2}


def test_a_trained_one_may_go_on_learning(tmp_path):
    Learning().save(tmp_path / "known.json")
    policy = Learning(knowledge=tmp_path / "known.json", explore=0)
    assert follow(policy, [300] * 9)[-1] == 8


def test_knowledge_of_other_bins_is_refused(tmp_path):
    Learning(step=1.5).save(tmp_path / "known.json")
    with pytest.raises(InputError, match=r"step must be that of the knowledge '.*known.json', 1.5; got 1.25"):
        Learning(knowledge=tmp_path / "known.json")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"high": 0}, "high must be above 0 and at most 1; got 0"),
        ({"low": 0.9}, "low must be below high; got low 0.9 and high 0.8"),
        ({"step": 1.0}, "step must be at least 1.01; got 1.0"),
        ({"step": "wide"}, "step must be a number of at least 0; got 'wide'"),
        ({"explore": 2}, "explore must be above 0 and at most 1; got 2"),
        ({"seed": -1}, "seed must be whole and at least 0; got -1"),
        ({"train": 1}, "train must be true or false; got 1"),
        ({"knowledge": 7}, "knowledge must be the path of a file; got 7"),
    ],
)
def test_options_are_checked(options, told):
    with pytest.raises(InputError, match=f"policy 'learning': {told}"):
        Learning(**options)


@given(st.integers(1, 1000), st.integers(1, 20))
@settings(max_examples=80, deadline=None)
def test_at_a_constant_rate_it_ends_where_it_is_neither_busy_nor_idle_if_that_can_be(rate, replicas):
    work = rate * ET_S
    last = follow(Learning(explore=0), [rate] * 80, replicas)[-20:]
    assert len(set(last)) == 1
    possible = math.ceil(work / 0.8 - 1e-9) <= max(1, math.floor(work / 0.5 + 1e-9))
    if possible:
        assert work / last[0] <= 0.8 + 1e-9
        assert last[0] == 1 or work / last[0] >= 0.5 - 1e-9


def test_memory_is_bounded_by_the_bins():
    policy = Learning()
    for rate in range(5000):
        policy.plan(seen(rate**3, 1))
    assert len(policy._known.operators["a"]) <= 125


def test_goes_on_the_same_after_pickling():
    policy = Learning(explore=0.9)
    follow(policy, DAY)
    copy = pickle.loads(pickle.dumps(policy))
    assert follow(copy, DAY) == follow(policy, DAY)
