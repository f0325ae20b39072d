"""A driver in a process of its own: counts Zipf words, and changes the replicas of the counter all the time.

    words_driver.py FOLDER SINK EVENTS RATE MODE [CHECKPOINTS]

Started again on the same folder, it carries the run on, perhaps to another number of events: the words of a longer run
begin with those of a shorter one. It says when its source began, each change, and how it ended. In micro-batch mode the
words are the rows of a DataFrame, from a folder of files. With a URI for CHECKPOINTS, state and checkpoints are there,
and the sink is a table that shows what is committed.
"""

from __future__ import annotations

import os
import random
import sys
import time
from itertools import cycle
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.common import lease
from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.engine.session import OWN
from penstock.sinks import CollectSink, DatabaseSink, collected
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


def topology(sink: Path, committed: bool = False) -> Topology:
    words = Topology("words", pool=2)
    longer = words.operator("lengthen", lengthen, inputs=words.source("words"))
    counts = words.operator("count", count, inputs=longer, key="word", pool=4, key_groups=32)
    store = DatabaseSink(f"sqlite:///{sink}", level="committed") if committed else CollectSink(sink)
    words.operator("end", store, inputs=counts)
    return words


def trace(words: list[str], rate: float) -> TraceSource:
    return TraceSource(constant(rate, len(words) / rate), [{"word": word} for word in words])


def rows(words: list[str], at_once: int, folder: Path, spark: SparkSession) -> DataFrame:
    """So many words in every micro-batch."""
    folder.mkdir(exist_ok=True)
    for start in range(0, len(words), at_once):
        lines = (f'{{"word": "{word}"}}\n' for word in words[start : start + at_once])
        (folder / f"{start:06}.json").write_text("".join(lines))
    stream = spark.readStream.schema("word string").option("maxFilesPerTrigger", 1)
    return stream.json(str(folder))


def session() -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need Penstock, too
    builder = SparkSession.builder.master("local[8]")
    for key, value in OWN.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def ended(run: Run, mode: str, sink: Path, events: int) -> bool:
    """Whether all is done; a DataFrame does not end by itself: when every event is stored."""
    if mode == "realtime":
        return run.wait(0.7)
    time.sleep(0.7)
    return len(dict(collected(sink))) >= events


def main(folder: str, sink: str, events: str, rate: str, mode: str, checkpoints: str | None = None) -> None:
    lease.STALE_S = 8.0  # whether a driver that was killed lives need not be looked at for half a minute
    words, spark = zipf_words(int(events)), session() if mode == "microbatch" else None
    kept = Path(folder).with_name("words")
    source = trace(words, float(rate)) if spark is None else rows(words, int(rate), kept, spark)
    options = RunOptions(folder=Path(folder), mode=mode, checkpoint_every_s=5, checkpoints=checkpoints)
    flow = topology(Path(sink), committed=checkpoints is not None)
    with Run(flow, source, replicas={"lengthen": 2}, options=options, spark=spark) as run:
        print("began", run.epoch_s, flush=True)
        for replicas in cycle(CHANGES):
            if ended(run, mode, Path(sink), int(events)):
                break
            run.set_replicas("count", replicas)
            print("changed", flush=True)
        total = run.fresh_counters().operators["count"].total
        print("done", total.processed, total.groups_moved, flush=True)
    if spark is not None:
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
