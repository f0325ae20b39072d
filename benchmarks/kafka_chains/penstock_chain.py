"""Penstock: the four operators, two replicas each; the last one publishes, as the others' do.

    penstock_chain.py BROKERS SOURCE SINK FOLDER [SERVICE_MS POOL [POLICY [GROUPING]]]

SOURCE is a topic, or a file of events. Under a policy replicas come and go; it says each second how many are active.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from step import step

from penstock import Elastic, FileSource, KafkaSink, KafkaSource, Run, RunOptions, Topology

OPERATORS = ("first", "second", "third", "fourth")


def slow_step(service_s: float, event: dict[str, Any]) -> dict[str, Any]:
    time.sleep(service_s)
    return step(event)


class LastStep(KafkaSink):
    """The fourth operator, and where it ends."""

    def __init__(self, brokers: str, topic: str, function: Any) -> None:
        super().__init__(brokers, topic, level="at_least_once")
        self._function = function

    def process_many(self, events: list[Any]) -> None:
        """Do the step, then publish."""
        super().process_many(list(map(self._function, events)))


def chain(brokers: str, sink: str, function: Any, pool: int) -> Topology:
    topology = Topology("chain", pool=pool)
    stream: Any = topology.source("events")
    for name in OPERATORS[:-1]:
        stream = topology.operator(name, function, inputs=stream)
    topology.operator(OPERATORS[-1], LastStep(brokers, sink, function), inputs=stream)
    return topology


def main(brokers: str, source: str, sink: str, folder: str, *more: str) -> None:
    service_ms, pool, policy, grouping = (*more, *("0", "2", "", "shuffle")[len(more) :])
    function = partial(slow_step, float(service_ms) / 1000) if float(service_ms) else step
    topology = chain(brokers, sink, function, int(pool)).tuned(grouping=grouping)
    reads = FileSource(source) if Path(source).is_file() else KafkaSource(brokers, source)
    options = RunOptions(folder=Path(folder), checkpoint_every_s=10)
    replicas = {} if policy else dict.fromkeys(OPERATORS, int(pool))
    run = Run(topology, reads, replicas=replicas, options=options)
    with Elastic(run, policy, td_s=2.0) if policy else run:
        while not run.wait(1.0):
            print("active", sum(map(len, run.active.values())), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
