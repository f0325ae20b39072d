"""Learning: replicas by input rate, learnt by reinforcement."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.common.checks import at_least, flag, share, whole
from penstock.errors import InputError
from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Target
from penstock.policy.parts.busy import mean_busy_share, thresholds
from penstock.policy.parts.expected import distrusted, kept

LEARNING_RATE = 0.5
EXPLORED = 50  # visits after which a bin is not explored any more
_RATES = (1e-3, 1e9)  # per second; what is outside counts as the nearer one, so that there are not endlessly many bins

Three = Annotated[list[float], Meta(min_length=3, max_length=3)]


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
        if not at_least("policy 'learning'", "step", self.step) >= 1.01:
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


class Lesson(msgspec.Struct, forbid_unknown_fields=True):
    """One bin of rates: the replicas that are best so far, and the pressure of one fewer, as many and one more.

    The pressure of a number of replicas is a mean that fades: above 0 where they were too busy, below 0 where they
    were idle, 0 where they were neither. The worth of a number is −|pressure|, and the best is taken; of equal ones
    that which the pressure points to. Fewer replicas are never less busy, so an overload says it of fewer too, and
    idleness of more.

    >>> lesson = Lesson(2)
    >>> lesson.learn(2, 1.0)  # two are far too busy, and three are not known
    >>> lesson
    Lesson(replicas=3, pressures=[0.5, 0.0, 0.0], visits=1)
    """

    replicas: Annotated[int, Meta(ge=1)]
    pressures: Three = msgspec.field(default_factory=lambda: [0.0, 0.0, 0.0])
    visits: Annotated[int, Meta(ge=0)] = 0

    def learn(self, replicas: int, pressure: float) -> None:
        """Take in how an interval at such a rate went with this many replicas.

        What was seen further than one replica away counts only where it shows that the best so far is wrong.
        """
        if (replicas > self.replicas + 1 and pressure > 0) or (replicas < self.replicas - 1 and pressure < 0):
            self.replicas, self.pressures = replicas, [0.0, 0.0, 0.0]
        place = replicas - self.replicas + 1
        if not 0 <= place <= 2:
            return
        self.visits = min(EXPLORED, self.visits + 1)
        mean = self.pressures[place] + LEARNING_RATE * (pressure - self.pressures[place])
        fewer = [max(one, mean) for one in self.pressures[:place]]
        more = [min(one, mean) for one in self.pressures[place + 1 :]]
        self.pressures = [*fewer, mean, *more]
        self._settle()

    def _settle(self) -> None:
        """Put the best number in the middle; beyond the known ones, hope for no pressure where that can be."""
        low, middle, high = self.pressures
        order = (1, 0, -1) if middle > 0 else (-1, 0, 1) if middle < 0 else (0, 1, -1)  # of equal ones, the first
        possible = [step for step in order if self.replicas + step >= 1]
        best = max(possible, key=lambda step: -abs(self.pressures[step + 1]))
        if best > 0:
            self.pressures = [middle, high, min(0.0, high)]
        elif best < 0:
            self.pressures = [max(0.0, low), low, middle]
        self.replicas += best


class Knowledge(msgspec.Struct, forbid_unknown_fields=True):
    """Lessons by operator and bin. A bin holds the rates from step^b to step^(b+1) events a second.

    >>> knowledge = Knowledge(step=2.0)
    >>> knowledge.bin(100.0), knowledge.bin(127.0), knowledge.bin(128.0), knowledge.bin(0.0)
    (6, 6, 7, -10)
    """

    step: Annotated[float, Meta(ge=1.01)]
    operators: dict[str, dict[int, Lesson]] = {}

    def bin(self, rate: float) -> int:
        """The bin of a rate per second."""
        least, most = _RATES
        return math.floor(math.log(min(max(rate, least), most)) / math.log(self.step) + 1e-9)

    def lesson(self, operator: str, bin_: int) -> Lesson | None:
        """What is known of a bin, if anything."""
        return self.operators.get(operator, {}).get(bin_)

    def nearest(self, operator: str, bin_: int) -> Lesson | None:
        """What is known of the nearest bin, the higher of two."""
        known = self.operators.get(operator)
        return known[min(known, key=lambda one: (abs(one - bin_), -one))] if known else None

    def begin(self, operator: str, bin_: int, replicas: int) -> Lesson:
        """A first lesson of a bin."""
        return self.operators.setdefault(operator, {}).setdefault(bin_, Lesson(replicas))


def save_knowledge(knowledge: Knowledge, path: str | Path) -> None:
    """Write to a file, in order of names and bins."""
    ordered = {name: dict(sorted(bins.items())) for name, bins in sorted(knowledge.operators.items())}
    text = msgspec.json.encode(Knowledge(knowledge.step, ordered))
    Path(path).write_bytes(msgspec.json.format(text, indent=1))


def load_knowledge(path: str | Path) -> Knowledge:
    """Read what `save_knowledge` wrote; an InputError where there is none, or where it is something else."""
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=Knowledge)
    except OSError as error:
        raise InputError(
            f"policy 'learning': knowledge must be a file to read; got '{path}' ({error.strerror})"
        ) from None
    except msgspec.DecodeError as error:
        raise InputError(f"policy 'learning': knowledge must be what `save` wrote; got '{path}' ({error})") from None
