"""The complex sensitive topology of DABS-Storm: opinions grouped by place and by age.

opinion_source → category_dispatcher ─places─► sensitive ─► city_analyzer ─► persister
                                     └ages───► age_analyzer ───────────────► persister
"""

from __future__ import annotations

from typing import Any

from penstock.apps.cities import find_city
from penstock.apps.options import AppOptions, Tuning
from penstock.apps.people import age_band
from penstock.apps.text import clean_text, polarity, stance, tokens
from penstock.apps.waiting import MEAN_TIME_MS, TimeByValue, Waiting, times_of_values
from penstock.topology import Operator, To, Topology

SERVICE_MS = {
    "category_dispatcher": 5.0,
    "sensitive": MEAN_TIME_MS,
    "city_analyzer": 10.0,
    "age_analyzer": 10.0,
    "persister": 5.0,
}
POOLS = {"category_dispatcher": 4, "sensitive": 16, "city_analyzer": 8, "age_analyzer": 8, "persister": 8}
RELEVANT = 0.82  # share of the real tweets with a relevant topic
_IRRELEVANT = ("Not labeled", "Not applicable")


def build(options: AppOptions) -> Topology:
    """The topology, with the caller's options; the seed gives the 64 times to the city codes."""
    tuning = Tuning("complex_sensitive", options, SERVICE_MS, POOLS)
    topology = Topology("complex_sensitive")
    dispatcher = topology.operator(
        "category_dispatcher",
        tuning.run("category_dispatcher", dispatch),
        inputs=topology.source("opinion_source"),
        outputs=("places", "ages"),
        selectivity=RELEVANT,
        **tuning.declared("category_dispatcher"),
    )
    by_age = topology.operator(
        "age_analyzer",
        tuning.run("age_analyzer", group_by_age),
        inputs=dispatcher["ages"],
        selectivity=1.0,
        **tuning.declared("age_analyzer"),
    )
    groups = [_place_branch(topology, dispatcher, tuning, options.seed), by_age]
    topology.operator(
        "persister", tuning.sink("persister"), inputs=groups, selectivity=0.0, **tuning.declared("persister")
    )
    return topology


def _place_branch(topology: Topology, dispatcher: Operator, tuning: Tuning, seed: int) -> Operator:
    times = TimeByValue("code", times_of_values(seed, tuning.service_ms["sensitive"]))
    located = topology.operator(
        "sensitive",
        Waiting(locate, times),
        inputs=dispatcher["places"],
        selectivity=1.0,
        cost_by="code",
        **tuning.declared("sensitive"),
    )
    return topology.operator(
        "city_analyzer",
        tuning.run("city_analyzer", group_by_place),
        inputs=located,
        selectivity=2.0,
        **tuning.declared("city_analyzer"),
    )


def dispatch(opinion: dict[str, Any]) -> list[To]:
    """Both branches get what they need of an opinion; irrelevant topics are left out."""
    if opinion["type"] in _IRRELEVANT:
        return []
    said = {"topic": opinion["type"], "text": clean_text(opinion["text"])}
    return [To("places", {**said, "code": opinion["code"]}), To("ages", {**said, "age": opinion["age"]})]


def locate(opinion: dict[str, Any]) -> dict[str, Any]:
    """City and region of the opinion's code."""
    city, region = find_city(opinion["code"])
    return {**opinion, "city": city, "region": region}


def group_by_place(opinion: dict[str, Any]) -> list[dict[str, Any]]:
    """The subgroups of city and of region that the opinion belongs to."""
    return [_subgroup(opinion, by, opinion[by]) for by in ("city", "region")]


def group_by_age(opinion: dict[str, Any]) -> dict[str, Any]:
    """The subgroup of age that the opinion belongs to."""
    return _subgroup(opinion, "age", age_band(opinion["age"]))


def _subgroup(opinion: dict[str, Any], by: str, value: str) -> dict[str, Any]:
    score = polarity(tokens(opinion["text"]))
    return {"by": by, "group": value, "topic": opinion["topic"], "stance": stance(score), "score": score}
