"""An engine without Spark: programs, batches as Spark would hand them over, and the driver's end of the channel."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from types import SimpleNamespace
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest

from penstock.engine.driver.channel import ControlServer
from penstock.engine.plan.layout import lay_out_by_level
from penstock.engine.plan.program import DriverAddress, Limits, Program, edges_of
from penstock.engine.protocol.bundle import (
    Barrier,
    Events,
    Header,
    Switch,
    Unpacker,
    pack,
    pack_sign,
    read_header,
    read_sign,
)
from penstock.engine.protocol.messages import (
    Answer,
    AtWork,
    Done,
    OnlineNews,
    OperatorRouting,
    Question,
    Reports,
    Restore,
    Routing,
    Start,
    StartQuery,
    Tables,
    TablesQuery,
)
from penstock.engine.protocol.progress import Progress
from penstock.engine.protocol.tls import Credential
from penstock.engine.worker import agent as agents
from penstock.engine.worker import lifecycle
from penstock.engine.worker.agent import Agent
from penstock.engine.worker.replica import OperatorReplica
from penstock.metrics.counters import ReplicaCounters
from penstock.state.handover import Table
from penstock.state.owners import first_owners
from penstock.topology import Topology
from penstock.topology.event_type import event_type
from tests.waiting import until

from . import made

NOWHERE = DriverAddress("127.0.0.1", 1, b"", 60.0)


class Batch:
    """Rows as Spark hands them to Python."""

    def __init__(self, bundles: Iterable[bytes]) -> None:
        self._bundles = list(bundles)

    def column(self, number: int) -> SimpleNamespace:
        assert number == 1
        return SimpleNamespace(to_pylist=lambda: self._bundles)


@dataclass
class Row:
    """A bundle as it left: the partition it goes to first, its header and its events by column."""

    partition: int
    header: Header
    ids: list[str]
    born: list[float]
    events: list[Any]
    back: tuple[str, int] | None = None


@dataclass
class Left:
    """All that left a replica: bundles, switches and barriers."""

    bundles: list[Row] = field(default_factory=list)
    signs: list[tuple[int, Header, Switch | Barrier]] = field(
        default_factory=list
    )  # with the partition they go to first

    @property
    def ids(self) -> list[str]:
        return [one for row in self.bundles for one in row.ids]

    @property
    def events(self) -> list[Any]:
        return [one for row in self.bundles for one in row.events]

    @property
    def barriers(self) -> list[int]:
        """The numbers of the barriers, once for each replica that they went to."""
        return [sign.number for _, _, sign in self.signs if isinstance(sign, Barrier)]


def left(*given: pa.RecordBatch | list[pa.RecordBatch]) -> Left:
    """Read what an outbox gave out."""
    read, unpack = Left(), Unpacker()
    for batch in chain.from_iterable(one if isinstance(one, list) else [one] for one in given):
        for row in batch.to_pylist():
            header = read_header(row["bundle"])
            if not header.events:
                read.signs.append((row["partition"], header, read_sign(row["bundle"])))
                continue
            columns = unpack(row["bundle"])
            read.bundles.append(Row(row["partition"], header, columns.ids, columns.born, columns.events, columns.back))
    return read


def bundle(events: list[Any], *, sender: int = 0, replica: int = 0, first: int = 0, born: float | None = None) -> bytes:
    """Events from a sender, with the numbers from `first` on as ids."""
    ids = [str(first + n) for n in range(len(events))]
    since = time.time() if born is None else born
    return pack(Header(sender, replica, 1, 0, len(events)), Events(ids, [since] * len(events), events))


def barrier(number: int, *, sender: int = 0, replica: int = 0, members: bytes = b"") -> bytes:
    """A barrier from a sender."""
    return pack_sign(Header(sender, replica, 1, 0, 0), Barrier(number, members))


def program_of(
    topology: Topology,
    *,
    address: DriverAddress = NOWHERE,
    run: str = "run",
    active: Mapping[str, tuple[int, ...]] | None = None,
    sources: Mapping[str, Any] | None = None,
    slots: int = 1,
    **changes: Any,
) -> Program:
    """The program that a run of the topology ships; all operators have replica 0 active unless said otherwise."""
    pools = {name: range(operator.pool) for name, operator in topology.operators.items()}
    chosen = dict.fromkeys(topology.operators, (0,)) | dict(active or {})
    operators = {name: (one, event_type(one.run)) for name, one in topology.operators.items()}

    def table(name: str) -> Table | None:
        state = topology[name].state
        return None if state is None else Table(1, first_owners(state.groups, chosen[name]))

    shipped = operators | dict(sources or {})
    settings: dict[str, Any] = {
        "run": run,
        "generation": 0,
        "layout": lay_out_by_level(topology, pools, slots),  # so that what leaves comes out as rows
        "driver": address,
        "limits": Limits(),
        "edges": edges_of(topology),
        "senders": (*topology.sources, *topology.operators),
        "routing": {name: OperatorRouting(replicas, table=table(name)) for name, replicas in chosen.items()},
        "blobs": {name: cloudpickle.dumps(thing) for name, thing in shipped.items()},
        "labels": {name: str(thing) for name, thing in (topology.sources | topology.operators).items()},
        "on_error": {name: thing.on_error for name, thing in (topology.sources | topology.operators).items()},
    }
    return Program(**settings | changes)


class Driver:
    """The driver's end of the control channel, and everything it has heard."""

    def __init__(self, credential: Credential | None = None) -> None:
        self.run = secrets.token_hex(4)
        self.credential = credential
        self.server = ControlServer(self.run)
        self.secret = self.server.secret
        self.heard: list[Reports] = []
        self.questions: list[Question] = []
        self.starts: dict[tuple[str, int], Start] = {}  # where each source slot starts
        self.tables: dict[str, Table] = {}  # with which the attempt begins
        self.restores: dict[str, Restore] = {}  # the state of each operator
        self.gone: list[AtWork] = []  # what processes that are lost were at
        self.silent: list[AtWork] = []  # and those that said nothing any more
        self.port = self.server.start("127.0.0.1", self, credential)
        self.agents: list[Agent] = []

    def hear(self, reports: Reports) -> list[OnlineNews]:
        self.heard.append(reports)
        return []

    def fell_silent(self, last: AtWork, silent_s: float) -> None:
        assert silent_s == self.server._silent_s
        self.silent.append(last)

    def lost(self, last: AtWork) -> None:
        self.gone.append(last)

    def answer(self, question: Question) -> Answer:
        self.questions.append(question)
        if isinstance(question, StartQuery):
            return self.starts.get((question.source, question.slot), Start())
        if isinstance(question, TablesQuery):
            return Tables(self.tables)
        return self.restores.get(question.operator, Restore(0, []))

    def done(self, operator: str, replica: int = 0) -> list[Done]:
        """What a replica, or a slot of a source, has said of checkpoints."""
        said = [one for reports in list(self.heard) for one in reports.done]
        return [one for one in said if (one.operator, one.replica) == (operator, replica)]

    def address(self, **changed: Any) -> DriverAddress:
        return replace(DriverAddress("127.0.0.1", self.port, self.secret, 60.0, self.credential), **changed)

    def agent(self, **address: Any) -> Agent:
        """A replica process's end of the channel, in this process."""
        agent = Agent(self.run, self.address(**address), Routing(0, {}))
        self.agents.append(agent)
        return agent

    def program(self, topology: Topology, *, progress: Progress | None = None, **changes: Any) -> Program:
        """A program of this run; its routing is published, and how far the run is."""
        program = program_of(topology, address=self.address(), run=self.run, **changes)
        self.server.publish(progress or made.progress(1, epoch_s=None))
        self.server.publish(Routing(1, dict(program.routing)))
        self.tables = {name: one.table for name, one in program.routing.items() if one.table is not None}
        return program

    def latest(self, operator: str, replica: int = 0) -> ReplicaCounters | None:
        """What the replica reported last."""
        found = None
        for reports in list(self.heard):
            for report in reports.reports:
                if (report.operator, report.replica) == (operator, replica):
                    found = report.counters
        return found

    def stop(self) -> None:
        """End the server and all agents of the run."""
        mine = [*self.agents, *([one] if (one := agents._agents.get(self.run)) else [])]
        for agent in mine:
            agent.progress = made.progress(1 << 40, closing=True)
        self.server.stop()


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Driver]:
    """A driver, with a parameter one that has this credential; when the test is over it and all its threads end."""
    monkeypatch.setattr(agents, "RETRY_S", 0.01)
    before = set(threading.enumerate())  # a thread of another test must not fail all that come after it
    driver = Driver(getattr(request, "param", None))
    yield driver
    driver.stop()
    lifecycle.close_all()
    until(lambda: not [t for t in threading.enumerate() if t not in before and t.name.startswith("penstock-")])


@dataclass
class Worked:
    """What came of a replica's batch."""

    left: Left
    counters: ReplicaCounters


@pytest.fixture
def work(driver: Driver) -> Callable[..., Worked]:
    """`work(topology, bundles…)`: one replica of the first operator works off a batch; what left it, what it reported.

    Every bundle comes in a batch of its own, as in real-time mode.
    """

    def worked(topology: Topology, *bundles: bytes, replica: int = 0, **program: Any) -> Worked:
        name = next(iter(topology.operators))
        at_work = OperatorReplica(driver.program(topology, **program), 1, name, replica, batch=1)
        rows = list(at_work.run(Batch([one]) for one in bundles))
        events = sum(read_header(one).events for one in bundles if one)

        def all_reported() -> ReplicaCounters | None:
            counters = driver.latest(name, replica)
            done = counters.processed + sum(counters.dropped.values()) if counters is not None else -1
            return counters if done == events else None

        return Worked(left(*rows), until(all_reported))

    return worked


@pytest.fixture(scope="session")
def tools() -> SimpleNamespace:
    """The helpers of this file, for the tests."""
    return SimpleNamespace(Batch=Batch, barrier=barrier, bundle=bundle, left=left, program_of=program_of, until=until)
