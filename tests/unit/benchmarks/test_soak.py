"""A long run: what is said of its beginning and its end, and its source."""

from __future__ import annotations

import time
from itertools import pairwise

from soak import Look, Steady, SteadyReader, grown, slopes, summary

from penstock.sources.base import Slot
from tests.waiting import LONG_S


def looks(driver: int = 1, count: int = 20, grows_mb: float = 1.0) -> list[Look]:
    """One a minute; memory grows by so much each time."""
    return [
        Look(
            driver=driver,
            age_s=60.0 * (number + 1),
            p50_ms=10.0 + number,
            p99_ms=50.0,
            events=60_000,
            moves=5,
            restarts=0,
            memory_mb={"driver": 200.0 + grows_mb * number, "jvm": 900.0},
            files={"driver": 40, "jvm": 100},
            threads={"driver": 20, "jvm": 80},
        )
        for number in range(count)
    ]


def test_the_first_minutes_of_a_driver_are_left_out() -> None:
    told = summary(looks(), missing=0)
    assert (told["looks"], told["drivers"], told["events"]) == (20, 1, 1_200_000)
    assert told["begin"]["p50_ms"] == 14.0  # of 12 to 16
    assert told["end"]["p50_ms"] == 27.0
    assert told["begin"]["files"] == told["end"]["files"] == {"driver": 40, "jvm": 100}


def test_what_has_grown_by_more_than_noise_is_named() -> None:
    assert summary(looks(), missing=0)["grown"] == ["memory_mb of driver"]  # 60 MB an hour of 202
    calm = summary(looks(grows_mb=0.1), missing=0)
    assert calm["grown"] == []
    end = calm["end"] | {"p99_ms": 90.0, "files": {"driver": 45, "jvm": 100}}
    assert grown(calm["begin"], end, {}) == ["p99_ms", "files of driver"]


def test_memory_is_looked_at_over_the_longest_life_of_a_driver() -> None:
    assert slopes(looks(1, 5, 50.0) + looks(2, 20, 1.0)) == {"driver": 60.0, "jvm": 0.0}
    assert slopes(looks(1, 3)) == {}


def test_events_come_steadily_from_the_moment_on_at_which_it_is_opened() -> None:
    reader = Steady(100_000.0, ["a", "b", "c"]).open(Slot("run", "s", 0, 1, 0.0), 7)
    assert isinstance(reader, SteadyReader)
    polled = []
    deadline = time.monotonic() + LONG_S
    while len(polled) < 10 and time.monotonic() < deadline:
        polled += reader.poll(4, 0.01)
    assert [one.id for one in polled] == [str(n) for n in range(7, 7 + len(polled))]
    assert [one.event for one in polled[:3]] == ["b", "c", "a"]
    assert reader.cursor == 7 + len(polled)
    assert all(before.born_s < after.born_s for before, after in pairwise(polled))
