"""A job: what is run, how, on which session and in which folder; and the program that is shipped for it."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from penstock.common.files import write_whole
from penstock.common.storage import LocalStorage, Storage
from penstock.engine.binding import AnySource
from penstock.engine.options import RunOptions
from penstock.engine.plan.layout import Layout
from penstock.engine.plan.libraries import libraries_of
from penstock.engine.plan.program import DriverAddress, Limits, Program, edges_of
from penstock.engine.protocol.messages import OperatorRouting
from penstock.state.files import StateFiles
from penstock.topology import Topology
from penstock.topology.event_type import event_type

LARGE_BYTES = 100_000  # an operator or source that is larger travels as a file


@dataclass(frozen=True)
class Job:
    """The folder has the logs, the storage what a restart needs; unless the user says so they are the same."""

    run: str  # its name
    topology: Topology
    sources: Mapping[str, AnySource]
    options: RunOptions
    spark: SparkSession
    folder: Path
    elsewhere: Storage | None = None  # the storage, if it is not in the folder
    check_alone: Callable[[], None] = lambda: None  # raises if another driver has taken the run

    @property
    def storage(self) -> Storage:
        """Where all that a restart needs is kept."""
        return self.elsewhere or LocalStorage(self.folder)

    def spark_folder(self, generation: int) -> Path:
        """What Spark calls the checkpoint of a real-time query; nothing is carried on from there."""
        return self.folder.absolute() / "spark" / str(generation)

    @property
    def frames(self) -> Storage:
        """Where Spark keeps how far it is in a DataFrame."""
        return self.storage / "spark" / "dataframe"

    @property
    def records(self) -> Storage:
        """The folder of the records of checkpoints."""
        return self.storage / "checkpoints"

    @property
    def shares(self) -> bool:
        """Whether workers keep what others read: state, or output that waits for its checkpoint."""
        kept = self.topology.operators.values()
        return any(one.state is not None or getattr(one.run, "level", "") == "committed" for one in kept)

    def state_files(self) -> dict[str, StateFiles]:
        """Of the operators that keep state."""
        kept = [name for name, operator in self.topology.operators.items() if operator.state is not None]
        return {name: StateFiles(self.storage / "state" / name) for name in kept}

    @cached_property
    def _blobs(self) -> dict[str, bytes]:
        """Operators and sources as they are shipped; they may be large, and a restart is to be quick."""
        operators = self.topology.operators.items()
        blobs = {name: cloudpickle.dumps((one, event_type(one.run))) for name, one in operators}
        sources = self.sources.items()
        return blobs | {name: cloudpickle.dumps(one) for name, one in sources if not isinstance(one, DataFrame)}

    @cached_property
    def _files(self) -> dict[str, str]:
        """Large blobs, as files that Spark takes to every executor once; in a task's own bytes all tasks get all.

        Executors that come later ask for them, too, also for other jobs of the session: so they stay as long as it.
        """
        context, files = self.spark.sparkContext, {}
        for name, blob in self._blobs.items():
            if len(blob) > LARGE_BYTES:
                files[name] = f"{hashlib.sha256(blob).hexdigest()[:32]}.blob"  # the same in a session: the same file
                path = Path(context._temp_dir) / files[name]
                if not path.exists():
                    write_whole(path, blob)
                context.addFile(str(path))
        return files

    def libraries(self) -> list[str]:
        """What its workers need that is installed, but for what only a large operator or source needs."""
        return libraries_of(blob for blob in self._blobs.values() if len(blob) <= LARGE_BYTES)

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
            blobs={name: blob for name, blob in self._blobs.items() if name not in self._files},
            files=self._files,
            queue_bytes=options.queue_bytes,
            path=tuple(str(Path(entry).resolve()) for entry in sys.path),
            labels={name: str(thing) for name, thing in declared.items()},
            on_error={name: thing.on_error for name, thing in declared.items()},
            storage_uri=self.options.checkpoints or LocalStorage(self.folder.resolve()).uri,
        )
