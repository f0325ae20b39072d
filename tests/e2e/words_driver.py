"""A driver in a process of its own: counts Zipf words, and changes the replicas of the counter all the time.

    words_driver.py FOLDER SINK EVENTS RATE MODE

Started again on the same folder, it carries the run on.
"""

from __future__ import annotations

import random
import sys
from itertools import cycle
from pathlib import Path
from typing import Any

from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.sinks import CollectSink
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant

KEYS = 400
CHANGES = ([0, 1], [0, 1, 2, 3], [3], [1, 2], [0, 1, 2], [0])


def zipf_words(count: int) -> list[str]:
    draw = random.Random(7)
    return draw.choices([f"w{n}" for n in range(KEYS)], [1 / (n + 1) for n in range(KEYS)], k=count)


def lengthen(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "letters": len(event["word"])}


def count(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    state["count"] = state.get("count", 0) + 1
    return {"word": event["word"], "count": state["count"]}


def topology(sink: Path) -> Topology:
    words = Topology("words", pool=2)
    longer = words.operator("lengthen", lengthen, inputs=words.source("words"))
    counts = words.operator("count", count, inputs=longer, key="word", pool=4, key_groups=32)
    words.operator("end", CollectSink(sink), inputs=counts)
    return words


def main(folder: str, sink: str, events: str, rate: str, mode: str) -> None:
    words = [{"word": word} for word in zipf_words(int(events))]
    source = TraceSource(constant(float(rate), len(words) / float(rate)), words)
    options = RunOptions(folder=Path(folder), mode=mode, checkpoint_every_s=5)
    with Run(topology(Path(sink)), source, replicas={"lengthen": 2}, options=options) as run:
        for replicas in cycle(CHANGES):
            if run.wait(0.7):
                break
            run.set_replicas("count", replicas)
            print("changed", flush=True)
        total = run.fresh_counters().operators["count"].total
        print("done", total.processed, total.groups_moved, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
