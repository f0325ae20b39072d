"""The driver's book: every report once, whatever comes late, twice, or from a batch that is done again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.driver.tally import KEPT_BATCHES, ReplicaPlace, Tally
from penstock.engine.protocol.messages import Report, Reports
from penstock.engine.protocol.progress import first_batch
from penstock.metrics.counters import ReplicaCounters, RunCounters
from penstock.topology import Topology

ACTIVE = {"clean": (0, 1), "store": (0,)}


@pytest.fixture
def tally() -> Tally:
    return Tally(chain())


def chain() -> Topology:
    topology = Topology("chain", pool=3)
    clean = topology.operator("clean", len, inputs=topology.source("tweets"))
    topology.operator("store", len, inputs=clean)
    return topology


def report(
    operator: str, processed: int, *, batch: int = 0, generation: int = 0, replica: int = 0, **more: Any
) -> Report:
    return Report(generation, batch, operator, replica, ReplicaCounters(processed=processed, **more))


def enter(tally: Tally, *reports: Report, pid: int = 1, now_s: float = 0.0) -> None:
    tally.enter(Reports("host", pid, 0, list(reports)), now_s)


def counters(tally: Tally, now_s: float = 0.0, **active: tuple[int, ...]) -> RunCounters:
    return tally.counters(now_s, ACTIVE | active)


def processed(tally: Tally, operator: str = "clean") -> int:
    return counters(tally).operators[operator].total.processed


def test_a_later_report_replaces_the_one_before(tally: Tally) -> None:
    for done in (3, 8, 8):
        enter(tally, report("clean", done))
        assert processed(tally) == done


def test_replicas_and_batches_are_added_up(tally: Tally) -> None:
    enter(tally, report("clean", 3), report("clean", 4, batch=1))
    enter(tally, report("clean", 5, replica=1), pid=2)
    found = counters(tally).operators["clean"]
    assert {replica: one.processed for replica, one in found.replicas.items()} == {0: 7, 1: 5}
    assert found.total.processed == 12


def test_what_the_tally_gives_out_is_a_copy(tally: Tally) -> None:
    enter(tally, report("clean", 3))
    counters(tally).operators["clean"].replicas[0].processed = 99
    assert processed(tally) == 3


def test_sources_count_what_they_sent(tally: Tally) -> None:
    enter(tally, report("tweets", 10), report("tweets", 5, replica=1))
    assert counters(tally).sources == {"tweets": 15}


def test_a_batch_done_again_replaces_its_first_try_and_all_later_batches(tally: Tally) -> None:
    enter(tally, report("clean", 100, batch=0), report("clean", 10, batch=1), report("clean", 7, batch=2))
    enter(tally, report("clean", 4, batch=1, generation=1))
    assert processed(tally) == 104


def test_a_batch_done_again_replaces_what_other_replicas_said_of_it(tally: Tally) -> None:
    enter(tally, report("clean", 10, replica=0), report("clean", 20, replica=1))
    enter(tally, report("clean", 1, replica=0, generation=1))
    assert processed(tally) == 1


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_a_late_report_of_a_replaced_generation_counts_no_more(tally: Tally, batch: int) -> None:
    """One of a later batch than the restart began with used to be counted until that batch was done again."""
    enter(tally, report("clean", 10, batch=1), report("clean", 7, batch=2))
    enter(tally, report("clean", 4, batch=1, generation=1))
    enter(tally, report("clean", 50, batch=batch, generation=0), pid=2)
    assert processed(tally) == 4


def test_a_late_report_of_a_batch_before_the_restart_still_counts(tally: Tally) -> None:
    enter(tally, report("clean", 4, batch=1, generation=1))
    enter(tally, report("clean", 100, batch=0, generation=0), pid=2)
    assert processed(tally) == 104


def test_a_batch_first_heard_of_after_a_later_one_takes_nothing_away(tally: Tally) -> None:
    """Processes report in any order; the first report of batch 4 used to wipe out batch 5."""
    enter(tally, report("clean", 5, batch=5), pid=1)
    enter(tally, report("clean", 4, batch=4, replica=1), pid=2)
    assert processed(tally) == 9


@settings(max_examples=50)
@given(st.data())
def test_the_order_of_reports_does_not_matter(data: st.DataObject) -> None:
    """Two generations, the second from batch 2 on; every process's own reports come in order, else any order."""
    said = [report("clean", 2**b, batch=b, replica=b % 3) for b in range(5)]
    said += [report("clean", 2 ** (b + 8), batch=b, generation=1, replica=b % 3) for b in range(2, 6)]
    tally = Tally(chain())
    for pid, one in enumerate(data.draw(st.permutations(said))):
        enter(tally, one, pid=pid)
    assert processed(tally) == 2**0 + 2**1 + sum(2 ** (b + 8) for b in range(2, 6))


