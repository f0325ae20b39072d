"""Events that end their process: when attempts are careful, and what is taken for deadly."""

from __future__ import annotations

from penstock.engine.driver.causes import Cause, Kind
from penstock.engine.driver.suspects import Suspects
from penstock.engine.protocol.messages import AtWork

EXITED = Cause(Kind.ENVIRONMENT, "Python worker exited unexpectedly (crashed)")


class History:
    """A run that dies again and again."""

    def __init__(self) -> None:
        self.suspects, self.generation, self.checkpoints = Suspects(), 1, 0

    def crash(self, *lost: tuple[str, str | None], cause: Cause = EXITED) -> None:
        """These operators were at these events when their processes were lost, in this order."""
        for name, event_id in lost:
            self.suspects.lost(AtWork(self.generation, name, 0, event_id))
        self.generation += 1
        self.suspects.died(cause, self.checkpoints, self.generation)


def suspected() -> History:
    """Its attempts are careful by now."""
    history = History()
    history.crash()
    history.crash()
    return history


def test_attempts_are_careful_after_two_deaths_without_a_checkpoint() -> None:
    history = History()
    history.crash()
    assert not history.suspects.careful
    history.crash()
    assert history.suspects.careful


def test_a_checkpoint_ends_that() -> None:
    history = suspected()
    history.checkpoints += 1
    history.crash()
    assert not history.suspects.careful


def test_what_an_operator_says_itself_needs_no_care() -> None:
    history = History()
    for _ in range(3):
        history.crash(cause=Cause(Kind.EVENT, "operator 'parse' (app.py:3): ValueError: no; on event 41: {'n': 7}"))
    assert not history.suspects.careful


def test_the_event_at_which_the_first_process_was_lost_twice_in_a_row_is_deadly() -> None:
    history = suspected()
    history.crash(("parse", "41"), ("store", "7"))
    assert history.suspects.deadly == {}
    history.crash(("parse", "41"), ("store", "9"))
    assert history.suspects.deadly == {"parse": frozenset({"41"})}


def test_processes_that_spark_ends_after_the_first_are_not_to_blame() -> None:
    history = suspected()
    history.crash(("parse", "41"), ("store", "7"))
    history.crash(("parse", "42"), ("store", "7"))
    assert history.suspects.deadly == {}


def test_what_is_lost_of_an_earlier_attempt_does_not_count() -> None:
    """Spark may take seconds to end the processes of an attempt that died."""
    history = suspected()
    history.crash(("parse", "41"))
    history.suspects.lost(AtWork(history.generation - 1, "store", 0, "7"))
    history.crash(("parse", "41"))
    assert history.suspects.deadly == {"parse": frozenset({"41"})}


def test_one_that_is_ended_between_two_events_makes_nothing_deadly() -> None:
    """Its last event counted as failed, or that of a process which Spark ended after it."""
    history = suspected()
    for _ in range(3):
        history.crash(("parse", None), ("store", "7"))
    assert history.suspects.deadly == {}


def test_workers_that_are_killed_at_random_make_nothing_deadly() -> None:
    history = suspected()
    for event_id in ("1", "2", "3", "1"):
        history.crash(("parse", event_id))
    history.crash()  # nobody had said anything
    history.crash(("parse", "1"))
    assert history.suspects.deadly == {}


def test_the_next_deadly_one_is_found_while_attempts_are_careful_and_none_is_forgotten() -> None:
    history = suspected()
    for event_id in ("41", "41", "50", "50"):
        history.crash(("parse", event_id))
    history.checkpoints += 1
    history.crash()
    assert history.suspects.deadly == {"parse": frozenset({"41", "50"})}
