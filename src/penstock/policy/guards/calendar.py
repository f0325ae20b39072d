"""Known events ahead: times at which nothing changes, or operators have at least so many replicas."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from penstock.common.names import one_of
from penstock.errors import InputError
from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Policy, Target

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
UTC = "UTC"
ALL_DAY = "00:00-24:00"
FORM = "freeze|least op=n,… daily|mon-fri|sat,sun|2026-12-24[..2026-12-26] HH:MM-HH:MM [Area/City]"
_CLOCK = re.compile(r"(\d\d):(\d\d)-(\d\d):(\d\d)")
_DATES = re.compile(r"(\d{4}-\d\d-\d\d)(?:\.\.(\d{4}-\d\d-\d\d))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A time of day on some days, by the clocks of a place; from its first minute on, and not at its last.

    One that ends before it begins goes on past midnight, and is of the day on which it begins.

    >>> lunch = parse_event("least clean=4 mon-fri 11:30-13:00 Europe/Zurich")
    >>> lunch.is_on(datetime.fromisoformat("2026-07-01T10:00+00:00").timestamp())  # a Wednesday, noon in Zurich
    True
    """

    said: str
    zone: ZoneInfo
    start: time
    end: time
    days: frozenset[int] = frozenset()  # of the week, from Monday on
    first: date | None = None  # or from one date to another
    last: date | None = None
    freeze: bool = False
    least: Mapping[str, int] = field(default_factory=dict)  # replicas, by operator

    def is_on(self, time_s: float) -> bool:
        """Whether it is that time, in seconds since 1970."""
        now = datetime.fromtimestamp(time_s, self.zone)
        today, clock = now.date(), now.time()
        if self.start < self.end:
            return self._is_day(today) and self.start <= clock < self.end
        begun = self._is_day(today) and clock >= self.start
        return begun or (self._is_day(today - timedelta(days=1)) and clock < self.end)

    def _is_day(self, day: date) -> bool:
        if self.first is not None and self.last is not None:
            return self.first <= day <= self.last
        return day.weekday() in self.days


def parse_event(text: str) -> Event:
    """An event from its text.

    >>> parse_event("freeze sat,sun 22:00-06:00").freeze
    True
    >>> parse_event("freeze weekends 22:00-06:00")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    penstock.errors.InputError: event 'freeze weekends 22:00-06:00': must be freeze|least op=n,… ...; got 'weekends'
    """
    words = text.split()
    kind = words.pop(0) if words else ""
    if kind not in ("freeze", "least"):
        raise _wrong(text, kind)
    least = _least(text, words.pop(0)) if kind == "least" and words else {}
    if not 2 <= len(words) <= 3 or (kind == "least" and not least):
        raise _wrong(text, " ".join(words))
    days, first, last = _days(text, words[0])
    start, end = _clock(text, words[1])
    zone = _zone(text, words[2] if len(words) == 3 else UTC)
    freeze = kind == "freeze"
    return Event(
        said=text, zone=zone, start=start, end=end, days=days, first=first, last=last, freeze=freeze, least=least
    )


def parse_calendar(text: str | None, pools: Mapping[str, int] | None = None) -> tuple[Event, ...]:
    """Events from their texts, with semicolons between them; with pools, operators are looked for there.

    >>> [one.freeze for one in parse_calendar("freeze daily 22:00-06:00; least clean=4 2026-12-24 00:00-24:00")]
    [True, False]
    """
    events = tuple(parse_event(one) for one in (text or "").split(";") if one.strip())
    if pools is not None:
        check_events(events, pools)
    return events


class Calendar:
    """Keeps to events: while one freezes, replicas stay as they are; while one asks for it, they are at least so many.

    `offset_s` is when the snapshots' time is 0, in seconds since 1970: a run's clock has that already.
    """

    def __init__(self, policy: Policy, events: Sequence[Event], *, offset_s: float = 0.0) -> None:
        self.policy = policy
        self.events = tuple(events)
        self.offset_s = offset_s

    def __repr__(self) -> str:
        return f"Calendar({self.policy!r}, {[one.said for one in self.events]!r})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """The wrapped policy's plan, as far as the calendar lets it."""
        plan = self.policy.plan(snapshot, forecast)
        now = [one for one in self.events if one.is_on(snapshot.time_s + self.offset_s)]
        if not now:
            return plan
        targets = {name: _kept(target, snapshot.operators[name], now) for name, target in plan.targets.items()}
        return replace(plan, targets=targets, notes=(*plan.notes, *(f"calendar: {one.said}" for one in now)))


def _kept(target: Target, load: OperatorLoad, now: Sequence[Event]) -> Target:
    """What is asked for at least goes before a freeze: it is there to be ready."""
    least = max((one.least.get(load.name, 0) for one in now), default=0)
    frozen = any(one.freeze for one in now)
    wanted = load.replicas if frozen else target.replicas
    if max(wanted, least) == target.replicas:
        return target
    why = f"at least {least} by the calendar" if least > wanted else "frozen by the calendar"
    return target.limited(max(wanted, least), why)


def check_events(events: Sequence[Event], pools: Mapping[str, int]) -> None:
    """An InputError where an event names an operator that there is not, or more replicas than its pool has."""
    for event in events:
        for name, count in event.least.items():
            pool = pools[one_of(f"event {event.said!r}, operator", name, pools)]
            if count > pool:
                raise InputError(f"event {event.said!r}: operator {name!r} has a pool of {pool}; got {count}")


def _least(text: str, word: str) -> dict[str, int]:
    pairs = [part.partition("=") for part in word.split(",")]
    if not all(name and count.isdecimal() and int(count) >= 1 for name, _, count in pairs):
        raise _wrong(text, word)
    return {name: int(count) for name, _, count in pairs}


def _days(text: str, word: str) -> tuple[frozenset[int], date | None, date | None]:
    if found := _DATES.fullmatch(word):
        try:
            first, last = (date.fromisoformat(one) for one in (found[1], found[2] or found[1]))
        except ValueError:
            raise _wrong(text, word) from None
        if first > last:
            raise _wrong(text, word)
        return frozenset(), first, last
    if word == "daily":
        return frozenset(range(7)), None, None
    days: set[int] = set()
    for part in word.lower().split(","):
        first_day, _, last_day = part.partition("-")
        if first_day not in DAYS or (last_day and last_day not in DAYS):
            raise _wrong(text, word)
        begin, end = DAYS.index(first_day), DAYS.index(last_day or first_day)
        days |= {(begin + step) % 7 for step in range((end - begin) % 7 + 1)}
    return frozenset(days), None, None


def _clock(text: str, word: str) -> tuple[time, time]:
    """From and to; 24:00 is the midnight at the end of the day."""
    found = _CLOCK.fullmatch(word.replace("-24:00", "-00:00"))
    if found is None:
        raise _wrong(text, word)
    try:
        start, end = time(int(found[1]), int(found[2])), time(int(found[3]), int(found[4]))
    except ValueError:
        raise _wrong(text, word) from None
    if start == end and word != ALL_DAY:
        raise _wrong(text, word)
    return start, end


def _zone(text: str, word: str) -> ZoneInfo:
    try:
        return ZoneInfo(word)
    except (KeyError, ValueError, OSError):
        raise InputError(f"event {text!r}: the zone must be one as Europe/Zurich; got {word!r}") from None


def _wrong(text: str, word: str) -> InputError:
    return InputError(f"event {text!r}: must be {FORM}; got {word!r}")
