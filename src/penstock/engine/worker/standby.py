"""What runs in a process of a standby, which waits for the attempt at work to die: all that can be done before."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from queue import SimpleQueue
from typing import Any

from penstock.engine.plan.program import Program
from penstock.engine.protocol.messages import AtWork
from penstock.engine.worker.agent import agent_for
from penstock.engine.worker.lifecycle import opened
from penstock.sinks.base import takes_part
from penstock.topology import ReplicaId


class ReadAhead:
    """The input of a task, in which no row comes: its end is noticed while nobody takes anything from it."""

    def __init__(self, batches: Iterable[Any], at_end: Callable[[], None]) -> None:
        self.ended = threading.Event()
        self._batches, self._at_end = batches, at_end
        self._read: SimpleQueue[Any] = SimpleQueue()
        self._broken: BaseException | None = None
        threading.Thread(target=self._run, name="penstock-standby", daemon=True).start()

    def _run(self) -> None:
        try:
            for batch in self._batches:
                self._read.put(batch)
        except BaseException as error:  # it belongs to whoever takes the input
            self._broken = error
        finally:
            self._read.put(None)
            self.ended.set()
            self._at_end()

    def __iter__(self) -> Iterator[Any]:
        while (batch := self._read.get()) is not None:
            yield batch
        if self._broken is not None:
            raise self._broken


class Waiting:
    """One replica, or slot of a source, until its attempt is called; `batches` is its input."""

    def __init__(self, program: Program, me: ReplicaId, batch: int, batches: Iterable[Any]) -> None:
        self._program, self._batch = program, batch
        self._name, self._replica = me
        self._agent = agent_for(program)
        self.batches = ReadAhead(batches, self._agent.wake_standby)

    def await_call(self) -> Program | None:
        """The program as it is when the standby goes to work; None if the run, or its input, ends before.

        The routing is one that the driver has published meanwhile, so checkpoints are of all replicas that are in it.
        """
        agent, program = self._agent, self._program
        agent.introduce(AtWork(program.generation, self._name, self._replica))
        self._get_ready()
        call = agent.wait_for_call(program.generation, self.batches.ended)
        if call is None:
            return None
        return replace(program, routing=agent.routing.operators, checkpoint=call.checkpoint)

    def _get_ready(self) -> None:
        """Import what the source or operator needs, and open the operator.

        One that takes part in checkpoints is opened when it is called: until then its place at the database or the
        broker is that of the replica at work.
        """
        program, name = self._program, self._name
        if name not in program.routing:
            program.source(name)
        elif not takes_part(program.operator(name)[0].run):
            opened(program, name, self._replica, self._batch)
