from __future__ import annotations

import pytest

from penstock.control.managers.application_manager import ApplicationManager, ApplicationRules
from penstock.control.managers.token_bucket import TokenBucket
from penstock.errors import InputError
from penstock.policy.psps import Psps
from penstock.policy.static import Static

from .world import ONE, World

PAPER = ApplicationRules(second_choice=False)


def workers_of(world):
    return {(seat.operator, seat.replica): world.ledger.worker_of(seat) for seat in world.ledger.seats_of("app")}


def test_the_first_placement_is_balanced_by_number():
    world = World(workers=4, size=type(ONE)(name="two", capacity=2))
    world.active = {"a": (0, 1, 2), "b": (0, 1)}
    world.application(Static({"a": 3, "b": 2}), rules=ApplicationRules(first_workers=3))
    world.control(a=0.5, b=0.5)
    hosted = [len(world.ledger.hosted(worker.name)) for worker in world.ledger.workers]
    assert hosted == [2, 2, 1, 0]


def test_beyond_the_first_workers_where_these_are_full(world):
    world.active = {"a": (0, 1), "b": (0,)}
    world.application(Static({"a": 2, "b": 1}), rules=ApplicationRules(first_workers=2))
    world.control(a=0.5, b=0.5)
    assert [len(world.ledger.hosted(worker.name)) for worker in world.ledger.workers] == [1, 1, 1, 0, 0]


def test_a_new_replica_goes_to_a_worker_of_its_own(world):
    world.application()
    plan = world.control(a=0.9, b=0.3)
    assert plan.targets["a"].which == (0, 1)
    assert workers_of(world) == {("a", 0): "here-1", ("b", 0): "here-2", ("a", 1): "here-3"}


def test_the_least_used_worker_is_taken_first():
    world = World(workers=2, size=type(ONE)(name="four", capacity=4))
    world.application()
    world.control(a=0.1, b=0.6)
    world.control(a=0.9, b=0.6)  # a sits alone on the first worker and is busier than b now
    assert workers_of(world)["a", 1] == "here-2"


def test_two_that_want_the_same_worker_as_in_the_paper(world):
    world.application(rules=PAPER)
    plan = world.control(a=0.9, b=0.9)
    assert plan.replicas == {"a": 2, "b": 1}
    assert plan.targets["b"].reason.endswith("refused: worker 'here-3' was just taken by a")


def test_the_second_gets_another_worker(world):
    world.application()
    assert world.control(a=0.9, b=0.9).replicas == {"a": 2, "b": 2}


def test_without_a_free_slot_replicas_are_refused():
    world = World(workers=2)
    world.application()
    plan = world.control(a=0.9, b=0.3)
    assert plan.replicas == {"a": 1, "b": 1}
    assert plan.targets["a"].reason.endswith("refused: no free slot on 2 workers")
    assert world.app.diary.count("application app", "refused") == 1


def test_what_is_deactivated_gives_its_slot_back(world):
    world.application()
    world.control(a=0.9, b=0.3)
    world.control(a=0.1, b=0.3)
    assert len(world.active["a"]) == 1
    assert len(workers_of(world)) == 2


def test_any_policy_can_propose(world):
    world.active = {"a": (0,)}
    world.application(Static({"a": 3}))
    assert world.control(a=0.1).replicas == {"a": 3}
    assert world.control(a=0.1).targets["a"].which == (0, 1, 2)


def test_a_latency_within_the_target_needs_no_more_replicas(world):
    world.application(rules=ApplicationRules(target_ms=100.0))
    within = world.control(a=0.9, b=0.3, latency_ms=60.0).targets["a"]
    assert within.reason.endswith("refused: latency is 60 ms, within the target of 100 ms")
    assert world.control(a=0.9, b=0.3, latency_ms=160.0).replicas["a"] == 2


def test_a_latency_that_is_not_known_refuses_nothing(world):
    world.application(rules=ApplicationRules(target_ms=100.0))
    assert world.control(a=0.9, b=0.3, latency_ms=float("nan")).replicas["a"] == 2


def test_the_budget(world):
    world.application(Static({"a": 4, "b": 4}), rules=ApplicationRules(most_replicas=3))
    plan = world.control(a=0.5, b=0.5)
    assert plan.replicas == {"a": 2, "b": 1}
    assert plan.targets["b"].reason.endswith("refused: the budget is 3 replicas")


