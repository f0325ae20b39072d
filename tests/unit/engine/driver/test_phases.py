"""Sources that are told to stop, whatever happens meanwhile: they end where they had been, and no earlier."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.engine.driver.phases import Phases, Shift
from penstock.engine.driver.positions import Positions
from penstock.engine.driver.tally import Tally
from penstock.engine.plan.layout import lay_out
from penstock.engine.protocol.messages import BatchEnd, Halted, Report, Reports, StartQuery
from penstock.engine.protocol.progress import Phase, ShiftState
from penstock.metrics.counters import ReplicaCounters
from penstock.topology import Topology

from ..made import Published

SLOT = ("s", 0)


class Source:
    """One slot of one shift, and the driver's books of it."""

    def __init__(self, folder: Path) -> None:
        topology = Topology("t", pool=1)
        topology.operator("o", print, inputs=topology.source("s"))
        self.tally = Tally(topology)
        self.positions = Positions(folder / "positions.json")
        self.positions.begin(0, {SLOT: 0})
        self.phases = Phases(self.tally, self.positions, Published())
        supervisor: Any = SimpleNamespace(generation=0)
        self.shift = Shift(0, lay_out(topology, {"o": [0]}), supervisor)
        self.phases.open(self.shift)
        self.batch = self.heard = 0
        self.begin()

    @property
    def generation(self) -> int:
        return self.shift.supervisor.generation

    def begin(self) -> None:
        answer = self.phases.start(self.shift, StartQuery(self.generation, *SLOT, self.batch))
        self.first = self.position = answer.position
        self.until, self.told = answer.until, 0

    def report(self) -> None:
        counters = ReplicaCounters(processed=self.position - self.first)
        self.tally.enter(Reports("h", 1, 0, [Report(self.generation, self.batch, *SLOT, counters)]), 0.0)
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
        mine = self.phases.current.of(0)
        if mine.since > self.told:
            said = Halted(self.generation, *SLOT, self.batch, self.position, mine.since)
            answer = self.phases.halted(self.shift, said)
            self.until = self.until if answer.until is None else answer.until
            self.told = mine.since
        if mine.phase is Phase.SENDING:
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
        acts = {"pause": source.phases.pause, "resume": lambda: source.phases.resume(source.shift)}
        acts["stop"] = source.phases.stop
        end = None
        for doing in doings:
            acts.get(doing, getattr(source, doing, None))()
            if end is not None:
                source.work()
                assert source.position == end
            elif source.phases.stopped:
                source.work()
                assert source.position >= source.heard
                end = source.position
                assert source.shift.halted == {SLOT: end}
        assert source.phases.current.of(0).phase is Phase.HALTED or not source.phases.stopped


# ── from phase to phase ─────────────────────────────────────────────────────────────────────────────────────────────


class Two:
    """A shift at work, and the next."""

    def __init__(self, folder: Path) -> None:
        topology = Topology("t", pool=1)
        topology.operator("o", print, inputs=topology.source("s"))
        layout, supervisor = lay_out(topology, {"o": [0]}), SimpleNamespace(generation=0)
        self.published = Published()
        self.phases = Phases(Tally(topology), Positions(folder / "positions.json"), self.published)
        self.last, self.following = (Shift(number, layout, supervisor) for number in (0, 1))  # type: ignore[arg-type]
        self.phases.open(self.last)

    @property
    def now(self) -> list[str]:
        """What the last shift does, and the next."""
        return [self.phases.current.of(number).phase.value for number in (0, 1)]


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


def test_a_shift_from_its_start_to_its_end(two: Two) -> None:
    seen = [two.now]
    for step in (
        two.phases.pause,
        lambda: two.phases.take_over(two.last, two.following),
        lambda: two.phases.write(two.last, 7),
        lambda: two.phases.end(two.last),
    ):
        step()
        seen.append(two.now)
    assert seen == [
        ["sending", "starting"],
        ["halted", "starting"],
        ["finishing", "sending"],
        ["writing", "sending"],
        ["over", "sending"],
    ]
    versions = [one.version for one in two.published]
    assert versions == list(range(2, 7))


def test_the_next_may_process_in_order_when_the_last_is_over(two: Two) -> None:
    two.phases.pause()
    two.phases.take_over(two.last, two.following)
    assert not two.phases.current.is_turn_of(1)
    two.phases.end(two.last)
    assert two.phases.current.is_turn_of(1)


def test_only_the_generation_that_has_finished_writes(two: Two) -> None:
    two.phases.take_over(two.last, two.following)
    since = two.phases.current.of(0).since
    two.phases.write(two.last, 7)
    assert two.phases.current.of(0) == ShiftState(Phase.WRITING, since, generation=7)


def test_what_the_user_has_stopped_stays_so_in_the_next_shift(two: Two) -> None:
    two.phases.stop()
    two.phases.take_over(two.last, two.following)
    assert two.now == ["finishing", "halted"]
    two.phases.resume(two.following)
    assert two.now == ["finishing", "halted"]


def test_a_stop_leaves_a_shift_that_finishes_alone(two: Two) -> None:
    two.phases.pause()
    two.phases.take_over(two.last, two.following)
    before = two.phases.current.of(0)
    two.phases.stop()
    assert two.phases.current.of(0) == before
    assert two.now == ["finishing", "halted"]


def test_the_run_begins_and_closes(two: Two) -> None:
    two.phases.begin(12.5)
    assert (two.phases.current.epoch_s, two.phases.current.closing) == (12.5, False)
    two.phases.close()
    assert (two.phases.current.epoch_s, two.phases.current.closing) == (12.5, True)
    assert two.now == ["sending", "starting"]
