"""The hand-over step by step: who waits for whom, and what the driver does meanwhile."""

from __future__ import annotations

from penstock.state.handover import Coordinator, ReceivingSide, SendingSide, Table

SENDERS = [("words", 0), ("words", 1)]


def coordinator(*owners: int) -> Coordinator:
    return Coordinator(Table(1, owners))


def test_one_group_from_its_owner_to_another() -> None:
    driver = coordinator(0, 0)
    senders = [SendingSide(driver.table) for _ in SENDERS]
    loser, gainer = ReceivingSide(0, driver.table, SENDERS), ReceivingSide(1, driver.table, SENDERS)
    driver.want((0, 1))
    assert driver.table == Table(2, (0, 1), before=(0, 0))
    assert [side.hear(driver.table) for side in senders] == [(0,), (0,)]
    assert senders[0].hear(driver.table) == ()  # once
    loser.hear(driver.table)
    gainer.hear(driver.table)
    loser.mark(2, SENDERS[0])
    assert loser.to_hand_over() == frozenset()  # the other may still send under version 1
    loser.mark(2, SENDERS[1])
    assert loser.to_hand_over() == {1}
    loser.hand_over()
    assert (loser.handed, loser.settled, gainer.settled) == (2, True, False)
    driver.hear(0, loser.handed, loser.taken)
    assert driver.table.handed == (0,)
    assert gainer.to_take() == {}  # it has not heard
    gainer.hear(driver.table)
    assert gainer.to_take() == {0: {1}}
    gainer.take({1})
    assert driver.missing == (1,)
    driver.hear(1, gainer.handed, gainer.taken)
    assert not driver.moving


def test_switches_may_come_before_the_news() -> None:
    table = Table(2, (1, 1), before=(0, 1))
    loser = ReceivingSide(0, Table(1, (0, 1)), SENDERS)
    for sender in SENDERS:
        loser.mark(2, sender)
    assert loser.to_hand_over() == frozenset()  # what of, it does not know yet
    loser.hear(table)
    assert loser.to_hand_over() == {0}


def test_a_replica_that_missed_a_change_which_did_not_concern_it() -> None:
    """Group 0 went from 0 to 1 unnoticed by 2, and now comes from 1: the table says from whom."""
    gainer = ReceivingSide(2, Table(1, (0, 1, 2)), SENDERS)
    gainer.hear(Table(3, (2, 1, 2), before=(1, 1, 2), handed=(1,)))
    assert gainer.to_take() == {1: {0}}


def test_wishes_wait_and_the_last_one_counts() -> None:
    driver = coordinator(0, 0, 0, 0)
    driver.want((0, 1))
    first = driver.table
    driver.want((0, 1, 2))
    driver.want((3,))
    assert driver.table == first
    driver.hear(0, 2, 2)
    driver.hear(1, 2, 2)
    assert driver.table == Table(3, (3, 3, 3, 3), before=first.owners)


def test_a_wish_that_moves_nothing_is_no_change() -> None:
    driver = coordinator(0, 1)
    driver.want((1, 0))
    assert (driver.table.version, driver.moving) == (1, False)


def test_reports_of_earlier_versions_and_of_bystanders_do_not_count() -> None:
    driver = coordinator(0, 0, 2)
    driver.want((0, 1, 2))
    driver.hear(0, 1, 1)
    driver.hear(2, 2, 2)
    assert (driver.table.handed, driver.missing) == ((), (0,))


def test_nothing_changes_while_it_is_held() -> None:
    """Barriers are on their way, or another shift starts: the last wish counts once they have come."""
    driver = coordinator(0, 0)
    driver.held = True
    driver.want((0, 1))
    assert (driver.table, driver.moving) == (Table(1, (0, 0)), False)
    assert driver.begin() == Table(1, (0, 0))
    driver.release()
    assert (driver.table, driver.moving) == (Table(2, (0, 1), before=(0, 0)), True)


def test_a_change_that_goes_on_is_not_stopped_by_a_hold() -> None:
    driver = coordinator(0, 0)
    driver.want((0, 1))
    driver.held = True
    driver.want((1,))
    driver.hear(0, 2, 2)
    driver.hear(1, 2, 2)
    assert (driver.table.version, driver.moving) == (2, False)
    driver.release()
    assert driver.table == Table(3, (1, 1), before=(0, 1))


def test_what_was_wished_for_is_so_from_the_beginning_of_an_attempt() -> None:
    """Nobody has anything yet, so nothing has to move."""
    driver = coordinator(0, 0)
    driver.held = True
    driver.want((0, 1))
    driver.held = False
    assert driver.begin() == Table(2, (0, 1))
    driver.want((1,))
    assert driver.table == Table(3, (1, 1), before=(0, 1))


def test_an_attempt_that_begins_ends_a_change() -> None:
    """After a crash all is loaded by the new owners: nobody has anything to hand over."""
    driver = coordinator(0, 0)
    driver.want((0, 1))
    assert driver.begin() == Table(2, (0, 1))
    assert (driver.moving, driver.missing) == (False, ())


def test_rolling_back() -> None:
    driver = coordinator(0, 0)
    driver.want((0, 1))
    driver.want((4,))
    driver.roll_back()
    assert driver.table == Table(3, (0, 0))
    assert driver.begin() == Table(3, (0, 0))
