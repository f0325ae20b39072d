"""The calendar: by the clocks of a place, in summer and winter, past midnight, and in the simulator as live."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import Scenario, simulate
from penstock.errors import InputError
from penstock.policy.guards import Calendar, guarded
from penstock.policy.guards.calendar import parse_calendar, parse_event
from penstock.policy.static import Static
from penstock.testing.loads import load, snapshot
from penstock.workload import constant


def at(text):
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("event", "on", "off"),
    [
        (
            "freeze daily 08:00-10:00",
            ["2026-03-01T08:00Z", "2026-03-01T09:59Z"],
            ["2026-03-01T07:59Z", "2026-03-01T10:00Z"],
        ),
        ("freeze mon-fri 08:00-10:00", ["2026-03-02T09:00Z", "2026-03-06T09:00Z"], ["2026-03-01T09:00Z"]),
        ("freeze fri-mon 08:00-10:00", ["2026-03-01T09:00Z", "2026-03-02T09:00Z"], ["2026-03-03T09:00Z"]),
        ("freeze sat,tue 08:00-10:00", ["2026-03-03T09:00Z", "2026-02-28T09:00Z"], ["2026-03-01T09:00Z"]),
        # past midnight: of the day on which it begins
        (
            "freeze fri 22:00-06:00",
            ["2026-03-06T23:00Z", "2026-03-07T05:00Z"],
            ["2026-03-06T05:00Z", "2026-03-07T23:00Z"],
        ),
        (
            "freeze 2026-12-24..2026-12-26 00:00-24:00",
            ["2026-12-24T00:00Z", "2026-12-26T23:59Z"],
            ["2026-12-27T00:00Z"],
        ),
        ("freeze 2026-12-24 20:00-24:00", ["2026-12-24T23:59Z"], ["2026-12-25T00:00Z", "2026-12-24T19:59Z"]),
        # Zurich is an hour ahead of UTC in winter and two in summer
        ("freeze daily 08:00-09:00 Europe/Zurich", ["2026-01-15T07:30Z", "2026-07-15T06:30Z"], ["2026-07-15T07:30Z"]),
        # on the day when clocks go forward 02:30 is skipped; when they go back it comes twice
        ("freeze daily 02:00-03:00 Europe/Zurich", ["2026-10-25T00:30Z", "2026-10-25T01:30Z"], ["2026-03-29T01:00Z"]),
        # where the day is another one than in Greenwich
        ("freeze mon 06:00-07:00 Asia/Tokyo", ["2026-03-01T21:30Z"], ["2026-03-02T21:30Z"]),
    ],
)
def test_when_it_is_on(event, on, off):
    found = parse_event(event)
    assert all(found.is_on(at(one)) for one in on)
    assert not any(found.is_on(at(one)) for one in off)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "thaw daily 08:00-10:00",
        "freeze",
        "freeze daily",
        "freeze daily 8-10",
        "freeze daily 08:00-25:00",
        "freeze daily 08:00-08:00",
        "freeze mon-fry 08:00-10:00",
        "freeze 2026-02-30 08:00-10:00",
        "freeze 2026-03-02..2026-03-01 08:00-10:00",
        "freeze daily 08:00-10:00 Europe/Zurich now",
        "least daily 08:00-10:00",
        "least clean daily 08:00-10:00",
        "least clean=0 daily 08:00-10:00",
    ],
)
def test_what_is_no_event_is_said_with_the_right_form(text):
    with pytest.raises(InputError, match=r"^event '.*': must be freeze\|least op=n"):
        parse_event(text)


def test_a_zone_and_an_operator_that_there_are_not():
    with pytest.raises(InputError, match="the zone must be one as Europe/Zurich; got 'Europe/Zürich'"):
        parse_event("freeze daily 08:00-10:00 Europe/Zürich")
    with pytest.raises(InputError, match="did you mean 'clean'"):
        parse_calendar("least claen=2 daily 08:00-10:00", {"clean": 4})
    with pytest.raises(InputError, match="operator 'clean' has a pool of 4; got 5"):
        parse_calendar("least clean=5 daily 08:00-10:00", {"clean": 4})


ZONES = ("UTC", "Europe/Zurich", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu")


@given(
    st.sampled_from(ZONES),
    st.integers(0, 23),
    st.integers(1, 23),
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),
)
def test_any_hours_are_those_that_the_clock_on_the_wall_shows(zone, first, length, when):
    end = (first + length) % 24
    event = parse_event(f"freeze daily {first:02}:00-{end:02}:00 {zone}")
    local = datetime.fromtimestamp(when.replace(tzinfo=ZoneInfo("UTC")).timestamp(), ZoneInfo(zone))
    assert event.is_on(local.timestamp()) == ((local.hour - first) % 24 < length)


def plan(events, wanted, active, time_s):
    seen = snapshot({"in": 1}, [load("clean", {"in": 1}, replicas=active)], time_s=time_s)
    return Calendar(Static(wanted), parse_calendar(events)).plan(seen)


def test_replicas_stay_or_are_enough_while_it_is_on():
    noon, night = at("2026-03-01T12:00Z"), at("2026-03-01T23:00Z")
    freeze, least = "freeze daily 11:00-13:00", "least clean=5 daily 11:00-13:00"
    assert plan(freeze, 7, 3, noon).replicas == {"clean": 3}
    assert plan(freeze, 7, 3, noon).targets["clean"].reason == "static; frozen by the calendar"
    assert plan(freeze, 7, 3, night).replicas == {"clean": 7}
    assert plan(least, 2, 3, noon).replicas == {"clean": 5}
    assert plan(least, 7, 3, noon).replicas == {"clean": 7}
    assert plan(f"{freeze}; {least}", 2, 3, noon).replicas == {"clean": 5}, "it is there to be ready"
    assert plan(least, 2, 3, noon).notes == ("calendar: least clean=5 daily 11:00-13:00",)


def test_hard_limits_stay_outermost():
    seen = snapshot({"in": 1}, [load("clean", {"in": 1}, pool=3)], time_s=at("2026-03-01T12:00Z"))
    policy = guarded(Static(1), calendar=parse_calendar("least clean=9 daily 00:00-24:00"))
    assert policy.plan(seen).replicas == {"clean": 3}


def test_the_simulator_keeps_to_it():
    begin = datetime(2026, 3, 2, 7, 59, tzinfo=ZoneInfo("UTC"))
    quiet = Scenario("dns", constant(10.0, duration_s=120.0)).changed(td_s=5.0)
    names = list(simulate(quiet, "psps").history.operators)
    ready = quiet.changed(calendar=f"least {names[0]}=4 mon 08:00-09:00", begins=begin.isoformat())
    plain, kept = simulate(quiet, "psps"), simulate(ready, "psps")
    assert kept.replica_seconds == pytest.approx(plain.replica_seconds + 3 * 60, rel=0.1)
    later = ready.changed(begins=(begin + timedelta(days=1)).isoformat())
    assert simulate(later, "psps").replica_seconds == pytest.approx(plain.replica_seconds)


def test_a_beginning_without_a_zone_is_refused():
    with pytest.raises(InputError, match=r"begins must be a time with its zone, as 2026-01-01T00:00\+01:00; got"):
        Scenario("dns").changed(begins="2026-01-01T00:00")
