"""What an experiment is: cases side by side, what the paper has for them, and the directions that must hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from experiments.figures import FOUR
from penstock.forecast.recurrent import installed
from penstock.policy.registry import POLICIES
from penstock.simulator import Cluster, Contest, Plant, Scenario

FIGURE = re.compile(r"\[(\w+): ([^\]]+)\]")  # in a finding: what a case came to
WAITED_FOR = " is not there yet"
NEAR = 0.01  # figures that differ by less, relative to the larger, are the same


def near(one: float, other: float) -> bool:
    """Whether two figures are as good as the same.

    >>> near(0.5617, 0.5563), near(0.5617, 0.5390)
    (True, False)
    """
    return abs(one - other) <= NEAR * max(abs(one), abs(other))


@dataclass(frozen=True, kw_only=True)
class Case:
    """One row: a policy in a scenario, and the paper's figures for it where it has any.

    Trace and seed are put into the scenario when it is played. Cases in which the same is played are equal, whatever
    their labels: what several tables share is played once.
    """

    label: str = field(compare=False)
    policy: str
    input: str  # a name of experiments.inputs
    scenario: Scenario
    settle_s: float = 0.0  # for so long after a change nothing is measured and nothing decided
    r_over: int | None = None  # where the paper sets more than the peak needs
    paper: Mapping[str, float] = field(default_factory=dict, compare=False)
    trained: bool = False  # a BiGRU, trained on what came before the input, takes the place of its forecaster

    @property
    def missing(self) -> str | None:
        """Why it cannot be played yet, if so."""
        name = self.policy.partition(":")[0]
        if self.trained and not installed():
            return "needs the extra 'deep'"
        return None if name in POLICIES.names else f"policy {name!r}{WAITED_FOR}"

    def changed(self, **values: Any) -> Case:
        """Another case, in which these fields of the case or its scenario are others."""
        own = {one.name for one in fields(self)} & values.keys()
        mine = {name: values.pop(name) for name in own}
        scenario = mine.pop("scenario", self.scenario)
        return replace(self, scenario=scenario.changed(**values), **mine)

    def settings(self) -> dict[str, Any]:
        """What is set, in plain values: application, input, and whatever is not as usual.

        >>> base("dns", "dns", td_s=10.0).settings()["td_s"]
        10.0
        """
        scenario = self.scenario
        parts = ((scenario, Scenario(scenario.name)), (scenario.plant, Plant()), (scenario.contest, Contest()))
        shown = {"app": scenario.name, "input": self.input, "settle_s": self.settle_s, "r_over": self.r_over}
        if self.trained:
            shown["trained"] = True
        for part, usual in (*parts, (scenario.cluster, Cluster())):
            for one in fields(part):
                value = getattr(part, one.name)
                if value != getattr(usual, one.name) and one.name not in ("plant", "contest", "cluster"):
                    shown[one.name] = value
        return shown


def base(app: str, input: str, **values: Any) -> Case:
    """A case to derive others from: psps, load balancing, events at random, late after 30 s."""
    usual: dict[str, Any] = {"arrivals": "poisson", "grouping": "load_balancing", "td_s": 30.0, "target_ms": 30_000.0}
    return Case(label="", policy="psps", input=input, scenario=Scenario(app)).changed(**usual).changed(**values)


@dataclass(frozen=True)
class Claim:
    """In this figure, one case has less than another.

    >>> str(Claim("latency_ms", "load balancing", "shuffle"))
    'latency_ms: load balancing < shuffle'
    """

    metric: str
    less: str
    more: str

    def __str__(self) -> str:
        return f"{self.metric}: {self.less} < {self.more}"


@dataclass(frozen=True)
class Direction:
    """What a paper's figures say; it holds if all claims do. `why` tells what was found where it does not.

    In it `[metric: label]` stands for the figure that a case came to in this run.
    """

    name: str
    claims: tuple[Claim, ...]
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or figure of a paper.

    The paper's figures of every case are compared with those of the first; where ours differ the other way round,
    `reasons` says why, by `metric` or by `metric label`.
    """

    name: str
    title: str
    paper: str
    cases: tuple[Case, ...]
    note: str = ""
    metrics: tuple[str, ...] = FOUR
    directions: tuple[Direction, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    seeds: int = 3

    def __post_init__(self) -> None:
        labels = [case.label for case in self.cases]
        named = [label for one in self.directions for claim in one.claims for label in (claim.less, claim.more)]
        reasons = [*self.reasons.values(), *(one.why for one in self.directions)]
        named += [label for text in reasons for _, label in FIGURE.findall(text)]
        unknown = [label for label in named if label not in labels]
        if unknown or len(set(labels)) < len(labels):
            raise ValueError(f"{self.name}: labels must be unique and claims name them; got {labels} and {unknown}")

    def implied(self) -> list[Claim]:
        """What the paper's figures say of each case beside the first.

        >>> cases = tuple(base("twitter", "twitter", label=label, paper={"latency_ms": value})
        ...               for label, value in (("td 30 s", 2099.0), ("td 60 s", 5271.0)))
        >>> [str(claim) for claim in Experiment(name="t", title="", paper="", cases=cases).implied()]
        ['latency_ms: td 30 s < td 60 s']
        """
        first, *others = self.cases
        claims = []
        for case in others:
            for metric in self.metrics:
                ours, theirs = case.paper.get(metric), first.paper.get(metric)
                if ours is None or theirs is None or near(ours, theirs):
                    continue
                less, more = (case, first) if ours < theirs else (first, case)
                claims.append(Claim(metric, less.label, more.label))
        return claims
