"""Where replicas listen, as the driver tells it."""

from __future__ import annotations

from penstock.engine.driver.places import KEPT_ATTEMPTS, PlaceBook
from penstock.engine.protocol.messages import Notice, Places, Report, Reports
from penstock.metrics.counters import ReplicaCounters

BOTH = [("op", 0), ("op", 1)]


class Told:
    """What was published."""

    def __init__(self) -> None:
        self.all: list[dict[int, list[int]]] = []  # ports by generation

    def publish(self, message: Notice) -> None:
        assert isinstance(message, Places)
        assert message.version == len(self.all) + 1
        ports = {number: [one.address[1] for one in places] for number, places in message.generations.items()}
        self.all.append(ports)


def said(generation: int, replica: int, port: int | None) -> Reports:
    place = None if port is None else ("127.0.0.1", port)
    report = Report(generation, 0, "op", replica, ReplicaCounters(), place=place)
    return Reports("host", 1, 0, [report])


def test_nothing_is_told_before_all_of_an_attempt_have_said_where_they_are() -> None:
    told = Told()
    book = PlaceBook(told)
    book.begin(1, BOTH)
    for reports in (said(1, 0, 4000), said(1, 1, None), said(1, 0, 4000)):
        book.hear(reports)
        assert told.all == []
    book.hear(said(1, 1, 4001))
    assert told.all == [{1: [4000, 4001]}]


def test_what_is_said_again_is_not_told_again_and_what_has_changed_is() -> None:
    told = Told()
    book = PlaceBook(told)
    book.begin(1, BOTH[:1])
    for port in (4000, 4000, 5000, 5000):
        book.hear(said(1, 0, port))
    assert told.all == [{1: [4000]}, {1: [5000]}]


def test_two_attempts_at_work_are_told_together_and_one_that_was_not_begun_never() -> None:
    told = Told()
    book = PlaceBook(told)
    for generation in (1, 2):
        book.begin(generation, BOTH[:1])
    for generation in (1, 2, 3):
        book.hear(said(generation, 0, 4000 + generation))
    assert told.all == [{1: [4001]}, {1: [4001], 2: [4002]}]


def test_attempts_long_over_are_forgotten() -> None:
    told = Told()
    book = PlaceBook(told)
    for generation in range(10):
        book.begin(generation, BOTH[:1])
        book.hear(said(generation, 0, 4000 + generation))
    assert list(told.all[-1]) == list(range(10 - KEPT_ATTEMPTS, 10))
