"""What each shift is made of: a query of its own, and a program for every time that it is started."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import cloudpickle
import msgspec
from pyspark.sql import DataFrame, SparkSession

from penstock.engine.binding import AnySource
from penstock.engine.driver.rota import Books
from penstock.engine.driver.supervisor import Supervisor
from penstock.engine.options import RunOptions
from penstock.engine.plan.layout import Layout
from penstock.engine.plan.program import Channel, Limits, Program, edges_of
from penstock.engine.plan.queries import Query
from penstock.engine.run_file import RunFile
from penstock.topology import Topology
from penstock.topology.event_type import event_type

HEAD_START_S = 0.2  # between "all are ready" and the first event


@dataclass(frozen=True)
class Setup:
    """What is run, how, and on which session; its folder has the checkpoints, the state and the logs."""

    topology: Topology
    sources: Mapping[str, AnySource]
    options: RunOptions
    spark: SparkSession
    folder: Path


class Launcher:
    """Makes the supervisors of shifts, and lets the sources begin; the run's file has what a later driver must know."""

    def __init__(self, setup: Setup, file: RunFile, books: Books, channel: Channel) -> None:
        self._setup = setup
        self._file = file
        self._books = books
        self._channel = channel
        self._generations = itertools.count(file.generation + 1)

    def supervise(self, shift: int, layout: Layout, query: Query) -> Supervisor:
        """Who runs a shift."""
        first: list[int] = []

        def program(generation: int) -> Program:
            first.append(generation)
            self._write(generation=generation)
            return replace(self._program(generation, layout), shift=shift, first_generation=first[0])

        return Supervisor(query, program, self._setup.options, self._generations)

    def begin_sources(self) -> None:
        """They began when the run did, whoever drives it."""
        epoch_s = self._file.epoch_s or time.time() + HEAD_START_S
        self._write(epoch_s=epoch_s)
        self._books.routing.change(epoch_s=epoch_s)

    def _write(self, **changes: float) -> None:
        self._file = msgspec.structs.replace(self._file, **changes)
        self._file.write(self._setup.folder)

    def _program(self, generation: int, layout: Layout) -> Program:
        topology, options = self._setup.topology, self._setup.options
        blobs = {name: cloudpickle.dumps((one, event_type(one.run))) for name, one in topology.operators.items()}
        sources = self._setup.sources.items()
        blobs |= {name: cloudpickle.dumps(one) for name, one in sources if not isinstance(one, DataFrame)}
        return Program(
            run=self._file.id,
            generation=generation,
            layout=layout,
            channel=self._channel,
            limits=Limits(options.t_out_s, options.q_size),
            edges=edges_of(topology),
            senders=(*topology.sources, *topology.operators),
            routing=self._books.routing.current.operators,
            blobs=blobs,
            path=tuple(str(Path(entry).resolve()) for entry in sys.path),
            labels={name: str(thing) for name, thing in (topology.sources | topology.operators).items()},
            state_folder=str((self._setup.folder / "state").resolve()),
        )
