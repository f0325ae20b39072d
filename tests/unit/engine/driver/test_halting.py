"""Sources that are told to stop, whatever happens meanwhile: they end where they had been, and no earlier."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.engine.driver.halting import Halting
from penstock.engine.driver.ledger import Ledger
from penstock.engine.driver.positions import Positions
from penstock.engine.driver.routing import RoutingTable
from penstock.engine.driver.shifts import Shift
from penstock.engine.plan.layout import lay_out
from penstock.engine.protocol.messages import BatchEnd, Halted, Report, Reports, StartQuery
from penstock.metrics.counters import ReplicaCounters
from penstock.topology import Topology

SLOT = ("s", 0)


class Source:
    """One slot of one shift, and the driver's books of it."""

    def __init__(self, folder: Path) -> None:
        topology = Topology("t", pool=1)
        topology.operator("o", print, inputs=topology.source("s"))
        self.routing = RoutingTable(topology, {})
        self.ledger = Ledger(topology)
        self.positions = Positions(folder / "positions.json")
        self.positions.begin(0, {SLOT: 0})
        self.halting = Halting(self.routing, self.ledger, self.positions)
        supervisor: Any = SimpleNamespace(generation=0)
        self.shift = Shift(0, lay_out(topology, {"o": [0]}), supervisor)
        self.batch = self.heard = 0
        self.begin()

    @property
    def generation(self) -> int:
        return self.shift.supervisor.generation

    def begin(self) -> None:
        answer = self.halting.start(self.shift, StartQuery(self.generation, *SLOT, self.batch))
        self.first = self.position = answer.position
        self.until, self.told = answer.until, 0

    def report(self) -> None:
        counters = ReplicaCounters(processed=self.position - self.first)
        self.ledger.enter(Reports("h", 1, 0, [Report(self.generation, self.batch, *SLOT, counters)]), 0.0)
        self.heard = max(self.heard, self.position)

    def die(self) -> None:
        """Before the batch was committed; in the next generation it is done again."""
        self.shift.supervisor.generation += 1
        self.begin()

    def end_batch(self) -> None:
        said = BatchEnd(self.generation, *SLOT, self.batch, self.position)
        self.positions.end(said.batch, SLOT, said.position)
        self.report()
        self.batch += 1
        self.begin()

    def work(self, events: int = 3) -> None:
        """One look at what is due, as a slot does it."""
        routing = self.routing.current
        if routing.stopping and routing.stops != self.told:
            said = Halted(self.generation, *SLOT, self.batch, self.position, routing.version)
            answer = self.halting.halted(self.shift, said)
            self.until = self.until if answer.until is None else answer.until
        self.told = routing.stops
        if not routing.stopping:
            self.position += events
        elif self.until is not None:
            self.position = max(self.position, self.until)


DOINGS = ("work", "report", "die", "end_batch", "pause", "resume", "stop")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(DOINGS), max_size=25))
@example(["work", "report", "die", "pause", "work", "stop"])  # it halted, for the pause, before it had caught up
def test_a_source_that_is_stopped_ends_where_it_was_heard_to_be_and_stays_there(doings: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Source(Path(folder))
        acts = {"pause": source.halting.pause, "resume": lambda: source.halting.resume(source.shift)}
        acts["stop"] = source.halting.stop
        end = None
        for doing in doings:
            acts.get(doing, getattr(source, doing, None))()
            if end is not None:
                source.work()
                assert source.position == end
            elif source.halting.for_good:
                source.work()
                assert source.position >= source.heard
                end = source.position
                assert source.shift.halted == {SLOT: end}
        assert source.routing.current.stopping or not source.halting.for_good
