"""Learning: replicas by input rate, learnt by reinforcement."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from penstock.common.checks import flag, not_negative, share, whole
from penstock.errors import InputError
from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Target
from penstock.policy.knowledge import EXPLORED, Knowledge, Lesson, load_knowledge, save_knowledge
from penstock.policy.parts.busy import mean_busy_share, thresholds
from penstock.policy.parts.expected import distrusted, kept


@dataclass(eq=False, kw_only=True)
class Learning:
    """A knowledge base from input rates to replicas, for each operator, learnt by reinforcement.

        b = ⌊ln rate / ln step⌋       P = (B − high) / (1 − high) where B > high, (B − low) / low where B < low, else 0
        P_b(k) ← P_b(k) + 0.5 · (P − P_b(k))       Q_b(k) = −|P_b(k)|       k_b = best Q_b of k_b − 1, k_b and k_b + 1

    The reward of an interval is −|P|: replicas that are too busy (B is their mean busy share) or idle are paid for.
    Where a rate is seen for the first time, what was learnt of the nearest one counts; without that, nothing changes.
    Queues do not count, as in the paper: a backlog is seen by the busy share only, and a fall of the input takes
    replicas away from it.

    `train`: learn, and try one replica more or fewer with a probability that falls from `explore` to 0 in 50 visits
    of a bin, by `seed`. Without it the policy does what it knows. `knowledge`: a file that `save` wrote, to start from.

    >>> busy = OperatorLoad(name="clean", received_by={"in": 90}, processed=90, backlog=0, active=(0, 1), pool=8,
    ...                     busy_share={0: 1.0, 1: 1.0})
    >>> plan = Learning(explore=0).plan(Snapshot(time_s=1, interval_s=1, td_s=1, source_input={"in": 90},
    ...                                          operators={"clean": busy}))
    >>> plan.replicas, plan.targets["clean"].reason
    ({'clean': 3}, 'gets 90 events a second: 3 replicas, as learnt at such rates (lessons: 1)')

    Kotto-Kombi et al., "DABS-Storm", TLDKS 40, 2019, §7.2, who name Gedik et al., "Elastic scaling for data stream
    processing", TPDS 25(6), 2014, and Heinze et al., "Auto-scaling techniques for elastic data stream processing",
    DEBS 2014, whose reinforcement learning this follows: actions of one replica, and fewer are never less busy.
    """

    high: float = 0.8
    low: float = 0.5
    step: float = 1.25
    explore: float = 0.2
    seed: int = 0
    train: bool = True
    knowledge: str | Path | None = None

    def __post_init__(self) -> None:
        thresholds("learning", self.low, self.high)
        if not not_negative("policy 'learning'", "step", self.step) >= 1.01:
            raise InputError(f"policy 'learning': step must be at least 1.01; got {self.step!r}")
        if self.explore != 0 or isinstance(self.explore, bool):
            share("policy 'learning'", "explore", self.explore)
        whole("policy 'learning'", "seed", self.seed, least=0)
        flag("policy 'learning'", "train", self.train)
        self._known = Knowledge(step=float(self.step))
        if self.knowledge is not None:
            self.load(self.knowledge)

    def save(self, path: str | Path) -> None:
        """Write what was learnt to a file."""
        save_knowledge(self._known, path)

    def load(self, path: str | Path) -> None:
        """Take what a file has in place of what was learnt."""
        if not isinstance(path, str | Path):
            raise InputError(f"policy 'learning': knowledge must be the path of a file; got {path!r}")
        known = load_knowledge(path)
        if known.step != self.step:
            raise InputError(
                f"policy 'learning': step must be that of the knowledge '{path}', {known.step:g}; got {self.step:g}"
            )
        self._known = known

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:  # noqa: ARG002
        """A target for every operator, each looked at alone."""
        if not snapshot.interval_s > 0:
            return Plan({name: kept(load, "an interval without length") for name, load in snapshot.operators.items()})
        targets = {
            name: distrusted(load, snapshot) or self._target(load, load.received / snapshot.interval_s)
            for name, load in snapshot.operators.items()
        }
        return Plan(targets)

    def _target(self, load: OperatorLoad, rate: float) -> Target:
        bin_ = self._known.bin(rate)
        nearest = self._known.nearest(load.name, bin_)
        lesson = self._known.lesson(load.name, bin_)
        busy = mean_busy_share(load)
        if self.train and busy is not None:
            lesson = lesson or self._known.begin(load.name, bin_, nearest.replicas if nearest else load.replicas)
            lesson.learn(load.replicas, self._pressure(busy))
        said = f"gets {rate:.4g} events a second"
        if lesson is not None:
            return self._act(lesson, f"{load.name}/{bin_}", said)
        if nearest is not None:
            return Target(nearest.replicas, f"{said}, new to it: {nearest.replicas} replicas, as at the nearest rates")
        return kept(load, f"{said}, and nothing is learnt yet")

    def _act(self, lesson: Lesson, place: str, said: str) -> Target:
        best, visits = lesson.replicas, lesson.visits
        chance = self.explore * (1 - visits / EXPLORED) if self.train else 0.0
        if chance > 0:
            draw = random.Random(f"{self.seed}/{place}/{visits}")  # nothing to keep, and the same after pickling
            if draw.random() < chance:
                tried = best + draw.choice((-1, 1) if best > 1 else (1,))
                return Target(tried, f"{said}: tries {tried} replicas beside the {best} learnt")
        return Target(best, f"{said}: {best} replicas, as learnt at such rates (lessons: {visits})")

    def _pressure(self, busy: float) -> float:
        """How far the busy share is above `high` or, negative, below `low`; in −1..1."""
        if busy > self.high:
            return min(1.0, (busy - self.high) / (1 - self.high)) if self.high < 1 else 1.0
        return (busy - self.low) / self.low if busy < self.low else 0.0
