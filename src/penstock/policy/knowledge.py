"""What the policy `learning` knows: for each operator and bin of input rates, how many replicas were right.

Written to a file as JSON and read from it again.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.errors import InputError

LEARNING_RATE = 0.5
EXPLORED = 50  # visits after which a bin is not explored any more
_RATES = (1e-3, 1e9)  # per second; what is outside counts as the nearer one, so that there are not endlessly many bins

Three = Annotated[list[float], Meta(min_length=3, max_length=3)]


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
