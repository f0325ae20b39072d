"""Workers take a while to join: what came, played under rules for how many to have by then."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from penstock.policy.base import Supply
from penstock.policy.replay.past import made, percent
from penstock.policy.replay.replay import Copy, late_share
from penstock.policy.replay.rules import FAR_S, Array, LatelySeen

STEP_S = 5.0  # over which rates are taken, or the interval where that is longer
MEMORY_S = 4 * 3600.0
_LONGEST_S = 4 * 3600.0  # the longest that a rule looks back
_MOST = 1.25  # times the largest rate of that time is enough
_WINDOWS_S = np.array([30.0, 60.0, 120.0, 300.0, 900.0, FAR_S, 3600.0])
_MEAN_S = 60.0
_HEADROOMS = (1.0, 0.7, 0.85, 1.15, 1.35, 1.6, 2.0, 2.5, 3.5)
_FLOORS = ((0.0, 0.0), (0.5, 0.0), (0.75, 0.0), (0.0, 0.75), (0.0, 1.0))  # of half an hour, of four hours
_LATE_IS_FREE = 0.2  # of the promise
_NEARLY = 1.02
_SEEN = 0.0005  # a smaller difference is none, in words
_LEAVES_LAST = 1  # worker that is not wanted stays: the next jump may need it, and so may the loss of another
_WORK_OFF_S = 10.0  # what waits, at least so slowly
_MADE = 80  # steps of a made load, with (first step, steps, times the rate) for each burst
_BURSTS = ((10, 6, 2.0), (34, 6, 2.0), (58, 6, 2.0))  # what came once may come again
_WEIGHT = 0.1  # of what is made beside what comes


class WorkerRules:
    """All combinations of a headroom, a base and a floor, in arrays.

        size = min(max(h · base, φ · the largest rate of half an hour or of four), 1.25 · the largest of four hours)

    Bases are the last rate, the mean of a minute, and the largest rate of 30 s to an hour.

    >>> rules = WorkerRules()
    >>> len(rules), rules.text(0), rules.text(251)
    (405, 'the last rate', '1.6 × the largest rate of 300 s, at least 0.5 of the largest of half an hour')
    """

    def __init__(self) -> None:
        bases = 2 + len(_WINDOWS_S)
        headroom, base, floor = np.meshgrid(_HEADROOMS, np.arange(bases), np.arange(len(_FLOORS)), indexing="ij")
        self._headroom, self._base, self._floor = headroom.ravel(), base.ravel(), floor.ravel()
        self._near, self._far = np.array(_FLOORS)[self._floor].T

    def __len__(self) -> int:
        return len(self._headroom)

    def sizes(self, seen: LatelySeen, time_s: float, rate: float) -> Array:
        """What each rule wants to be ready for, in events per second, where `rate` is the last."""
        largest = np.maximum(seen.largest(time_s, np.append(_WINDOWS_S, _LONGEST_S)), rate)
        bases = np.concatenate(([rate, seen.mean(time_s, _MEAN_S)], largest[:-1]))
        floor = np.maximum(self._near * largest[-3], self._far * largest[-1])
        sizes: Array = np.minimum(np.maximum(self._headroom * bases[self._base], floor), _MOST * largest[-1])
        return sizes

    def text(self, rule: int) -> str:
        """A rule in words."""
        headroom, base, (near, far) = self._headroom[rule], int(self._base[rule]), _FLOORS[self._floor[rule]]
        what = ("the last rate", "the mean of a minute")[base] if base < 2 else _largest(_WINDOWS_S[base - 2])
        times = what if headroom == 1.0 else f"{headroom:g} × {what}"
        floor = f"{near:g} of the largest of half an hour" if near else f"{far:g} of the largest of four hours"
        return f"{times}, at least {floor}" if near or far else times


def _largest(window_s: float) -> str:
    return f"the largest rate of {window_s:.0f} s"


class WorkersPast:
    """Plays what came under every rule, each with workers and a queue of its own, and says how many slots to have.

    A rule wants W_t workers at a time. It asks for more at once, and lets go of what was not wanted for as long as a
    worker takes to join, J, but not of what is needed now; what was asked for is there after J:

        asked_t = max(W_s, t − J < s ≤ t)        there_t = min(asked_s, t − J ≤ s ≤ t)

    Workers are paid for from when they are asked for. The rule with the least cost · (1 + max(0, late / promise − 0.2))
    is used, and stays in use while it is within 2 % of the least. Where no rule keeps the promise, it gets no more
    than the largest rate so far needs, and what waits on top of that.

    No rule foresees the first jump of a load that was even so far. So whatever the rule, the slots that are to be spare
    are kept free beyond what the last rate needs, as beside other policies, and the last worker that is not wanted
    stays. That is little beside many workers, and beside few it is what meets the jump while others join.
    """

    def __init__(self, step_s: float, late: float, target_s: float, before: Sequence[float] = ()) -> None:
        self.step_s = step_s
        self.late = late
        self.target_s = target_s
        self.rule = 0
        self._before = before  # rates that came before, step by step
        self._rules = WorkerRules()
        self._seen = LatelySeen(step_s, _LONGEST_S)
        count = len(self._rules)
        self._wanted, self._asked = np.zeros((count, 0)), np.zeros((count, 0))  # workers by rule, the newest step last
        self._queued, self._late, self._cost = np.zeros(count), np.zeros(count), np.zeros(count)
        self._events = 0.0
        self._gathered = (0.0, 0.0)
        self._begun = False
        self._peak = 0.0  # the largest rate so far
        self._beside = 0  # the rule that the one in use is told beside

    def learn(self, time_s: float, events: float, length_s: float, copy: Copy, supply: Supply) -> None:
        """Play what came in an interval that ends now, once it makes a step."""
        events, seconds = self._gathered[0] + events, self._gathered[1] + length_s
        self._gathered = events, seconds
        if seconds < 0.9 * self.step_s or (not self._begun and not events):
            return
        self._gathered = (0.0, 0.0)
        rate = events / seconds
        if not self._begun:
            self._begin(time_s - seconds, rate, copy, supply)
            self._begun = True
        else:
            self._play(rate, seconds, copy, supply)
        self._peak = max(self._peak, rate)
        self._seen.add(time_s, rate)
        self._decide(self._rules.sizes(self._seen, time_s, rate), rate, copy, supply)
        self._choose()

    def slots(self, time_s: float, rate: float, waiting: float, copy: Copy, supply: Supply) -> tuple[int, str]:
        """How many slots there should be when a worker that is asked for now has joined, and why.

        `rate` is the last, and `waiting` the source events that wait now.
        """
        size = float(self._rules.sizes(self._seen, time_s, rate)[self.rule]) if self._begun else rate
        waits = waiting / max(_WORK_OFF_S, supply.joining_s)
        wanted = waits + (size if self._kept else min(size, max(rate, self._peak)))
        (ready, needed), _ = copy.sized(np.array([wanted, waits + rate]))
        slots = supply.seats + int(max(ready, needed + supply.spare))
        kept = supply.slots * min(supply.workers, math.ceil(slots / supply.slots) + _LEAVES_LAST)
        when = f"{supply.joining_s:.3g} s from now, when a worker that is asked for has joined"
        spare = f", and {supply.spare} slots beyond the last rate" if needed + supply.spare > ready else ""
        text = f"{self._rules.text(self.rule)}{spare}{self._why()}"
        return max(slots, kept), f"to be ready, {when}, for {text}"

    @property
    def _shares(self) -> Array:
        """The share of events that would have been late, by rule."""
        shares: Array = self._late / self._events if self._events > 0 else self._late
        return shares

    @property
    def _kept(self) -> bool:
        """Whether any rule keeps the promise."""
        return bool(self._shares.min() <= self.late)

    def _why(self) -> str:
        """What the rule in use came to, and beside it what `psps` does, or the next best where that is in use."""
        cost, late = self._cost[self.rule], self._shares
        if not self._begun or not cost > 0:
            return ""
        within = "" if self._kept else ", within what the largest rate so far needs"
        other, more = self._beside, float(self._cost[self._beside] / cost - 1)
        name = "the last rate, as `psps` has it," if other == 0 else self._rules.text(other)
        cost_more = f"{percent(abs(more))} {'more' if more > 0 else 'less'}" if abs(more) >= _SEEN else "as much"
        own = f"it would have been late with {percent(float(late[self.rule]))}"
        return f"{within}: {own}; {name} would have cost {cost_more} and been late with {percent(float(late[other]))}"

    def _play(self, rate: float, length_s: float, copy: Copy, supply: Supply) -> None:
        fade = math.exp(-length_s / MEMORY_S)
        there = self._asked.min(axis=1)
        capacity = _capacity(there, copy, supply)
        late = late_share(self._queued, capacity, rate, length_s, copy.slack_s(self.target_s))
        self._late = fade * self._late + late * rate * length_s
        self._cost = fade * self._cost + self._asked[:, -1] * length_s
        self._events = fade * self._events + rate * length_s
        self._queued = np.maximum(0.0, self._queued + (rate - capacity) * length_s)

    def _decide(self, sizes: Array, rate: float, copy: Copy, supply: Supply) -> None:
        waits = self._queued / max(_WORK_OFF_S, supply.joining_s)
        ready, needed = (copy.sized(one + waits)[0] for one in (sizes, np.full_like(sizes, rate)))
        wanted = _workers(np.maximum(ready, needed + supply.spare), supply)
        self._wanted = _appended(self._wanted, wanted, supply.joining_s / self.step_s)
        most = self._wanted.max(axis=1)
        before = self._asked[:, -1] if self._asked.size else most
        asked = np.maximum(most, np.minimum(before, np.maximum(most + _LEAVES_LAST, _workers(needed, supply))))
        self._asked = _appended(self._asked, asked, 1 + supply.joining_s / self.step_s)

    def _choose(self) -> None:
        score = self._cost * (1 + np.maximum(0.0, self._shares / self.late - _LATE_IS_FREE))
        best = int(score.argmin())
        if not score[self.rule] <= _NEARLY * score[best]:
            self.rule = best
        self._beside = 0 if self.rule else 1 + int(score[1:].argmin())

    def _begin(self, time_s: float, rate: float, copy: Copy, supply: Supply) -> None:
        """Play what came until then, or else a made load with bursts, which counts for little and is not remembered."""
        before, weight, seen = self._before, 1.0, self._seen
        if not before:
            before, weight, seen = made(rate, _MADE, _BURSTS), _WEIGHT, LatelySeen(self.step_s, _LONGEST_S)
        for number, one in enumerate(before):
            now_s = time_s - (len(before) - 1 - number) * self.step_s
            if number:
                self._play(one, self.step_s, copy, supply)
            seen.add(now_s, one)
            self._decide(self._rules.sizes(seen, now_s, one), one, copy, supply)
        self._queued = np.zeros_like(self._queued)
        self._late, self._cost, self._events = weight * self._late, weight * self._cost, weight * self._events
        self._peak = max(self._before, default=0.0)


def _workers(replicas: Array, supply: Supply) -> Array:
    """Workers for so many replicas, and for the seats that are taken otherwise."""
    workers: Array = np.ceil((replicas + supply.seats) / supply.slots)
    return np.minimum(workers, supply.most) if supply.most is not None else workers


def _capacity(workers: Array, copy: Copy, supply: Supply) -> Array:
    """Events per second that so many workers can do, if every operator loses half a replica to rounding.

    >>> copy = Copy(np.array([0.01, 0.02]), np.array([8.0, 8.0]), np.zeros(2), 0.03)
    >>> _capacity(np.array([1.0, 2.0]), copy, Supply(slots=4, joining_s=12.0, seats=1)).round(1).tolist()
    [66.7, 200.0]
    """
    replicas = np.maximum(workers * supply.slots - supply.seats, 1.0)
    capacity: Array = np.maximum(replicas - len(copy.work_s) / 2, replicas / 2) / copy.work_s.sum()
    return capacity


def _appended(steps: Array, newest: Array, length: float) -> Array:
    """The last so many steps, the newest among them; earlier ones, if there are none, as the first."""
    count = max(1, math.ceil(length))
    if not steps.size:
        return np.repeat(newest[:, np.newaxis], count, axis=1)
    longer = np.concatenate((np.repeat(steps[:, :1], max(0, count - steps.shape[1]), axis=1), steps), axis=1)
    return np.concatenate((longer[:, longer.shape[1] - count + 1 :], newest[:, np.newaxis]), axis=1)
