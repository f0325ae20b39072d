"""A job: what is run, how, on which session and in which folder; and the program that is shipped for it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from penstock.engine.binding import AnySource
from penstock.engine.options import RunOptions
from penstock.engine.plan.layout import Layout
from penstock.engine.plan.program import DriverAddress, Limits, Program, edges_of
from penstock.engine.protocol.messages import OperatorRouting
from penstock.state.files import StateFiles
from penstock.topology import Topology
from penstock.topology.event_type import event_type


@dataclass(frozen=True)
class Job:
    """The folder has the records of checkpoints, the state and the logs."""

    run: str  # its name
    topology: Topology
    sources: Mapping[str, AnySource]
    options: RunOptions
    spark: SparkSession
    folder: Path

    def spark_folder(self, query: str) -> Path:
        """What Spark calls its checkpoint; only a query over a DataFrame is carried on from there."""
        return self.folder / "spark" / query

    @property
    def records(self) -> Path:
        """The folder of the records of checkpoints."""
        return self.folder / "checkpoints"

    def state_files(self) -> dict[str, StateFiles]:
        """Of the operators that keep state."""
        kept = [name for name, operator in self.topology.operators.items() if operator.state is not None]
        return {name: StateFiles(self.folder / "state" / name) for name in kept}

    @cached_property
    def _blobs(self) -> dict[str, bytes]:
        """Operators and sources as they are shipped; they may be large, and a restart is to be quick."""
        operators = self.topology.operators.items()
        blobs = {name: cloudpickle.dumps((one, event_type(one.run))) for name, one in operators}
        sources = self.sources.items()
        return blobs | {name: cloudpickle.dumps(one) for name, one in sources if not isinstance(one, DataFrame)}

    def program(self, layout: Layout, driver: DriverAddress, routing: Mapping[str, OperatorRouting]) -> Program:
        """What replicas on this layout need to know; generation and shift are the driver's to say."""
        topology, options = self.topology, self.options
        declared = topology.sources | topology.operators
        return Program(
            run=self.run,
            generation=0,
            layout=layout,
            driver=driver,
            limits=Limits(options.t_out_s, options.q_size),
            edges=edges_of(topology),
            senders=(*topology.sources, *topology.operators),
            routing=routing,
            blobs=self._blobs,
            queue_bytes=options.queue_bytes,
            path=tuple(str(Path(entry).resolve()) for entry in sys.path),
            labels={name: str(thing) for name, thing in declared.items()},
            on_error={name: thing.on_error for name, thing in declared.items()},
            folder=str(self.folder.resolve()),
        )
