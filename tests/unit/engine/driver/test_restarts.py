"""What becomes of a query that died: decided from causes, times and progress, without a clock or a thread."""

from __future__ import annotations

import random

import pytest

from penstock.engine.driver.causes import Cause, Kind, cause_of
from penstock.engine.driver.restarts import Again, Death, Over, Restarts

OURS = Cause(Kind.PROGRAM, "operator 'parse' (app.py:3): open failed: KeyError: 'x'")
KILLED = Cause(Kind.ENVIRONMENT, "Python worker exited unexpectedly (crashed): java.io.EOFException")
BAD_EVENT = Cause(Kind.EVENT, "operator 'parse' (app.py:3): ValueError: no such number; on event 41: {'n': 'x'}")


def made(retries: int = 5, seed: int = 1) -> Restarts:
    return Restarts(retries, 600.0, random.Random(seed))


def pauses(restarts: Restarts, deaths: list[Death]) -> list[float]:
    decided = [restarts.decide(one) for one in deaths]
    assert all(isinstance(one, Again) for one in decided), decided
    return [one.pause_s for one in decided if isinstance(one, Again)]


def test_the_first_restart_does_not_wait_and_each_further_one_waits_longer() -> None:
    found = pauses(made(), [Death(KILLED, 1.0, 3)] * 12)
    longest = [0.0, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, *[10.0] * 5]
    assert all(most / 2 <= pause <= most for pause, most in zip(found, longest, strict=True)), found


def test_pauses_are_drawn_and_the_same_for_the_same_seed() -> None:
    deaths = [Death(KILLED, 1.0, 0)] * 8
    assert pauses(made(seed=1), deaths) == pauses(made(seed=1), deaths)
    assert pauses(made(seed=1), deaths) != pauses(made(seed=2), deaths)


def test_progress_sets_the_pause_back() -> None:
    """Every restart used to wait longer than the last, though the run had worked for minutes in between."""
    found = pauses(made(), [Death(KILLED, 15.0, checkpoints) for checkpoints in range(100)])
    assert found == [0.0] * 100
    assert pauses(made(), [Death(KILLED, 600.0, 0)] * 10) == [0.0] * 10  # a long life is progress, too


def test_what_the_environment_does_has_no_limit() -> None:
    restarts = made(retries=0)
    assert all(isinstance(restarts.decide(Death(KILLED, 1.0, 0)), Again) for _ in range(500))


def test_the_programs_own_deaths_end_it_after_so_many_without_progress() -> None:
    restarts = made(retries=3)
    decided = [restarts.decide(Death(OURS, 1.0, 7)) for _ in range(4)]
    assert all(isinstance(one, Again) for one in decided[:3])
    assert decided[3] == Over(f"the query died 4 times in a row without progress; the last time: {OURS}")


def test_a_killed_worker_in_between_is_no_progress() -> None:
    restarts = made(retries=2)
    causes = [OURS, KILLED, OURS, KILLED, KILLED]
    assert all(isinstance(restarts.decide(Death(cause, 1.0, 0)), Again) for cause in causes)
    assert isinstance(restarts.decide(Death(OURS, 1.0, 0)), Over)


def test_with_progress_in_between_the_programs_own_deaths_have_no_limit() -> None:
    restarts = made(retries=1)
    assert all(isinstance(restarts.decide(Death(OURS, 12.0, number)), Again) for number in range(50))


def test_without_retries_the_first_own_death_is_the_end() -> None:
    assert made(retries=0).decide(Death(OURS, 1.0, 0)) == Over(f"the query died: {OURS}")


def test_an_event_that_fails_again_in_the_same_way_ends_it_whatever_happened_in_between() -> None:
    """A checkpoint before the event is progress, and yet the event comes again."""
    restarts = made(retries=5)
    for cause, checkpoints in ((BAD_EVENT, 0), (KILLED, 1)):
        assert isinstance(restarts.decide(Death(cause, 12.0, checkpoints)), Again)
    assert restarts.decide(Death(BAD_EVENT, 12.0, 2)) == Over(f"an event failed in the same way each time: {BAD_EVENT}")


DEATHS = {
    "another event": "operator 'parse' (app.py:3): ValueError: no; on event {number}: 7",
    "another error": "operator 'parse' (app.py:3): ValueError: {number}; on event 41: 7",
    "another operator": "operator 'op{number}' (app.py:3): ValueError: no; on event 41: 7",
    "one of several": "operator 'parse' (app.py:3): ValueError: no; on event 41 or one of the 3 after it: 7",
    "no event": OURS.text,
}


@pytest.mark.parametrize("said", DEATHS.values(), ids=DEATHS)
def test_what_may_go_better_the_next_time_is_tried_again(said: str) -> None:
    restarts = made(retries=3)
    decided = [restarts.decide(Death(cause_of(said.format(number=number)), 1.0, 0)) for number in range(4)]
    assert all(isinstance(one, Again) for one in decided[:3])
    assert isinstance(decided[3], Over)
    assert decided[3].why.startswith("the query died 4 times in a row without")


def test_a_service_that_is_away_is_waited_for_though_it_is_the_same_event_that_finds_out() -> None:
    """After a restart it is the first event again that cannot be stored."""
    said = "operator 'store' (app.py:3): ConnectionRefusedError: [Errno 111] Connection refused; on event 41: {}"
    restarts = made(retries=0)
    assert all(isinstance(restarts.decide(Death(cause_of(said), 1.0, 0)), Again) for _ in range(50))


def test_a_worker_that_does_not_see_the_runs_folder_ends_it_at_once() -> None:
    cause = Cause(Kind.UNSEEN, "worker home-2 on vm does not see what the run keeps in the folder /data/run")
    assert made(retries=5).decide(Death(cause, 1.0, 0)) == Over(cause.text)
