"""How attempts begin: numbered on from those of earlier drivers, with all sinks, state and workers ready for them."""

from __future__ import annotations

import itertools
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.engine.driver.channel import ControlServer
from penstock.engine.driver.checkpoints import Checkpoints
from penstock.engine.driver.places import PlaceBook
from penstock.engine.driver.routing import RoutingTable
from penstock.engine.driver.standby import Standbys
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


@dataclass(frozen=True)
class Attempted:
    """What is attempted until it is over: a shift on its layout, or in micro-batch mode all batches.

    `prepare` is called with the generation before each attempt begins.
    """

    shift: int
    layout: Layout
    prepare: Callable[[int], None]
    may_stand_by: Callable[[], bool] = lambda: False  # whether the next attempt may wait beside the one at work


class Attempts:
    """Makes the program of each attempt; knows where its replicas listen, and what to look out for in the next one."""

    address: DriverAddress  # of the driver, once it listens

    def __init__(
        self, job: Job, file: KeptFile, routing: RoutingTable, checkpoints: Checkpoints, server: ControlServer
    ) -> None:
        self._job = job
        self.file = file
        self._routing = routing
        self.checkpoints, self._files = checkpoints, job.state_files()
        self.server = server
        self.places = PlaceBook(server)
        self.suspects = Suspects()
        self.first = file.now.generation + 1
        self._numbers = itertools.count(self.first)
        self._token = ""
        self.ending = threading.Event()  # no other begins: sinks that wait for what is away wait no longer

    def supervise(self, query: Query, of: Attempted, checkpoints: Callable[[], int]) -> Supervisor:
        """Who runs the query; `checkpoints` says how many there have been."""

        def program(generation: int) -> Program:
            self.prepare(generation, of)
            return self.program(generation, of)

        standbys = Standbys(query, _OfStandby(self, of), self._numbers) if self._job.options.standby else None
        return Supervisor(query, program, self._job.options, self._numbers, checkpoints, standbys)

    def prepare(self, generation: int, of: Attempted) -> None:
        """All that comes before an attempt's first event."""
        self.file.keep(generation=generation)
        of.prepare(generation)
        self.places.begin(generation, of.layout.of_operators)

    def program(self, generation: int, of: Attempted) -> Program:
        """What the replicas of an attempt are shipped."""
        made = self._job.program(of.layout, self.address, self._routing.current.operators)
        return replace(
            made,
            generation=generation,
            shift=of.shift,
            token=self._token,
            checkpoint=self.checkpoints.first_label(of.shift),
            careful=self.suspects.careful,
            deadly=self.suspects.deadly,
        )

    def recover(self, generation: int) -> None:
        """Have sinks clean up, and state be looked at, before an attempt begins from the last checkpoint."""
        record = self.checkpoints.records.last
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


class _OfStandby:
    """The attempts of one shift, as standbys see them."""

    def __init__(self, attempts: Attempts, of: Attempted) -> None:
        self._attempts, self._of = attempts, of

    def wanted(self) -> bool:
        """While attempts are careful none is: each is shipped what was learnt from the one before."""
        return not self._attempts.suspects.careful and self._of.may_stand_by()

    def program(self, generation: int) -> Program:
        self._attempts.file.keep(generation=generation)
        return replace(self._attempts.program(generation, self._of), standby=True)

    def fits(self, program: Program) -> bool:
        suspects = self._attempts.suspects
        return (program.careful, program.deadly) == (suspects.careful, suspects.deadly)

    def call(self, generation: int) -> None:
        self._attempts.prepare(generation, self._of)
        self._attempts.checkpoints.call(generation, self._of.shift)

    def there(self, generation: int) -> bool:
        return self._attempts.server.known(generation) >= self._of.layout.tasks
