"""What a keeper is told, and what it needs of a session and its queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.attached.model.demand import Promise
from penstock.attached.model.monitor import Watched
from penstock.attached.model.need import Bounds
from penstock.common.checks import at_least, choice
from penstock.control.loop import check_td
from penstock.errors import InputError
from penstock.forecast.registry import check_for_loop
from penstock.infra.executor_workers import ExecutorPort
from penstock.policy.base import Policy
from penstock.policy.guards.calendar import parse_calendar
from penstock.policy.registry import POLICIES
from penstock.workload import DAY_S

DEFAULT_POLICY = "psps"  # of whoever attaches and names none
DEFAULT_FORECASTER = "auto"
MODES = ("act", "advise")
SHORTEST_TD_S, LONGEST_TD_S = 5.0, 60.0
QUEUED = 0.2  # of the target a row may wait beyond its batch, which takes the rest: policies know queues, not batches
NEEDED = {  # by executors that leave: what they run ends first, and what they keep for others moves
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.enabled": "true",
    "spark.storage.decommission.rddBlocks.enabled": "true",
    "spark.storage.decommission.shuffleBlocks.enabled": "true",
}


class Application(Protocol):
    """What is needed of a session; see `penstock.attached.spark_session`."""

    @property
    def id(self) -> str:
        """Spark's name for it."""

    @property
    def executors(self) -> ExecutorPort | None:
        """Where executors are asked for; None if they are only looked at."""

    @property
    def slots_each(self) -> int:
        """Tasks that one executor runs at once."""

    def slots(self) -> int:
        """Those that tasks can run on now."""

    def ids(self) -> Sequence[str]:
        """The executors that are there, by Spark's names."""

    def count(self) -> int:
        """How many there are."""

    def idle_first(self, executors: Sequence[str]) -> list[str]:
        """Executors in the order in which they may leave."""

    def ended(self) -> str | None:
        """Why there is no session any more, if so."""


class NamedQuery(Watched, Protocol):
    """A query, as it is attached to."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def trigger_s(self) -> float:
        """The interval of its trigger; 0 for none."""

    @property
    def restarts(self) -> int:
        """How often it was found under a new run id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperOptions:
    """How a keeper works: `attach` has the words for it."""

    bounds: Bounds
    promise: Promise
    mode: str = "act"
    policy: str | Policy = DEFAULT_POLICY
    forecaster: str | None = DEFAULT_FORECASTER
    td_s: float = SHORTEST_TD_S
    cooldown_s: float = 30.0
    day_s: float = DAY_S
    calendar: str | None = None  # events whose numbers are slots, by query

    def __post_init__(self) -> None:
        choice("attach", "mode", self.mode, MODES)
        check_td(self.td_s)
        at_least("attach", "cooldown_s", self.cooldown_s)
        if self.forecaster is not None:
            check_for_loop(self.forecaster)
        self.made_policy()
        parse_calendar(self.calendar)

    @property
    def acting(self) -> bool:
        """Whether executors are changed."""
        return self.mode == "act"

    def made_policy(self) -> Policy:
        """A policy of that name; one that can is told the promise, and goes by the forecast."""
        if not isinstance(self.policy, str):
            return self.policy
        if self.policy.partition(":")[0] in ("oracle", "static"):
            raise InputError(f"attach: policy must be one that follows the load; got {self.policy!r}")
        told = {"late": self.promise.late, "target_ms": 1000 * QUEUED * self.promise.target_s}
        return POLICIES.make(self.policy, {**told, "use_forecast": self.forecaster is not None})


def usual_td_s(triggers_s: Sequence[float]) -> float:
    """The interval of the loop where none is given: the longest trigger's, from 5 s to a minute.

    >>> usual_td_s([0.0, 2.0]), usual_td_s([10.0]), usual_td_s([300.0])
    (5.0, 10.0, 60.0)
    """
    return min(LONGEST_TD_S, max(SHORTEST_TD_S, *triggers_s))


def check_calendar(options: KeeperOptions, slots_each: int) -> None:
    """An InputError where an event asks for more slots than the most executors have."""
    most = options.bounds.most * slots_each
    for event in parse_calendar(options.calendar):
        for query, slots in event.least.items():
            if slots > most:
                there = f"{options.bounds.most} executors have {most} slots"
                raise InputError(f"event {event.said!r}, query {query!r}: {there}; got {slots}")
