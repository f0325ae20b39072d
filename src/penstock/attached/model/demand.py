"""How many slots a query needs so that its rows are on time: the trigger, the target, and what batches cost."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.attached.model.cost import Cost
from penstock.common.checks import positive, share
from penstock.errors import InputError

STEADY = 1.25  # so many times as long as a batch usually takes lies between two, or they would fall behind
LEAST_ROOM = 0.2  # of the time for a batch, however much of it is fixed: more slots would not help
SHORTEST_S = 0.1


@dataclass(frozen=True, slots=True)
class Promise:
    """At most the share `late` of the rows takes longer than `target_s` from its arrival to the end of its batch.

    >>> Promise(10.0, 1.5)
    Traceback (most recent call last):
    penstock.errors.InputError: promise: late must be above 0 and at most 1; got 1.5
    """

    target_s: float
    late: float = 0.01

    def __post_init__(self) -> None:
        positive("promise", "target_s", self.target_s)
        share("promise", "late", self.late)


@dataclass(frozen=True, slots=True)
class Pace:
    """How a query's batches follow each other: every so many seconds, and how long one may take, now and then.

    A row waits for its batch to begin, up to a period, and then for its end. A batch that takes longer than a period
    makes the next one late, and larger; once in a while, that is made up for.
    """

    period_s: float
    at_worst_s: float  # the oldest row is just on time

    @property
    def within_s(self) -> float:
        """What a batch may take if the next is to begin in time, and its rows are to be on time."""
        return min(self.period_s, self.at_worst_s)

    @property
    def usual_s(self) -> float:
        """What slots are to make of a batch: it ends well before the next begins."""
        return min(self.period_s / STEADY, self.at_worst_s)

    @property
    def longest_s(self) -> float:
        """The oldest row's way, if batches keep to it."""
        return self.period_s + self.within_s


def pace_of(trigger_s: float, promise: Promise, query: str = "query") -> Pace:
    """With a trigger every P seconds: that, and target − P. Without one: half of the target each.

    A target up to P cannot be kept: a row waits so long for its batch.

    >>> pace_of(2.0, Promise(10.0)), pace_of(6.0, Promise(10.0)), pace_of(0.0, Promise(10.0))
    (Pace(period_s=2.0, at_worst_s=8.0), Pace(period_s=6.0, at_worst_s=4.0), Pace(period_s=5.0, at_worst_s=5.0))
    >>> pace_of(10.0, Promise(8.0), "query 'clicks'")
    Traceback (most recent call last):
    penstock.errors.InputError: query 'clicks': target_ms must be above its trigger's interval of 10000 ms; got 8000
    """
    if trigger_s <= 0:
        return Pace(promise.target_s / 2, promise.target_s / 2)
    if promise.target_s <= trigger_s:
        rule = f"target_ms must be above its trigger's interval of {1000 * trigger_s:g} ms"
        raise InputError(f"{query}: {rule}; got {1000 * promise.target_s:g}")
    return Pace(trigger_s, promise.target_s - trigger_s)


def row_time_s(cost: Cost, pace: Pace, rate: float) -> float:
    """Slot-seconds that a row takes up: its own, its part of the batch's, and of the time in which slots stand idle.

        r ≥ spread · (by_batch + by_row · n) / room      n = rate · period
        room = min(period / 1.25, at worst / surprise) − fixed

    So et = spread · (by_row + by_batch / n) · period / room, and r = ⌈rate · et⌉ as everywhere.

    >>> cost = Cost(by_row_s=0.01, by_batch_s=0.2, fixed_s=0.4)
    >>> et_s = row_time_s(cost, Pace(2.5, 7.5), rate=100.0)
    >>> round(et_s, 5), round(100.0 * et_s, 3), round(cost.seconds(250.0, 100.0 * et_s), 3)
    (0.01688, 1.688, 2.0)
    """
    rows = max(rate * pace.period_s, 1.0)
    return cost.spread * cost.work_s(rows) / rows * pace.period_s / room_s(cost, pace)


def cost_at_pace(time_s: float, pace: Pace) -> Cost:
    """The cost of rows that take up `time_s` each at this pace, where it is not known what of it is fixed.

    100 rows a second that take up 0.03 slots each need 3, and on these a batch takes what it usually should:

    >>> round(cost_at_pace(0.03, Pace(6.0, 4.0)).seconds(rows=600, slots=3), 6)
    4.0
    """
    return Cost(by_row_s=time_s * pace.usual_s / pace.period_s, by_batch_s=0.0, fixed_s=0.0)


def room_s(cost: Cost, pace: Pace) -> float:
    """The time of a batch that slots can do something about, at least a fifth of it.

    One that takes surprisingly long still has its rows on time.
    """
    may_take_s = min(pace.usual_s, pace.at_worst_s / cost.surprise)
    return max(may_take_s - cost.fixed_s, LEAST_ROOM * pace.within_s, LEAST_ROOM * SHORTEST_S)


def out_of_reach(cost: Cost, pace: Pace) -> str | None:
    """Why no number of slots keeps the promise; None if one does.

    >>> out_of_reach(Cost(by_row_s=0.01, by_batch_s=0.0, fixed_s=5.0), Pace(5.0, 5.0))
    'a batch takes 5 s whatever the slots, and may take 5 s: use a longer target or a cheaper query'
    """
    if cost.fixed_s < (1 - LEAST_ROOM) * pace.within_s:
        return None
    told = f"a batch takes {cost.fixed_s:.3g} s whatever the slots, and may take {pace.within_s:.3g} s"
    return f"{told}: use a longer target or a cheaper query"
