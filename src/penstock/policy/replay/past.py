"""The past of one run: what came lately, the rules it is played under, and what they make of it."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.metrics.snapshot import Snapshot
from penstock.policy.replay.replay import MEMORY_S, Copy, Replay, Verdict
from penstock.policy.replay.rules import LatelySeen, Rules

PLAYED_S = 0.9  # at least so much is played at once, however often the loop acts
_MADE = 80  # steps of a made load, with (first step, steps, times the rate) for each burst
_BURSTS = ((10, 4, 1.5), (30, 3, 2.0), (55, 3, 3.0))
_WEIGHT = 0.2  # of what is made beside what comes


class Past:
    """Plays what comes, and says what the best rule so far is ready for.

    What came before is played first, as if it had been seen. Where that is not known it is a made load with bursts, at
    the first rate, so that it begins carefully; beside what comes it soon counts for little.
    """

    def __init__(self, step_s: float, late: float, target_s: float, before: Sequence[float] = ()) -> None:
        self.step_s = step_s
        self.late = late
        self.target_s = target_s
        self.verdict: Verdict | None = None  # None until something has come
        self._before = before  # rates, step by step
        self._rules = Rules(step_s)
        self._seen = LatelySeen(step_s)
        self._replay = Replay(len(self._rules))
        self._gathered = (0.0, 0.0)  # events and seconds that are not played yet
        self._played_s = 0.0

    def learn(self, snapshot: Snapshot, copy: Copy) -> None:
        """Play what came, once that is about a second of it; nothing of numbers that are not to be trusted."""
        if snapshot.incomplete or not snapshot.interval_s > 0:
            self._gathered = (0.0, 0.0)
            return
        events, seconds = self._gathered
        self._gathered = events, seconds = events + snapshot.entered, seconds + snapshot.interval_s
        if seconds < PLAYED_S or (self.verdict is None and not events):
            return
        self._gathered = (0.0, 0.0)
        self._play(snapshot.time_s, events / seconds, seconds, copy)
        self.verdict = self._replay.choose(self.late)

    def ready_for(self, time_s: float, rate: float) -> float:
        """Events per second, where `rate` is the last: never less than that."""
        if self.verdict is None:
            return rate
        return float(self._rules.sizes(self._seen, time_s, rate)[self.verdict.rule])

    def _play(self, time_s: float, rate: float, length_s: float, copy: Copy) -> None:
        if self.verdict is None:
            self._begin(time_s - length_s, rate, copy)
        else:
            self._replay.play(rate, length_s, copy.slack_s(self.target_s), copy.pulled)
            self._played_s = min(MEMORY_S, self._played_s + length_s)
        self._seen.add(time_s, rate)
        self._replay.decide(copy, self._rules.sizes(self._seen, time_s, rate), self.step_s)

    def _begin(self, time_s: float, rate: float, copy: Copy) -> None:
        """Play what came until then, or else a made load."""
        before, weight = (self._before, 1.0) if self._before else (made(rate, _MADE, _BURSTS), _WEIGHT)
        for number, one in enumerate(before):
            now_s = time_s - (len(before) - 1 - number) * self.step_s
            if number:
                self._replay.play(one, self.step_s, copy.slack_s(self.target_s), copy.pulled)
            self._seen.add(now_s, one)
            self._replay.decide(copy, self._rules.sizes(self._seen, now_s, one), self.step_s)
        self._replay.begin_anew(weight)
        self._played_s = min(MEMORY_S, len(self._before) * self.step_s)

    def why(self) -> str:
        """The rule in use and why it is, for the reason of a plan.

        >>> Past(1.0, 0.01, 2.0).why()
        'ready for the last rate, as nothing has come yet'
        """
        one = self.verdict
        if one is None:
            return "ready for the last rate, as nothing has come yet"
        rule, over = self._rules.text(one.rule), self._over()
        if not one.kept:
            kept = f"no rule keeps {self.late:.2g} late {over}, this one had {percent(one.late)}"
            return f"ready for {rule}, within what the largest rate so far needs: {kept}"
        if one.rule == 0:
            return f"ready for {rule}, as `psps` is: {percent(one.late)} late with that {over}"
        beside = f"psps would have cost {percent(one.first_saves)} less and been late with {percent(one.first_late)}"
        return f"ready for {rule}: the cheapest rule that was on time {over}; {beside}"

    def _over(self) -> str:
        """How long it looks back, in words."""
        if self._played_s >= 0.99 * MEMORY_S:
            return "over the last hour"
        minutes = self._played_s / 60
        length = f"{minutes:.0f} min" if minutes >= 2 else f"{self._played_s:.0f} s"
        return f"over the last {length}{' and in made bursts' if minutes < 30 and not self._before else ''}"


def made(rate: float, steps: int, bursts: Sequence[tuple[int, int, float]]) -> list[float]:
    """Rates, step by step, with (first step, steps, times the rate) for each burst.

    >>> made(10.0, 5, [(1, 2, 3.0)])
    [10.0, 30.0, 30.0, 10.0, 10.0]
    """
    found = [rate] * steps
    for first, length, times in bursts:
        found[first : first + length] = [times * rate] * length
    return found


def percent(part: float) -> str:
    """A share in words.

    >>> percent(0.1234), percent(0.0312), percent(0.00049)
    ('12 %', '3.1 %', '0.049 %')
    """
    shown = 100 * part
    return f"{shown:.0f} %" if shown >= 10 else f"{shown:.1f} %" if shown >= 1 else f"{shown:.2g} %"