def test_settled_batches_stay_counted_and_change_no_more(tally: Tally) -> None:
    enter(tally, report("clean", 10, batch=0, queued=3))
    enter(tally, report("clean", 1, batch=KEPT_BATCHES + 1))
    assert processed(tally) == 11
    assert counters(tally).operators["clean"].total.queued == 0  # nothing waits in a batch that is over
    enter(tally, report("clean", 999, batch=0), pid=2)
    assert processed(tally) == 11
    enter(tally, report("clean", 999, batch=0, generation=3), pid=3)
    assert processed(tally) == 11


def test_memory_does_not_grow_with_the_number_of_batches(tally: Tally) -> None:
    for batch in range(5 * KEPT_BATCHES):
        enter(tally, report("clean", 1, batch=batch))
    assert processed(tally) == 5 * KEPT_BATCHES
    (book,) = tally._shifts.values()
    assert len(book.batches) == len(book.generations) == KEPT_BATCHES + 1


def test_backlog_is_what_was_sent_and_neither_processed_nor_dropped(tally: Tally) -> None:
    enter(tally, report("tweets", 20, sent={"clean": 20}))
    enter(tally, report("clean", 7, dropped={"q_size": 2}, sent={"store": 6}), pid=2)
    enter(tally, report("clean", 3, replica=1, sent={"store": 3}), pid=3)
    enter(tally, report("store", 4), pid=4)
    found = counters(tally).operators
    assert (found["clean"].backlog, found["store"].backlog) == (20 - 7 - 2 - 3, 9 - 4)


def test_backlog_is_never_negative_when_the_receiver_reports_first(tally: Tally) -> None:
    enter(tally, report("clean", 7))
    assert counters(tally).operators["clean"].backlog == 0


def test_the_age_is_that_of_the_stalest_active_replica(tally: Tally) -> None:
    enter(tally, report("clean", 1, replica=0), now_s=100.0, pid=1)
    enter(tally, report("clean", 1, replica=1), now_s=103.0, pid=2)
    assert counters(tally, 105.0).operators["clean"].age_s == 5.0
    assert counters(tally, 105.0, clean=(1,)).operators["clean"].age_s == 2.0


def test_a_source_is_as_old_as_its_stalest_slot(tally: Tally) -> None:
    assert counters(tally, 100.0).source_age_s == {}
    enter(tally, report("tweets", 1, replica=0), now_s=100.0, pid=1)
    enter(tally, report("tweets", 1, replica=1), now_s=103.0, pid=2)
    assert counters(tally, 105.0).source_age_s == {"tweets": 5.0}


def test_a_process_that_has_nothing_new_to_say_is_still_heard(tally: Tally) -> None:
    enter(tally, report("clean", 1), now_s=100.0)
    enter(tally, now_s=109.0)
    assert counters(tally, 110.0, clean=(0,)).operators["clean"].age_s == 1.0


def test_an_operator_with_an_active_replica_that_never_reported_is_missing(tally: Tally) -> None:
    assert counters(tally).missing == {"clean", "store"}
    enter(tally, report("clean", 0), report("store", 0))
    assert counters(tally).missing == {"clean"}  # replica 1
    enter(tally, report("clean", 0, replica=1), pid=2)
    assert counters(tally).missing == frozenset()
    assert counters(tally, store=(0, 2)).missing == {"store"}


def test_heard_tells_the_generations_apart(tally: Tally) -> None:
    enter(tally, report("clean", 1), report("store", 1))
    assert tally.heard(0) == {("clean", 0), ("store", 0)}
    enter(tally, report("clean", 1, generation=1))
    assert (tally.heard(0), tally.heard(1)) == (set(), {("clean", 0)})


