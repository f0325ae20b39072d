"""The Twitter application of PSPS: four operators in a line.

tweets → clean → classify (by content) → author (by the kind of source) → store
"""

from __future__ import annotations

from typing import Any

from penstock.apps.lexicons import FORMAL, PERSONAL, SOURCE_KINDS
from penstock.apps.options import AppOptions, Tuning
from penstock.apps.text import clean_text, hits, tokens, topics
from penstock.topology import Topology

SERVICE_MS = {"clean": 10.0, "classify": 20.0, "author": 15.0, "store": 10.0}
POOL = 8


def build(options: AppOptions) -> Topology:
    """The topology, with the caller's options."""
    tuning = Tuning("twitter", options, SERVICE_MS, POOL)
    topology = Topology("twitter")
    tweets = topology.source("tweets")
    cleaned = topology.operator(
        "clean", tuning.run("clean", clean), inputs=tweets, selectivity=1.0, **tuning.declared("clean")
    )
    classified = topology.operator(
        "classify", tuning.run("classify", classify), inputs=cleaned, selectivity=1.0, **tuning.declared("classify")
    )
    authored = topology.operator(
        "author", tuning.run("author", author), inputs=classified, selectivity=1.0, **tuning.declared("author")
    )
    topology.operator("store", tuning.sink("store"), inputs=authored, selectivity=0.0, **tuning.declared("store"))
    return topology


def clean(tweet: dict[str, Any]) -> dict[str, Any]:
    """Plain lower-case text, and whether it was passed on by somebody else."""
    text = clean_text(tweet["text"])
    return {
        "event": tweet["event"],
        "time": tweet["time"],
        "source": tweet["source"],
        "text": text,
        "words": len(tokens(text)),
        "retweet": tweet["text"].startswith("RT "),
    }


def classify(tweet: dict[str, Any]) -> dict[str, Any]:
    """The topic that the words speak for most."""
    found = topics(tokens(tweet["text"]))
    topic = next(iter(found), "other")
    return {**tweet, "topic": topic, "score": found.get(topic, 0.0)}


def author(tweet: dict[str, Any]) -> dict[str, Any]:
    """The kind of author by the source's label, or by the wording where there is none."""
    kind, credibility = SOURCE_KINDS.get(tweet["source"], ("", 0.0))
    if not kind:
        words = tokens(tweet["text"])
        formal, personal = hits(words, FORMAL), hits(words, PERSONAL)
        kind = "press" if formal > personal else "private" if personal > 0 else "unknown"
        credibility = round(formal / (formal + personal + 1), 3)
    return {**tweet, "author": kind, "credibility": credibility}
