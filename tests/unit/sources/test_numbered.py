"""Sources by number: dealt to the slots in turn, as events become due, from any cursor on."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sources.base import Slot
from penstock.sources.numbered import NumberedReader, NumberedSource
from tests.waiting import LONG_S

LONG_AGO = 1000.0


@dataclass
class Numbers(NumberedSource):
    """Event n is n, due n / rate seconds after the start; without a rate all are due, and born when they are read."""

    total: int | None = None
    rate: float | None = 1e6

    def due(self, elapsed_s: float) -> int:
        due = int(elapsed_s * self.rate) + 1 if self.rate is not None and elapsed_s >= 0 else 0
        due = due if self.rate is not None else self.total or 0
        return due if self.total is None else min(self.total, due)

    def due_times(self, numbers: range) -> list[float]:
        return [math.nan if self.rate is None else number / self.rate for number in numbers]

    def read(self, numbers: range) -> list[int]:
        return list(numbers)


def reader(
    source: NumberedSource, slot: int = 0, slots: int = 1, *, cursor: int | None = None, epoch_s: float = LONG_AGO
) -> NumberedReader:
    opened = source.open(Slot("run", "events", slot, slots, epoch_s), cursor)
    assert isinstance(opened, NumberedReader)
    return opened


def test_ids_and_times_go_by_number() -> None:
    polled = reader(Numbers(15, rate=10.0), 1, 3, cursor=2).poll(100, 0.0)
    assert [(one.id, one.event, one.born_s) for one in polled] == [
        ("7", 7, LONG_AGO + 0.7),
        ("10", 10, LONG_AGO + 1.0),
        ("13", 13, LONG_AGO + 1.3),
    ]


@given(total=st.integers(0, 50), slots=st.integers(1, 6), most=st.integers(1, 7), cut=st.integers(0, 60))
def test_slots_share_all_events_wherever_they_are_opened_again(total: int, slots: int, most: int, cut: int) -> None:
    read: list[int] = []
    for slot in range(slots):
        one, mine = reader(Numbers(total), slot, slots), []
        while not one.ended and len(mine) < cut:
            mine += [polled.event for polled in one.poll(most, 0.0)]
        again = reader(Numbers(total), slot, slots, cursor=one.cursor)
        while not again.ended:
            mine += [polled.event for polled in again.poll(most, 0.0)]
        assert mine == list(range(slot, total, slots))
        read += mine
    assert sorted(read) == list(range(total))


def test_what_is_not_due_is_not_read_and_what_is_waits_as_lag() -> None:
    one = reader(Numbers(1000, rate=1.0), 1, 4, epoch_s=time.time() - 9.5)  # 0 to 9 are due: 1, 5 and 9 of them here
    assert (one.lag(), one.cursor, one.ended) == (3, 0, False)
    assert [polled.event for polled in one.poll(2, 0.0)] == [1, 5]
    assert (one.lag(), one.cursor) == (1, 2)
    assert [polled.event for polled in one.poll(2, 0.0)] == [9]
    assert one.poll(2, 0.0) == []
    assert (one.lag(), one.cursor) == (0, 3)


def test_nothing_is_due_before_the_epoch() -> None:
    one = reader(Numbers(5), epoch_s=time.time() + 3600)
    assert (one.poll(5, 0.0), one.lag(), one.cursor) == ([], 0, 0)


def test_it_waits_for_the_next_event_and_no_longer() -> None:
    one = reader(Numbers(10, rate=10.0), cursor=1, epoch_s=time.time())
    begun = time.perf_counter()
    polled = one.poll(5, 10 * LONG_S)
    assert [event.event for event in polled] == [1]
    assert 0.05 < time.perf_counter() - begun < LONG_S


@pytest.mark.parametrize("total", [None, 1], ids=["more-to-come", "ended"])
def test_it_waits_no_longer_than_it_may(total: int | None) -> None:
    one = reader(Numbers(total, rate=0.0001), cursor=1, epoch_s=time.time())
    begun = time.perf_counter()
    assert one.poll(5, 0.05) == []
    assert 0.04 < time.perf_counter() - begun < LONG_S


def test_events_without_a_due_time_are_born_when_they_are_read() -> None:
    before = time.time()
    polled = reader(Numbers(2, rate=None)).poll(5, 0.0)
    assert len(polled) == 2
    assert all(before <= one.born_s <= time.time() for one in polled)


@pytest.mark.parametrize(
    ("total", "cursor", "ended"), [(10, 2, False), (10, 3, True), (11, 3, False), (None, 10**9, False)]
)
def test_it_has_ended_when_none_of_its_own_is_left(total: int | None, cursor: int, ended: bool) -> None:
    """Slot 1 of 3 has 1, 4 and 7, and with eleven events also 10."""
    assert reader(Numbers(total), 1, 3, cursor=cursor).ended is ended