def test_places_are_where_a_replica_was_last_heard_of(tally: Tally) -> None:
    enter(tally, report("clean", 1), pid=11)
    enter(tally, report("clean", 1, batch=1), pid=12)
    assert tally.places() == {("clean", 0): ReplicaPlace("host", 12, 1)}


def test_places_are_those_of_operators_only(tally: Tally) -> None:
    enter(tally, report("tweets", 1), report("store", 1), pid=11)
    assert tally.places() == {("store", 0): ReplicaPlace("host", 11, 0)}


def test_operators_come_in_topological_order_with_pool_and_restarts(tally: Tally) -> None:
    found = tally.counters(7.0, ACTIVE, restarts=2)
    assert (list(found.operators), found.time_s, found.restarts) == (["clean", "store"], 7.0, 2)
    assert (found.operators["clean"].pool, found.operators["clean"].active) == (3, (0, 1))


# ── shifts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_restart_of_one_shift_leaves_the_counts_of_another_alone(tally: Tally) -> None:
    enter(tally, report("clean", 5, batch=0, generation=0))
    enter(tally, report("clean", 7, batch=first_batch(1), generation=1))
    enter(tally, report("clean", 2, batch=0, generation=2))
    assert processed(tally) == 9
    enter(tally, report("clean", 8, batch=first_batch(1), generation=1))
    assert processed(tally) == 10


def test_batches_of_the_last_shift_stay_open_while_the_next_works(tally: Tally) -> None:
    enter(tally, report("clean", 5, batch=0))
    enter(tally, report("clean", 7, batch=first_batch(1), generation=1))
    enter(tally, report("clean", 6, batch=0))
    assert processed(tally) == 13


def test_what_a_dismissed_shift_said_does_not_count(tally: Tally) -> None:
    enter(tally, report("clean", 5, batch=0))
    enter(tally, report("clean", 7, batch=first_batch(1), generation=1))
    tally.discard(1)
    enter(tally, report("clean", 9, batch=first_batch(1), generation=1))
    assert processed(tally) == 5


def test_a_shift_that_is_over_counts_as_of_its_last_checkpoint(tally: Tally) -> None:
    """The last counters of a replica may be reported after it has said that its part of the checkpoint is done."""
    enter(tally, report("clean", 5, queued=3))
    tally.commit(0, {("clean", 0): ReplicaCounters(processed=8, queued=2), ("tweets", 0): ReplicaCounters(processed=9)})
    tally.close(0)
    enter(tally, report("clean", 8), pid=2)  # too late
    found = counters(tally)
    assert (found.operators["clean"].total.processed, found.sources["tweets"]) == (8, 9)
    assert found.operators["clean"].total.queued == 0


# ── attempts ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_after_a_restart_counters_are_as_of_the_last_checkpoint_and_go_on_from_there(tally: Tally) -> None:
    enter(tally, report("clean", 5))
    tally.commit(0, {("clean", 0): ReplicaCounters(processed=5, queued=4), ("clean", 1): None})
    enter(tally, report("clean", 9))
    assert processed(tally) == 9
    tally.restart(0, generation=1)
    assert processed(tally) == 5
    enter(tally, report("clean", 9), pid=2)  # a straggler of the attempt that has died
    assert processed(tally) == 5
    enter(tally, report("clean", 3, generation=1))
    assert processed(tally) == 8
    assert counters(tally).operators["clean"].total.queued == 0  # what waited then does not wait now


def test_an_attempt_that_dies_without_a_checkpoint_counts_for_nothing(tally: Tally) -> None:
    enter(tally, report("clean", 5), report("tweets", 7))
    tally.restart(0, generation=1)
    tally.restart(0, generation=2)
    found = counters(tally)
    assert (found.operators["clean"].total.processed, found.sources["tweets"]) == (0, 0)


def test_how_many_events_a_slot_has_sent_in_the_present_attempt(tally: Tally) -> None:
    slot = ("tweets", 0)
    assert tally.sent_by(0, slot) == 0
    enter(tally, report("tweets", 30), report("tweets", 7, replica=1))
    assert tally.sent_by(0, slot) == 30
    tally.commit(0, {slot: ReplicaCounters(processed=30)})
    tally.restart(0, generation=1)
    assert tally.sent_by(0, slot) == 0
    enter(tally, report("tweets", 4, generation=1))
    assert tally.sent_by(0, slot) == 4


