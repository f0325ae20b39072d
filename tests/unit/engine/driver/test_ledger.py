"""The driver's book: every report once, whatever comes late, twice, or from a batch that is done again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.driver.ledger import KEPT_BATCHES, Ledger, Place
from penstock.engine.protocol.messages import Report, Reports
from penstock.engine.protocol.progress import first_batch
from penstock.metrics.counters import ReplicaCounters, RunCounters
from penstock.topology import Topology

ACTIVE = {"clean": (0, 1), "store": (0,)}


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(chain())


def chain() -> Topology:
    topology = Topology("chain", pool=3)
    clean = topology.operator("clean", len, inputs=topology.source("tweets"))
    topology.operator("store", len, inputs=clean)
    return topology


def report(
    operator: str, processed: int, *, batch: int = 0, generation: int = 0, replica: int = 0, **more: Any
) -> Report:
    return Report(generation, batch, operator, replica, ReplicaCounters(processed=processed, **more))


def enter(ledger: Ledger, *reports: Report, pid: int = 1, now_s: float = 0.0) -> None:
    ledger.enter(Reports("host", pid, 0, list(reports)), now_s)


def counters(ledger: Ledger, now_s: float = 0.0, **active: tuple[int, ...]) -> RunCounters:
    return ledger.counters(now_s, ACTIVE | active)


def processed(ledger: Ledger, operator: str = "clean") -> int:
    return counters(ledger).operators[operator].total.processed


def test_a_later_report_replaces_the_one_before(ledger: Ledger) -> None:
    for done in (3, 8, 8):
        enter(ledger, report("clean", done))
        assert processed(ledger) == done


def test_replicas_and_batches_are_added_up(ledger: Ledger) -> None:
    enter(ledger, report("clean", 3), report("clean", 4, batch=1))
    enter(ledger, report("clean", 5, replica=1), pid=2)
    found = counters(ledger).operators["clean"]
    assert {replica: one.processed for replica, one in found.replicas.items()} == {0: 7, 1: 5}
    assert found.total.processed == 12


def test_what_the_ledger_gives_out_is_a_copy(ledger: Ledger) -> None:
    enter(ledger, report("clean", 3))
    counters(ledger).operators["clean"].replicas[0].processed = 99
    assert processed(ledger) == 3


def test_sources_count_what_they_sent(ledger: Ledger) -> None:
    enter(ledger, report("tweets", 10), report("tweets", 5, replica=1))
    assert counters(ledger).sources == {"tweets": 15}


def test_a_batch_done_again_replaces_its_first_try_and_all_later_batches(ledger: Ledger) -> None:
    enter(ledger, report("clean", 100, batch=0), report("clean", 10, batch=1), report("clean", 7, batch=2))
    enter(ledger, report("clean", 4, batch=1, generation=1))
    assert processed(ledger) == 104


def test_a_batch_done_again_replaces_what_other_replicas_said_of_it(ledger: Ledger) -> None:
    enter(ledger, report("clean", 10, replica=0), report("clean", 20, replica=1))
    enter(ledger, report("clean", 1, replica=0, generation=1))
    assert processed(ledger) == 1


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_a_late_report_of_a_replaced_generation_counts_no_more(ledger: Ledger, batch: int) -> None:
    """One of a later batch than the restart began with used to be counted until that batch was done again."""
    enter(ledger, report("clean", 10, batch=1), report("clean", 7, batch=2))
    enter(ledger, report("clean", 4, batch=1, generation=1))
    enter(ledger, report("clean", 50, batch=batch, generation=0), pid=2)
    assert processed(ledger) == 4


def test_a_late_report_of_a_batch_before_the_restart_still_counts(ledger: Ledger) -> None:
    enter(ledger, report("clean", 4, batch=1, generation=1))
    enter(ledger, report("clean", 100, batch=0, generation=0), pid=2)
    assert processed(ledger) == 104


def test_a_batch_first_heard_of_after_a_later_one_takes_nothing_away(ledger: Ledger) -> None:
    """Processes report in any order; the first report of batch 4 used to wipe out batch 5."""
    enter(ledger, report("clean", 5, batch=5), pid=1)
    enter(ledger, report("clean", 4, batch=4, replica=1), pid=2)
    assert processed(ledger) == 9


@settings(max_examples=50)
@given(st.data())
def test_the_order_of_reports_does_not_matter(data: st.DataObject) -> None:
    """Two generations, the second from batch 2 on; every process's own reports come in order, else any order."""
    said = [report("clean", 2**b, batch=b, replica=b % 3) for b in range(5)]
    said += [report("clean", 2 ** (b + 8), batch=b, generation=1, replica=b % 3) for b in range(2, 6)]
    ledger = Ledger(chain())
    for pid, one in enumerate(data.draw(st.permutations(said))):
        enter(ledger, one, pid=pid)
    assert processed(ledger) == 2**0 + 2**1 + sum(2 ** (b + 8) for b in range(2, 6))