def test_the_token_bucket(world):
    world.application(bucket=TokenBucket(rate=0.01, burst=1))
    plan = world.control(a=0.9, b=0.9)
    assert plan.replicas == {"a": 2, "b": 1}
    assert plan.targets["b"].reason.endswith("refused: no more than 0.01 changes a second")


def test_a_worker_is_freed_by_activating_a_replica_elsewhere(world):
    world.application()
    world.control(a=0.3, b=0.3)
    assert world.app.asked_to_free("here-1") is None
    plan = world.control(a=0.3, b=0.3)
    assert plan.targets["a"].which == (1,)
    assert plan.targets["a"].reason.endswith("replica 0 moves, as worker 'here-1' is to be stopped")
    assert world.ledger.hosted("here-1") == ()


def test_what_cannot_be_moved_stays():
    world = World(workers=2)
    world.application()
    world.control(a=0.3, b=0.3)
    world.app.asked_to_free("here-1")
    assert world.control(a=0.3, b=0.3).targets["a"].which == (0,)


def test_operators_that_must_not_be_moved(world):
    world.application(rules=ApplicationRules(keep=frozenset({"a"})))
    world.control(a=0.3, b=0.3)
    assert world.app.asked_to_free("here-1") == "a of app must not be moved"
    assert world.app.asked_to_free("here-2") is None


def test_replicas_can_only_be_activated_where_they_sit(world):
    def site(operator, worker, active, pool):
        return 5 if (operator, worker) == ("a", "here-4") and 5 not in active else None

    world.application(site=site)
    assert world.control(a=0.9, b=0.3).targets["a"].which == (0, 5)
    refused = world.control(a=0.9, b=0.3).targets["a"].reason
    assert refused.endswith("refused: no inactive replica of a on a worker with a free slot")


def test_where_replicas_sit_is_taken_from_those_who_know(world):
    """Spark put both on the first worker, which has one slot: one of them is replaced by a replica elsewhere."""
    sits = {("a", 0): "here-1", ("b", 0): "here-1", ("b", 3): "here-4"}

    def site(operator, worker, active, pool):
        return next((n for (name, n), at in sits.items() if (name, at) == (operator, worker) and n not in active), None)

    world.application(site=site, where=lambda operator, replica: sits.get((operator, replica)))
    plan = world.control(a=0.3, b=0.3)
    assert plan.targets["b"].which == (3,)
    assert plan.targets["b"].reason.endswith("replica 0 moves, as its worker has no slot for it")
    assert workers_of(world) == {("a", 0): "here-1", ("b", 3): "here-4"}


def test_a_replica_whose_worker_is_gone_gets_another_seat(world):
    world.application()
    world.control(a=0.3, b=0.3)
    world.workers.remove("here-1")
    world.ledger.update(world.workers.list())
    world.control(a=0.3, b=0.3)
    assert workers_of(world)["a", 0] == "here-3"


def test_what_the_policy_remembers_goes_on(world):
    manager = ApplicationManager("app", Psps(predecessor_backlog=True), world.ledger)
    assert manager.policy.predecessor_backlog


def test_rules_that_make_no_sense():
    with pytest.raises(InputError, match="application manager: first_workers must be whole and at least 1; got 0"):
        ApplicationRules(first_workers=0)


class Foresees(Static):
    """One that sizes workers as well."""

    def slots_ahead(self, supply):
        return None


def test_slots_that_do_not_suffice_are_shared_by_need_under_a_policy_that_sizes_workers():
    """Of four slots the first came first and had three, and the second stayed at one, ever more behind."""
    world = World(workers=2, size=type(ONE)(name="two", capacity=2))
    world.application(Static({"a": 3, "b": 6}))
    assert world.control(a=0.9, b=0.9).replicas == {"a": 3, "b": 1}
    world = World(workers=2, size=type(ONE)(name="two", capacity=2))
    world.application(Foresees({"a": 3, "b": 6}))
    plan = world.control(a=0.9, b=0.9)
    assert plan.replicas == {"a": 2, "b": 2}
    assert "4 slots on 2 workers are shared by need, 9 were wanted" in plan.targets["b"].reason
