"""The complex application of PSPS: tweets are split into news and opinions, which are analysed apart and stored.

    tweets → dispatch ─news─────► headline ─┬► topics ───────────────► store
                      │                     └► urgency ──────────────► store
                      └opinions─► opinion ───► sentiment ─► profile ─► store

`dispatch` and `urgency` filter, `topics` gives an event for each topic, and `store` reads the union of three streams,
two of which skip a level.
"""

from __future__ import annotations

from typing import Any

from penstock.apps.cities import find_city
from penstock.apps.lexicons import FORMAL, PERSONAL, SOURCE_KINDS, URGENCY
from penstock.apps.options import AppOptions, Tuning
from penstock.apps.people import age_band
from penstock.apps.text import clean_text, hits, polarity, stance, tokens
from penstock.apps.text import topics as topics_of
from penstock.topology import Operator, To, Topology

SERVICE_MS = {
    "dispatch": 10.0,
    "headline": 10.0,
    "topics": 15.0,
    "urgency": 10.0,
    "opinion": 10.0,
    "sentiment": 20.0,
    "profile": 15.0,
    "store": 10.0,
}
SELECTIVITY: dict[str, float | dict[str, float]] = {  # as measured on the real tweets
    "dispatch": {"news": 0.37, "opinions": 0.5},
    "headline": 1.0,
    "topics": 1.36,
    "urgency": 0.43,
    "opinion": 1.0,
    "sentiment": 1.0,
    "profile": 1.0,
    "store": 0.0,
}
POOL = 6
_UNRELATED = ("Not related", "Not applicable")
_PUBLIC = ("official", "press", "business")


def build(options: AppOptions) -> Topology:
    """The topology, with the caller's options."""
    tuning = Tuning("complex", options, SERVICE_MS, POOL)
    topology = Topology("complex")
    tweets = topology.source("tweets")
    split = topology.operator(
        "dispatch",
        tuning.run("dispatch", dispatch),
        inputs=tweets,
        outputs=("news", "opinions"),
        selectivity=SELECTIVITY["dispatch"],
        **tuning.declared("dispatch"),
    )
    ends = [*_news(topology, split, tuning), _opinions(topology, split, tuning)]
    topology.operator(
        "store", tuning.sink("store"), inputs=ends, selectivity=SELECTIVITY["store"], **tuning.declared("store")
    )
    return topology


def _news(topology: Topology, split: Operator, tuning: Tuning) -> list[Operator]:
    head = topology.operator(
        "headline",
        tuning.run("headline", headline),
        inputs=split["news"],
        selectivity=SELECTIVITY["headline"],
        **tuning.declared("headline"),
    )
    return [
        topology.operator(
            name, tuning.run(name, function), inputs=head, selectivity=SELECTIVITY[name], **tuning.declared(name)
        )
        for name, function in (("topics", topics), ("urgency", urgency))
    ]


def _opinions(topology: Topology, split: Operator, tuning: Tuning) -> Operator:
    last = split["opinions"]
    for name, function in (("opinion", opinion), ("sentiment", sentiment), ("profile", profile)):
        end = topology.operator(
            name, tuning.run(name, function), inputs=last, selectivity=SELECTIVITY[name], **tuning.declared(name)
        )
        last = end["out"]
    return end


def dispatch(tweet: dict[str, Any]) -> To | None:
    """News or opinion, by who speaks and in what words; what is not about the event is left out."""
    if tweet["informativeness"] in _UNRELATED:
        return None
    words = tokens(clean_text(tweet["text"]))
    kind, _ = SOURCE_KINDS.get(tweet["source"], ("", 0.0))
    public = 2.0 if kind in _PUBLIC else 0.0
    is_news = public + hits(words, FORMAL) > hits(words, PERSONAL)
    return To("news", tweet) if is_news else To("opinions", tweet)


def headline(tweet: dict[str, Any]) -> dict[str, Any]:
    """The first words of the cleaned text, as a headline."""
    text = clean_text(tweet["text"])
    return {"kind": "headline", "event": tweet["event"], "text": text, "headline": " ".join(text.split()[:8])}


def topics(news: dict[str, Any]) -> list[dict[str, Any]]:
    """One event for each topic that the news touches, `general` where it touches none."""
    found = topics_of(tokens(news["text"])) or {"general": 0.0}
    return [{**news, "kind": "topic", "topic": topic, "score": score} for topic, score in found.items()]


def urgency(news: dict[str, Any]) -> dict[str, Any] | None:
    """News with urgent words, the others are left out."""
    score = hits(tokens(news["text"]), URGENCY)
    return {**news, "kind": "alert", "score": score} if score >= 1 else None


def opinion(tweet: dict[str, Any]) -> dict[str, Any]:
    """What was said, by whom."""
    return {
        "kind": "opinion",
        "event": tweet["event"],
        "text": clean_text(tweet["text"]),
        "age": tweet["age"],
        "code": tweet["code"],
    }


def sentiment(said: dict[str, Any]) -> dict[str, Any]:
    """How much the words are for or against."""
    score = polarity(tokens(said["text"]))
    return {**said, "score": score, "stance": stance(score)}


def profile(said: dict[str, Any]) -> dict[str, Any]:
    """Age band, city and region instead of age and code."""
    city, region = find_city(said["code"])
    kept = {name: value for name, value in said.items() if name not in ("age", "code")}
    return {**kept, "age_band": age_band(said["age"]), "city": city, "region": region}