def test_settled_batches_stay_counted_and_change_no_more(ledger: Ledger) -> None:
    enter(ledger, report("clean", 10, batch=0, queued=3))
    enter(ledger, report("clean", 1, batch=KEPT_BATCHES + 1))
    assert processed(ledger) == 11
    assert counters(ledger).operators["clean"].total.queued == 0  # nothing waits in a batch that is over
    enter(ledger, report("clean", 999, batch=0), pid=2)
    assert processed(ledger) == 11
    enter(ledger, report("clean", 999, batch=0, generation=3), pid=3)
    assert processed(ledger) == 11


def test_memory_does_not_grow_with_the_number_of_batches(ledger: Ledger) -> None:
    for batch in range(5 * KEPT_BATCHES):
        enter(ledger, report("clean", 1, batch=batch))
    assert processed(ledger) == 5 * KEPT_BATCHES
    (book,) = ledger._books.values()
    assert len(book.batches) == len(book.generations) == KEPT_BATCHES + 1


def test_backlog_is_what_was_sent_and_neither_processed_nor_dropped(ledger: Ledger) -> None:
    enter(ledger, report("tweets", 20, sent={"clean": 20}))
    enter(ledger, report("clean", 7, dropped={"q_size": 2}, sent={"store": 6}), pid=2)
    enter(ledger, report("clean", 3, replica=1, sent={"store": 3}), pid=3)
    enter(ledger, report("store", 4), pid=4)
    found = counters(ledger).operators
    assert (found["clean"].backlog, found["store"].backlog) == (20 - 7 - 2 - 3, 9 - 4)


def test_backlog_is_never_negative_when_the_receiver_reports_first(ledger: Ledger) -> None:
    enter(ledger, report("clean", 7))
    assert counters(ledger).operators["clean"].backlog == 0


def test_the_age_is_that_of_the_stalest_active_replica(ledger: Ledger) -> None:
    enter(ledger, report("clean", 1, replica=0), now_s=100.0, pid=1)
    enter(ledger, report("clean", 1, replica=1), now_s=103.0, pid=2)
    assert counters(ledger, 105.0).operators["clean"].age_s == 5.0
    assert counters(ledger, 105.0, clean=(1,)).operators["clean"].age_s == 2.0


def test_a_source_is_as_old_as_its_stalest_slot(ledger: Ledger) -> None:
    assert counters(ledger, 100.0).source_age_s == {}
    enter(ledger, report("tweets", 1, replica=0), now_s=100.0, pid=1)
    enter(ledger, report("tweets", 1, replica=1), now_s=103.0, pid=2)
    assert counters(ledger, 105.0).source_age_s == {"tweets": 5.0}


