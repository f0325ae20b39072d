"""How attempts begin: numbered on from those of earlier drivers, with all sinks, state and workers ready for them."""

from __future__ import annotations

import itertools
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from penstock.engine.driver.channel import Publisher
from penstock.engine.driver.checkpoints import Checkpoints
from penstock.engine.driver.places import PlaceBook
from penstock.engine.driver.routing import RoutingTable
from penstock.engine.driver.supervisor import Supervisor
from penstock.engine.driver.suspects import Suspects
from penstock.engine.plan.job import Job
from penstock.engine.plan.layout import Layout
from penstock.engine.plan.program import DriverAddress, Program
from penstock.engine.plan.queries import Query
from penstock.engine.run_file import KeptFile
from penstock.sinks.base import Recovers, Recovery
from penstock.sinks.waiting import giving_up

TOKEN = "seen-"  # how the name of a file begins that all workers must see

Prepare = Callable[[int], None]


class Attempts:
    """Makes the program of each attempt; knows where its replicas listen, and what to look out for in the next one."""

    address: DriverAddress  # of the driver, once it listens

    def __init__(
        self, job: Job, file: KeptFile, routing: RoutingTable, checkpoints: Checkpoints, publisher: Publisher
    ) -> None:
        self._job = job
        self._file = file
        self._routing = routing
        self._checkpoints, self._files = checkpoints, job.state_files()
        self.places = PlaceBook(publisher)
        self.suspects = Suspects()
        self.first = file.now.generation + 1
        self._numbers = itertools.count(self.first)
        self._token = ""
        self.ending = threading.Event()  # no other begins: sinks that wait for what is away wait no longer

    def supervise(
        self, query: Query, shift: int, layout: Layout, prepare: Prepare, checkpoints: Callable[[], int]
    ) -> Supervisor:
        """Who runs the query; `prepare` is called with the generation before each of its starts."""

        def program(generation: int) -> Program:
            self._file.keep(generation=generation)
            prepare(generation)
            self.places.begin(generation, layout.of_operators)
            return self._program(generation, shift, layout)

        return Supervisor(query, program, self._job.options, self._numbers, checkpoints)

    def _program(self, generation: int, shift: int, layout: Layout) -> Program:
        made = self._job.program(layout, self.address, self._routing.current.operators)
        return replace(
            made,
            generation=generation,
            shift=shift,
            token=self._token,
            checkpoint=self._checkpoints.first_label(shift),
            careful=self.suspects.careful,
            deadly=self.suspects.deadly,
        )

    def recover(self, generation: int) -> None:
        """Have sinks clean up, and state be looked at, before an attempt begins from the last checkpoint."""
        record = self._checkpoints.records.last
        for name, files in self._files.items():
            files.forget_moves()
            if record is not None:
                files.check(record.state.get(name, ()))
        number, parts = (record.number, record.parts) if record is not None else (0, {})
        self._recover_sinks(generation, number, parts)

    def recover_batch(self, generation: int, batch: int) -> None:
        """The same in micro-batch mode: all that is of this batch, or of later ones, is done again."""
        for files in self._files.values():
            files.forget_from(batch)
        self._recover_sinks(generation, batch, {})

    def _recover_sinks(self, generation: int, checkpoint: int, parts: Mapping[str, Mapping[int, Any]]) -> None:
        for name, operator in self._job.topology.operators.items():
            sink: Any = operator.run
            if isinstance(sink, Recovers):
                folder = self._job.storage / "sinks" / name
                with giving_up(self.ending):
                    sink.recover(Recovery(self._job.run, name, generation, checkpoint, parts.get(name, {}), folder))

    def leave_token(self) -> str:
        """A new file that workers are to see, if the run keeps anything that they share."""
        storage = self._job.storage
        for name in storage.names():
            if name.startswith(TOKEN):
                storage.remove(name)
        self._token = f"{TOKEN}{secrets.token_hex(6)}" if self._job.shares else ""
        if self._token:
            storage.write(self._token, self._job.run.encode())
        return self._token
