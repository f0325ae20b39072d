"""Running averages of opinions: what is said twice counts once, and every city has its mean score.

opinions → score → distinct (by text and city) → average (by city) → store
"""

from __future__ import annotations

from typing import Any

from penstock.apps.cities import find_city
from penstock.apps.options import AppOptions, Tuning
from penstock.apps.text import clean_text, polarity, tokens
from penstock.apps.waiting import wait
from penstock.operators import Distinct, RunningAverage
from penstock.operators.running_average import Average
from penstock.topology import Topology

SERVICE_MS = {"score": 10.0, "distinct": 2.0, "average": 5.0, "store": 5.0}
POOL = 8
FRESH = 1.0  # share of opinions that were not said before in their city
REMEMBERED_S = 3600.0


def build(options: AppOptions) -> Topology:
    """The topology, with the caller's options."""
    tuning = Tuning("averages", options, SERVICE_MS, POOL)
    topology = Topology("averages")
    scored = topology.operator(
        "score",
        tuning.run("score", score),
        inputs=topology.source("opinions"),
        selectivity=1.0,
        **tuning.declared("score"),
    )
    fresh = topology.operator(
        "distinct",
        Once(tuning.service_ms["distinct"]),
        inputs=scored,
        key="said",
        expire_after_s=REMEMBERED_S,
        selectivity=FRESH,
        **tuning.declared("distinct", keyed=True),
    )
    means = topology.operator(
        "average",
        CityAverage(tuning.service_ms["average"]),
        inputs=fresh,
        key="city",
        selectivity=1.0,
        **tuning.declared("average", keyed=True),
    )
    topology.operator("store", tuning.sink("store"), inputs=means, selectivity=0.0, **tuning.declared("store"))
    return topology


def score(opinion: dict[str, Any]) -> dict[str, Any]:
    """How positive the words are, and where they were said."""
    text, (city, _) = clean_text(opinion["text"]), find_city(opinion["code"])
    return {"said": f"{city}: {text}", "city": city, "score": polarity(tokens(text))}


class Once(Distinct):
    """Leaves out what was said before in the same city."""

    def __init__(self, service_ms: float) -> None:
        self.service_ms = service_ms

    def process(self, event: dict[str, Any], state: dict[str, bool]) -> dict[str, Any] | None:
        """The opinion, if it is the first of its kind."""
        wait(self.service_ms)
        first: dict[str, Any] | None = super().process(event, state)
        return first


class CityAverage(RunningAverage):
    """The mean score of each city so far."""

    def __init__(self, service_ms: float) -> None:
        super().__init__("score", by="city")
        self.service_ms = service_ms

    def process(self, event: dict[str, Any], state: Average) -> dict[str, Any] | None:
        """City, mean and number of opinions."""
        wait(self.service_ms)
        return super().process(event, state)