def ended(tally: Tally, *slots: bool, generation: int = 0) -> bool:
    said = [Report(generation, 0, "tweets", number, ReplicaCounters(), ended=over) for number, over in enumerate(slots)]
    enter(tally, *said)
    return tally.ended(0)


def test_sources_have_ended_when_all_their_slots_say_so_in_the_present_attempt(tally: Tally) -> None:
    assert not tally.ended(0)
    enter(tally, report("clean", 1))
    assert not tally.ended(0)
    assert not ended(tally, True, False)
    assert ended(tally, True, True)
    tally.restart(0, generation=1)
    assert not tally.ended(0)
    assert not ended(tally, True, True)  # of the attempt that has died
    assert ended(tally, True, True, generation=1)


class Replica:
    """One replica, attempt by attempt and shift by shift, and the driver's tally of it."""

    def __init__(self) -> None:
        self.tally = Tally(chain())
        self.generation = self.shift = 0
        self.done = self.said = self.safe = 0  # in this attempt: processed, reported, committed
        self.earlier: list[tuple[int, int]] = []  # attempts that are over, and their shifts
        self.before = 0  # what dead attempts and shifts that are over had in their last checkpoints

    @property
    def counted(self) -> int:
        return self.before + self.said

    def work(self) -> None:
        self.done += 3

    def report(self) -> None:
        said = report("clean", self.done, generation=self.generation, batch=first_batch(self.shift))
        enter(self.tally, said)
        self.said = self.done

    def checkpoint(self) -> None:
        self.report()
        self.commit()

    def commit(self) -> None:
        """The checkpoint is committed before the counters are reported."""
        self.tally.commit(self.shift, {("clean", 0): ReplicaCounters(processed=self.done)})
        self.safe = self.done

    def die(self) -> None:
        self._leave()
        self.tally.restart(self.shift, self.generation)

    def be_relieved(self) -> None:
        """Another shift takes over, and this one's last checkpoint is committed."""
        self.commit()
        self.tally.close(self.shift)
        self._leave()
        self.shift += 1

    def straggle(self) -> None:
        """What earlier attempts say counts no more."""
        for generation, shift in self.earlier:
            enter(self.tally, report("clean", 1000, generation=generation, batch=first_batch(shift)), pid=2)

    def _leave(self) -> None:
        self.before += self.safe
        self.earlier.append((self.generation, self.shift))
        self.generation += 1
        self.done = self.said = self.safe = 0


DOINGS = ("work", "report", "checkpoint", "commit", "die", "be_relieved", "straggle")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(DOINGS), max_size=30))
def test_totals_are_what_was_committed_and_what_the_present_attempt_says(doings: list[str]) -> None:
    replica = Replica()
    for doing in doings:
        getattr(replica, doing)()
        assert processed(replica.tally) == replica.counted


def test_what_sources_and_operators_dropped_is_told_together(tally: Tally) -> None:
    enter(tally, report("tweets", 7, dropped={"dead_letter": 2}), report("clean", 6, dropped={"dead_letter": 1}))
    found = counters(tally)
    assert (found.sources, found.source_dropped) == ({"tweets": 7}, {"tweets": {"dead_letter": 2}})
    assert found.dropped == {"dead_letter": 3}


def test_the_pool_is_that_of_the_layout_at_work(tally: Tally) -> None:
    """Policies were told the declared pool, and asked for replicas that the layout did not have."""
    found = tally.counters(0.0, ACTIVE, pools={"clean": (0, 2), "store": (0,)}).operators
    assert [(one.pool, one.there) for one in found.values()] == [(2, (0, 2)), (1, (0,))]
    declared = tally.counters(0.0, ACTIVE).operators
    assert all(one.there == tuple(range(one.pool)) for one in declared.values())


def test_what_sinks_have_delivered_counts_once_over_attempts(tally: Tally) -> None:
    enter(tally, report("clean", 90), report("store", 70, dropped={"error": 2}))
    assert tally.delivered() == 72
    tally.commit(0, {("store", 0): ReplicaCounters(processed=40)})
    tally.restart(0, generation=1)
    assert tally.delivered() == 40
    enter(tally, report("store", 35, generation=1))
    assert tally.delivered() == 75