def test_a_process_that_has_nothing_new_to_say_is_still_heard(ledger: Ledger) -> None:
    enter(ledger, report("clean", 1), now_s=100.0)
    enter(ledger, now_s=109.0)
    assert counters(ledger, 110.0, clean=(0,)).operators["clean"].age_s == 1.0


def test_an_operator_with_an_active_replica_that_never_reported_is_missing(ledger: Ledger) -> None:
    assert counters(ledger).missing == {"clean", "store"}
    enter(ledger, report("clean", 0), report("store", 0))
    assert counters(ledger).missing == {"clean"}  # replica 1
    enter(ledger, report("clean", 0, replica=1), pid=2)
    assert counters(ledger).missing == frozenset()
    assert counters(ledger, store=(0, 2)).missing == {"store"}


def test_heard_tells_the_generations_apart(ledger: Ledger) -> None:
    enter(ledger, report("clean", 1), report("store", 1))
    assert ledger.heard(0) == {("clean", 0), ("store", 0)}
    enter(ledger, report("clean", 1, generation=1))
    assert (ledger.heard(0), ledger.heard(1)) == (set(), {("clean", 0)})


def test_places_are_where_a_replica_was_last_heard_of(ledger: Ledger) -> None:
    enter(ledger, report("clean", 1), pid=11)
    enter(ledger, report("clean", 1, batch=1), pid=12)
    assert ledger.places() == {("clean", 0): Place("host", 12, 1)}


def test_places_are_those_of_operators_only(ledger: Ledger) -> None:
    enter(ledger, report("tweets", 1), report("store", 1), pid=11)
    assert ledger.places() == {("store", 0): Place("host", 11, 0)}


def test_operators_come_in_topological_order_with_pool_and_restarts(ledger: Ledger) -> None:
    found = ledger.counters(7.0, ACTIVE, restarts=2)
    assert (list(found.operators), found.time_s, found.restarts) == (["clean", "store"], 7.0, 2)
    assert (found.operators["clean"].pool, found.operators["clean"].active) == (3, (0, 1))


# ── shifts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_restart_of_one_shift_leaves_the_counts_of_another_alone(ledger: Ledger) -> None:
    enter(ledger, report("clean", 5, batch=0, generation=0))
    enter(ledger, report("clean", 7, batch=first_batch(1), generation=1))
    enter(ledger, report("clean", 2, batch=0, generation=2))
    assert processed(ledger) == 9
    enter(ledger, report("clean", 8, batch=first_batch(1), generation=1))
    assert processed(ledger) == 10


def test_batches_of_the_last_shift_stay_open_while_the_next_works(ledger: Ledger) -> None:
    enter(ledger, report("clean", 5, batch=0))
    enter(ledger, report("clean", 7, batch=first_batch(1), generation=1))
    enter(ledger, report("clean", 6, batch=0))
    assert processed(ledger) == 13


def test_what_a_dismissed_shift_said_does_not_count(ledger: Ledger) -> None:
    enter(ledger, report("clean", 5, batch=0))
    enter(ledger, report("clean", 7, batch=first_batch(1), generation=1))
    ledger.discard(1)
    enter(ledger, report("clean", 9, batch=first_batch(1), generation=1))
    assert processed(ledger) == 5


def test_how_far_a_source_had_come_before_its_batch_was_done_again(ledger: Ledger) -> None:
    slot = ("tweets", 0)
    assert ledger.furthest(0, slot) == (0, 0)
    enter(ledger, report("tweets", 30), report("tweets", 7, batch=1))
    assert ledger.furthest(0, slot) == ledger.newest(0, slot) == (1, 7)
    enter(ledger, report("clean", 0, generation=1))  # all of both batches again
    enter(ledger, report("tweets", 5, generation=1))
    assert (ledger.newest(0, slot), ledger.furthest(0, slot)) == ((0, 5), (1, 7))
    enter(ledger, report("tweets", 9, batch=1, generation=1))
    assert ledger.furthest(0, slot) == (1, 9)
