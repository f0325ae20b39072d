"""Micro-batch mode, beside Spark's driver: one query over a DataFrame, every batch compiled anew.

The way to read what only Spark's connectors read. Stages run one after another over the active replicas only, and a
change of replicas takes effect with the next batch. Spark's own checkpoint says where the DataFrame is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from penstock.common.storage import Place, Storage, storage_at
from penstock.engine.driver.causes import Cause
from penstock.engine.driver.supervisor import Supervisor
from penstock.engine.plan.layout import Layout, lay_out_by_level
from penstock.engine.plan.program import Edge, MicroBatch, Program
from penstock.engine.plan.queries import compile_program, complaints_of, is_there
from penstock.engine.protocol.messages import OperatorRouting, Question, Start, StartQuery, Utilisations
from penstock.errors import EngineError, InputError
from penstock.topology import Topology

ROUND_ROBIN = "shuffle"


class SourcesStopped(Exception):  # noqa: N818 - an end, not a fault
    """Ends a query over a DataFrame before its next batch."""


@dataclass
class MicroBatchQuery:
    """A query over the rows of a DataFrame, the only source of the topology."""

    frame: DataFrame
    checkpoint: Storage
    topology: Topology
    routing: Callable[[], tuple[Mapping[str, OperatorRouting], Utilisations]]  # with which the next batch begins
    finishing: bool = field(default=False, init=False)
    unfinished: bool = field(default=False, init=False)  # a batch has begun and not ended, whatever counters say

    def start(self, program: Program) -> StreamingQuery:
        """Start from the checkpoint."""
        return (
            self.frame.writeStream.foreachBatch(lambda rows, batch: self._run_batch(program, rows, batch))
            .option("checkpointLocation", self.checkpoint.uri)
            .start()
        )

    def complaints(self, query: StreamingQuery) -> list[str]:
        """What its tasks that failed said, each for itself."""
        return complaints_of(self.frame.sparkSession, query)

    def can_start(self) -> bool:
        """Whether Spark is still there to run it."""
        return is_there(self.frame.sparkSession)

    def _run_batch(self, program: Program, rows: DataFrame, batch: int) -> None:
        died, self.unfinished = self.unfinished, True  # before it looks whether it is to end
        if self.finishing:
            self.unfinished = died
            raise SourcesStopped  # the batch has not begun and stays in the DataFrame's source
        program = self.program_of(program, batch)
        compile_program(rows, program).write.format("noop").mode("append").save()
        self.unfinished = False

    def program_of(self, program: Program, batch: int) -> Program:
        """The program of one batch: over the replicas that are active now, which stay so while it lasts."""
        (routing, used), (source,) = self.routing(), self.topology.sources
        active = {name: one.active for name, one in routing.items()}
        layout = lay_out_by_level(self.topology, active, source_slots=len(program.layout.stages[0]))
        edges = {sender: tuple(map(_fixed, out)) for sender, out in program.edges.items()}
        return replace(
            program,
            layout=layout,
            routing=routing,
            edges=edges,
            checkpoint=batch + 1,
            microbatch=MicroBatch(batch, source, used),
        )


def _fixed(edge: Edge) -> Edge:
    """All senders of a batch are done before a replica begins: the online shuffle would hear nothing in time."""
    return edge if edge.online is None else replace(edge, grouping=ROUND_ROBIN, key=None, online=None)


class MicroBatches:
    """The query at work, in the place of shifts."""

    lasting = False  # Spark ends processes that have had no batch for a minute

    def __init__(self, query: MicroBatchQuery, supervise: Callable[[Layout], Supervisor]) -> None:
        self._query = query
        self._supervise = supervise
        self._supervisor: Supervisor
        self.layout: Layout

    def open(self, layout: Layout) -> None:
        """Start the query."""
        self.layout = layout
        self._supervisor = self._supervise(layout)
        self._supervisor.start()

    def await_ready(self) -> None:
        """The DataFrame does not wait."""

    def stop_sources(self) -> None:
        """Begin no other batch."""
        self._query.finishing = True

    def stop(self) -> None:
        """End the query."""
        self._supervisor.stop()

    def all_sent(self) -> bool:
        """Whether no batch has begun and not ended."""
        return not self._query.unfinished

    @property
    def query(self) -> None:
        """Every batch is a job of its own."""

    @property
    def failure(self) -> EngineError | None:
        """Why the query has ended for good, if it has."""
        return self._supervisor.failure

    @property
    def restarts(self) -> int:
        """How often it was started again."""
        return self._supervisor.restarts

    def is_ready(self) -> bool:
        """They come and go with every batch."""
        return True

    def all_read(self) -> bool:
        """A DataFrame may always have more."""
        return False

    def is_starting(self, generation: int) -> bool:  # noqa: ARG002 - as of shifts
        """There is never a next shift."""
        return False

    def checkpoint_now(self, timeout_s: float) -> bool:  # noqa: ARG002 - as of shifts
        """Every batch is one."""
        return True

    def check(self, question: Question) -> None:
        """Replicas of a micro-batch know everything from the start."""
        raise EngineError(f"a replica asked in micro-batch mode: {question}")

    def start_of(self, question: StartQuery) -> Start:
        """The same."""
        self.check(question)
        raise AssertionError

    def take_over(self, layout: Layout) -> float:  # noqa: ARG002 - as of shifts
        """There is nothing to be laid out anew."""
        raise InputError("pools: in micro-batch mode every batch is laid out anew over the active replicas")

    def wait_settled(self, timeout_s: float) -> bool:  # noqa: ARG002 - as of shifts
        """There is never an earlier shift."""
        return True

    def give_up(self, generation: int, cause: Cause) -> None:
        """Never: processes come and go with batches."""

    def suspect(self, generation: int, pid: int, said: str) -> None:
        """Likewise."""

    def renew(self, between: Callable[[], None]) -> None:
        """Owners of key groups change between batches only: there is never a change to be taken back."""


def next_batch(place: Place) -> int:
    """The batch that Spark does next from what it keeps there: the one after the last that was committed."""
    done = [int(name) for name in (storage_at(place) / "commits").names() if name.isdecimal()]
    return max(done, default=-1) + 1
