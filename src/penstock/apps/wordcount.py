"""The word count of E2DF: sentences are split, words counted by key, and the counts published to a queue.

sentences → split → counter (keyed by word) → consumer → queue
"""

from __future__ import annotations

from typing import Any

from penstock.apps.events.sentences import WORDS_PER_SENTENCE
from penstock.apps.options import AppOptions, Tuning
from penstock.apps.waiting import wait
from penstock.topology import Topology

# The paper does not say how long its operators take. With these times its static deployment has its latency of 11.4 ms.
SERVICE_MS = {"split": 1.5, "counter": 0.5, "consumer": 0.8}
DEPLOYED = {"split": 2, "counter": 6, "consumer": 6}  # the paper's static deployment
POOLS = {"split": 4, "counter": 8, "consumer": 8}


def build(options: AppOptions) -> Topology:
    """The topology, with the caller's options."""
    tuning = Tuning("wordcount", options, SERVICE_MS, POOLS)
    topology = Topology("wordcount")
    sentences = topology.source("sentences")
    words = topology.operator(
        "split",
        tuning.run("split", split),
        inputs=sentences,
        selectivity=WORDS_PER_SENTENCE,
        **tuning.declared("split"),
    )
    counts = topology.operator(
        "counter",
        WordCounter(tuning.service_ms["counter"]),
        inputs=words,
        key="word",
        selectivity=1.0,
        **tuning.declared("counter", keyed=True),
    )
    topology.operator(
        "consumer", tuning.sink("consumer"), inputs=counts, selectivity=0.0, **tuning.declared("consumer")
    )
    return topology


def split(sentence: dict[str, Any]) -> list[dict[str, Any]]:
    """One event for each word."""
    return [{"word": word} for word in sentence["sentence"].lower().split()]


class WordCounter:
    """How often each word has come so far, whichever replica counts it."""

    def __init__(self, service_ms: float) -> None:
        self.service_ms = service_ms

    def process(self, event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
        """The word with its running count."""
        state["count"] = state.get("count", 0) + 1
        wait(self.service_ms)
        return {"word": event["word"], "count": state["count"]}
