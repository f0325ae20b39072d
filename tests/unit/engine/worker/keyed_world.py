"""One replica of an operator with state, and what is around it, for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from penstock.engine.plan.program import MicroBatch
from penstock.engine.protocol.bundle import HASH, Barrier, Events, Header, Keys, Switch, pack, pack_sign
from penstock.engine.protocol.messages import Done, OperatorRouting, Restore, Routing
from penstock.engine.worker.replica import OperatorReplica
from penstock.grouping import stable_hash
from penstock.state.files import StateFiles
from penstock.state.handover import Table
from penstock.topology import Topology

from ..made import progress

Driver = Any
Tools = SimpleNamespace
GROUPS = 4


def count(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    state["count"] = state.get("count", 0) + 1
    return {"word": event["word"], "count": state["count"]}


def words(run: Any = count, **declared: Any) -> Topology:
    topology = Topology("words", pool=3)
    counts = topology.operator(
        "count", run, inputs=topology.source("words"), **{"key": "word", "key_groups": GROUPS} | declared
    )
    topology.operator("end", print, inputs=counts)
    return topology


def word_of(group: int) -> str:
    """A word of that group."""
    return next(word for n in range(1000) if stable_hash(word := f"word {n}") % GROUPS == group)


def bundle(*events: Any, first: int = 0, born: float = 0.0) -> bytes:
    hashes = np.array([stable_hash(event["word"]) for event in events], HASH).tobytes()
    ids = [str(first + n) for n in range(len(events))]
    columns = Events(ids, [born] * len(events), list(events), Keys(0, hashes))
    return pack(Header(0, 0, 1, 0, len(events)), columns)


def of(*groups: int, first: int = 0) -> bytes:
    return bundle(*[{"word": word_of(group)} for group in groups], first=first)


def switch(version: int) -> bytes:
    return pack_sign(Header(0, 0, 1, 0, 0), Switch(version))


def barrier(number: int, replica: int = 0) -> bytes:
    return pack_sign(Header(0, replica, 1, 0, 0), Barrier(number))


class World:
    """One replica at a time, over a folder."""

    def __init__(self, driver: Driver, tools: Tools, folder: Path) -> None:
        self.driver, self.tools, self.folder = driver, tools, folder / "state" / "count"
        self.files = StateFiles(self.folder)
        self._run_folder = folder
        self.table = Table(1, (0, 0, 1, 1))
        self.topology = words()
        self.replica: Any = None
        self._published = 1

    def run(self, *steps: Any, replica: int = 0, batch: int = 1, **program: Any) -> list[tuple[str, str, int]]:
        """Work off bundles; a step that can be called is called in between. Ids, words and counts that left."""
        made = self.driver.program(self.topology, storage_uri=str(self._run_folder), **program)
        self.driver.tables = {"count": self.table}
        self.replica = at_work = OperatorReplica(made, 1, "count", replica, batch)
        rows = list(at_work.run(self.batches(steps)))
        left = self.tools.left(*rows)
        return [
            (event_id, event["word"], event["count"]) for event_id, event in zip(left.ids, left.events, strict=True)
        ]

    def micro_batch(self, *steps: Any, batch: int, **program: Any) -> list[tuple[str, str, int]]:
        return self.run(*steps, batch=batch, active={"count": (0,)}, microbatch=MicroBatch(batch, "words"), **program)

    def batches(self, steps: Any) -> Iterator[Any]:
        for step in steps:
            if callable(step):
                step()
            else:
                yield self.tools.Batch([step] if isinstance(step, bytes) else step)

    def publish(self, table: Table) -> None:
        """Tell the replica of a table, and wait until it follows it: its process alone may have heard first."""
        self._published += 1
        routing = {"count": OperatorRouting((0,), table=table), "end": OperatorRouting((0,))}
        self.driver.server.publish(Routing(self._published, routing))
        self.tools.until(lambda: getattr(self.replica._stateful, "_side", None) and self.follows(table))

    def follows(self, table: Table) -> bool:
        return bool(self.replica._stateful._side._table == table)

    def tell(self, version: int, **changes: Any) -> None:
        """Tell the replica how far checkpoints are, and wait until it has looked."""
        self.driver.server.publish(progress(version, **changes))
        self.tools.until(lambda: self.replica._heard is not None and self.replica._heard.version == version)

    def done(self, number: int, replica: int = 0) -> Done:
        """What the replica said of a checkpoint, once it has."""

        def said() -> list[Done]:
            return [one for one in self.driver.done("count", replica) if one.number == number]

        found: list[Done] = self.tools.until(said)
        return found[-1]

    def awaits(self, number: int, replica: int = 0) -> Callable[[], Done]:
        return lambda: self.done(number, replica)

    def restart(self, *done: Done) -> None:
        """Whoever starts from now on goes on from that checkpoint."""
        segments = sorted(segment for one in done for segment in one.segments)
        self.driver.restores["count"] = Restore(done[0].number, segments)


def counts(left: list[tuple[str, str, int]]) -> list[int]:
    return [count for _, _, count in left]
