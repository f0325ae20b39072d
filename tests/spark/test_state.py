"""Operators with state on a real Spark: rescaled while events flow, with exact results."""

from __future__ import annotations

import logging
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.sinks import CollectSink, collected
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant
from tests.waiting import LONG_S, until


def zipf_words(count: int, keys: int = 300, seed: int = 1) -> list[str]:
    draw = random.Random(seed)
    return draw.choices([f"w{n}" for n in range(keys)], [1 / (n + 1) for n in range(keys)], k=count)


def same(event: dict[str, Any]) -> dict[str, Any]:
    return event


def count(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    state["count"] = state.get("count", 0) + 1
    return {"word": event["word"], "count": state["count"]}


def word_count(folder: Path, pool: int = 4) -> Topology:
    topology = Topology("words", pool=2)
    first = topology.operator("first", same, inputs=topology.source("words"))
    counts = topology.operator("count", count, inputs=first, key="word", pool=pool, key_groups=32)
    topology.operator("end", CollectSink(folder), inputs=counts)
    return topology


def source_of(words: list[str], rate: float, times: int = 1) -> TraceSource:
    """The words in turn; with many `times` it is longer than any test, which ends when it has seen what it wants."""
    return TraceSource(constant(rate, times * len(words) / rate), [{"word": word} for word in words])


def counted(folder: Path) -> dict[str, list[int]]:
    """The counts that each word had, in any order; an event that was repeated counts with its last one."""
    last = dict(collected(folder))
    words: dict[str, list[int]] = {}
    for event in last.values():
        words.setdefault(event["word"], []).append(event["count"])
    return words


def test_counts_are_exact_while_replicas_change(collected_in: Path) -> None:
    """Twelve changes, over checkpoints: every word counts 1, 2, 3, … up to how often it came.

    Each is wished for as soon as the one before has begun, and begins when that is over: none is left out.
    """
    words, options = zipf_words(6000), RunOptions(checkpoint_every_s=1)
    with Run(word_count(collected_in), source_of(words, 300, 50), replicas={"first": 2}, options=options) as run:
        until(lambda: gets_on(run))
        for replicas in (2, 4, 1, 3, [3], [0, 2], 4, 1, 2, 4, 3, 1):
            run.set_replicas("count", replicas)
            until(lambda: has_begun(run), lambda: run._routing.current)
        until(lambda: run.checkpoint_status().committed >= 2, run.checkpoint_status)
        sent = end(run, words)
        until(lambda: kept(run) == len(sent))  # between two batches, and while they move, keys are not counted
        counters = run.fresh_counters()
    assert {word: sorted(counts) for word, counts in counted(collected_in).items()} == {
        word: list(range(1, times + 1)) for word, times in sent.items()
    }
    total = counters.operators["count"].total
    assert total.processed == sum(sent.values())
    assert total.groups_moved > 32
    assert total.moving.count == total.groups_moved
    assert counters.restarts == 0
    print(f"moved {total.groups_moved} groups, p50 {total.moving.percentile_ms(0.5):.0f} ms, ", end="")
    print(f"p99 {total.moving.percentile_ms(0.99):.0f} ms; {total.state_bytes} bytes")


def end(run: Run, words: list[str]) -> Counter[str]:
    """Let no more events in and wait for those that are; how often each word was among them."""
    run.stop_sources()
    assert run.wait_drained(LONG_S)
    return Counter(words[n % len(words)] for n in range(run.fresh_counters().sources["words"]))


def has_begun(run: Run) -> bool:
    """Whether key groups are on their way to the replicas that were asked for last, or there."""
    table = run._routing.current.operators["count"].table
    assert table is not None
    return set(table.owners) == set(run.active["count"])


def kept(run: Run) -> int:
    """Keys in the counter's state."""
    return run.fresh_counters().operators["count"].total.state_keys


def gets_on(run: Run) -> bool:
    """Whether the counter is at work."""
    before = run.fresh_counters().operators["count"].total.processed
    time.sleep(0.5)
    return run.fresh_counters().operators["count"].total.processed > before > 0


def moved(run: Run) -> int:
    """The wish for two replicas, as often as it is dropped because the machine was slow; the groups that were moved."""
    if len(run.active["count"]) != 2:
        run.set_replicas("count", 2)
    return run.fresh_counters().operators["count"].total.groups_moved


def test_a_hand_over_that_takes_too_long_is_taken_back(collected_in: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody hears of the change while the channel is cut: the query starts again under the old owners."""
    caplog.set_level(logging.WARNING)
    words = zipf_words(2000)
    with Run(word_count(collected_in), source_of(words, 200, 90), options=RunOptions(handover_timeout_s=4)) as run:
        until(lambda: gets_on(run))
        run.cut_channel(True)
        run.set_replicas("count", 3)
        until(lambda: run.active["count"] == (0,))
        run.cut_channel(False)
        until(lambda: gets_on(run))
        until(lambda: moved(run))  # now it can
        sent = end(run, words)
    assert "operator 'count': key groups [11, 12, 13" in caplog.text
    assert "waiting for replicas [0]: they stay" in caplog.text
    assert {word: max(counts) for word, counts in counted(collected_in).items()} == sent


def test_a_run_that_was_stopped_is_carried_on_with_other_pools_and_nothing_comes_twice(
    collected_in: Path, tmp_path: Path
) -> None:
    """Another pool was refused; an operator that keeps nothing joins, too. Counts go on where they were."""
    words, options = zipf_words(2000), RunOptions(folder=tmp_path / "run")
    with Run(word_count(collected_in), source_of(words, 250, 90), replicas={"count": 4}, options=options) as run:
        until(lambda: run.counters().operators["end"].total.processed > 300)
        assert run.stop(LONG_S)
    before = len(collected(collected_in))
    assert before > 300
    topology = Topology("words", pool=1)
    first = topology.operator("first", same, inputs=topology.source("words"))
    counts = topology.operator("count", count, inputs=first, key="word", pool=2, key_groups=32)
    topology.operator("end", CollectSink(collected_in), inputs=topology.operator("new", same, inputs=counts))
    trace, payloads = constant(250.0, 900.0), [{"word": word} for word in words]
    with Run(topology, TraceSource(trace, payloads, events=before + 700), options=options) as run:
        assert run.wait(LONG_S)
        assert run.counters().sources["words"] == 700
    assert len(collected(collected_in)) == before + 700
    sent = Counter(words[n % len(words)] for n in range(before + 700))
    assert {word: sorted(seen) for word, seen in counted(collected_in).items()} == {
        word: list(range(1, times + 1)) for word, times in sent.items()
    }
