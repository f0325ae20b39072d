"""A topology: a DAG of operators, declared in plain Python.

>>> topology = Topology("shout")
>>> words = topology.source("words")
>>> loud = topology.operator("loud", lambda e: {"word": e["word"].upper()}, inputs=words, pool=2)
>>> end = topology.operator("end", print, inputs=loud)
>>> [level for level in topology.levels()]
[('loud',), ('end',)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

from penstock.errors import TopologyError
from penstock.topology import validation
from penstock.topology.on_error import DEAD_LETTERS
from penstock.topology.operator import (
    DEFAULT_STREAM,
    KEY_GROUPS,
    Function,
    Keyed,
    Operator,
    Process,
    SourceSpec,
    StateFunction,
    Stream,
)
from penstock.topology.place import caller_place

Input = Operator | SourceSpec | Stream | str


class Topology:
    """Operators and sources by name; `check()` says whether it can run."""

    def __init__(self, name: str, *, pool: int = 4) -> None:
        self.name = name
        self.pool = pool
        self.sources: dict[str, SourceSpec] = {}
        self.operators: dict[str, Operator] = {}

    def source(self, name: str, *, on_error: str = "fail") -> SourceSpec:
        """Declare where events enter. `on_error`: what becomes of one that cannot be decoded or sent, as below."""
        spec = SourceSpec(name, caller_place(), on_error)
        validation.check_name(str(spec), name, [*self.sources.values(), *self.operators.values()])
        validation.check_on_error(spec)
        self.sources[name] = spec
        self._forget_derived()
        return spec

    def operator(
        self,
        name: str,
        run: Function | StateFunction | Process,
        *,
        inputs: Input | Iterable[Input],
        outputs: str | Iterable[str] = DEFAULT_STREAM,
        pool: int | None = None,
        grouping: str | None = None,
        key: str | Callable[[Any], object] | None = None,
        execution_time_ms: float | None = None,
        selectivity: float | Mapping[str, float] | None = None,
        cost_by: str | Callable[[Any], object] | None = None,
        on_error: str = "fail",
        key_groups: int = KEY_GROUPS,
        expire_after_s: float | None = None,
    ) -> Operator:
        """Declare an operator.

        `inputs`: what it reads: operators, sources, their streams (`dispatch["news"]`), or names (`"dispatch.news"`).
        `pool`: the replicas it may at most have. `grouping`: who gets each event (`shuffle`; `fields`, the default
        with a `key`; `load_balancing`; `pull`, whoever has room; `online_shuffle`, which takes options:
        `online_shuffle:window=128,mu=0.1`).
        `cost_by`: the field, or a function of the event, on which its time depends, for `online_shuffle` to learn times
        by. `on_error`: what becomes of an event that fails: `fail` ends the run, `drop` leaves it out, `dead_letter`
        sends it to who reads the stream `dead_letters`. `retry:n` calls `run` up to n times again before that, with
        pauses: `retry:n` fails then, `retry:n,drop` and `retry:n,dead_letter` do not.

        An operator of two parameters, event and state, keeps state for each `key`. `key_groups`: how many groups its
        keys are hashed into, the units that move when replicas change. `expire_after_s`: a key that no event has
        touched for longer starts anew.
        """
        names = (outputs,) if isinstance(outputs, str) else tuple(outputs)
        if selectivity is None:
            selectivity = {}
        declared = Operator(
            name=name,
            run=run,
            inputs=tuple(_stream(one) for one in _listed(inputs)),
            outputs=names,
            pool=self.pool if pool is None else pool,
            grouping=grouping or ("fields" if key is not None else "shuffle"),
            key=key,
            execution_time_ms=execution_time_ms,
            selectivity=selectivity if isinstance(selectivity, Mapping) else dict.fromkeys(names, selectivity),
            on_error=on_error,
            place=caller_place(),
            cost_by=cost_by,
            state=Keyed(key_groups, expire_after_s),
        )
        return self._taken_in(declared)

    def _taken_in(self, declared: Operator) -> Operator:
        """The operator with what follows from its declaration, once it keeps all rules."""
        validation.check_declared_streams(declared)
        operator = validation.with_state(validation.with_grouping(validation.with_letters(declared)))
        validation.check_name(str(operator), operator.name, [*self.sources.values(), *self.operators.values()])
        validation.check_operator(operator)
        self.operators[operator.name] = operator
        self._forget_derived()
        return operator

    def dead_letters(
        self, run: Function | Process, *, name: str = DEAD_LETTERS, pool: int = 1, **operator: Any
    ) -> Operator:
        """Declare the operator, a sink most often, that reads the dead letters of all that were declared so far."""
        declared: list[SourceSpec | Operator] = [*self.sources.values(), *self.operators.values()]
        inputs = [one[DEAD_LETTERS] for one in declared if DEAD_LETTERS in one.outputs]
        if not inputs:
            raise TopologyError(f"topology {self.name!r}: there are no dead letters: no on_error is 'dead_letter' yet")
        return self.operator(name, run, inputs=inputs, pool=pool, **operator)

    def check(self) -> None:
        """Raise a TopologyError unless the topology can run."""
        validation.check_graph(self)

    def replaced(self, name: str, **changes: Any) -> None:
        """Declare an operator anew with some parts changed (a pool from the command line, say)."""
        operator = replace(self[name], **changes)
        if "grouping" in changes:
            operator = validation.with_grouping(operator)
        if "on_error" in changes:
            operator = validation.with_letters(operator)
        validation.check_operator(operator)
        self.operators[name] = operator
        self._forget_derived()

    def tuned(
        self,
        *,
        grouping: str | None = None,
        pools: Mapping[str, int] | None = None,
        times_ms: Mapping[str, float] | None = None,
    ) -> Topology:
        """A copy with another grouping for operators without a key, and other pools and execution times."""
        tuned = copy(self)
        tuned.sources, tuned.operators = dict(self.sources), dict(self.operators)
        for name, operator in self.operators.items():
            if grouping is not None and operator.key is None:
                tuned.replaced(name, grouping=grouping)
        for name, pool in (pools or {}).items():
            tuned.replaced(name, pool=pool)
        for name, time_ms in (times_ms or {}).items():
            tuned.replaced(name, execution_time_ms=time_ms)
        return tuned

    def _forget_derived(self) -> None:
        for derived in ("_graph", "_depths", "sinks"):
            self.__dict__.pop(derived, None)

    def __getitem__(self, name: str) -> Operator:
        try:
            return self.operators[name]
        except KeyError:
            known = ", ".join(self.operators) or "none"
            raise TopologyError(f"topology {self.name!r}: no operator {name!r}; known: {known}") from None

    @cached_property
    def _graph(self) -> dict[str, tuple[str, ...]]:
        return {o.name: tuple(dict.fromkeys(s.sender for s in o.inputs)) for o in self.operators.values()}

    def predecessors(self, name: str) -> tuple[str, ...]:
        """Operators and sources that feed the operator."""
        return self._graph[name]

    def receivers(self, stream: Stream) -> tuple[str, ...]:
        """Operators that read the stream, in order of declaration; each gets every event of it."""
        return tuple(o.name for o in self.operators.values() if stream in o.inputs)

    def successors(self, name: str) -> tuple[str, ...]:
        """Operators that read any stream of the operator or source."""
        return tuple(o for o, senders in self._graph.items() if name in senders)

    @cached_property
    def sinks(self) -> tuple[str, ...]:
        """Operators of which nobody reads anything but dead letters."""
        read = {s.sender for o in self.operators.values() for s in o.inputs if s.name != DEAD_LETTERS}
        return tuple(name for name in self.operators if name not in read)

    def level(self, name: str) -> int:
        """0 for a source; an operator is one above its deepest predecessor."""
        return self._depths[name]

    @cached_property
    def _depths(self) -> dict[str, int]:
        depths = dict.fromkeys(self.sources, 0)
        for name in validation.topological_order(self):
            depths[name] = 1 + max(depths[sender] for sender in self._graph[name])
        return depths

    def levels(self) -> list[tuple[str, ...]]:
        """The operators of each level, from level 1 on."""
        height = max(self._depths.values())
        return [tuple(o for o in self.operators if self._depths[o] == n) for n in range(1, height + 1)]

    def in_order(self) -> list[str]:
        """Operators in topological order."""
        return [name for level in self.levels() for name in level]


def _listed(inputs: Input | Iterable[Input]) -> list[Input]:
    return [inputs] if isinstance(inputs, Operator | SourceSpec | Stream | str) else list(inputs)


def _stream(reference: Input) -> Stream:
    if isinstance(reference, Stream):
        return reference
    if isinstance(reference, str):
        sender, _, name = reference.partition(".")
        return Stream(sender, name or DEFAULT_STREAM)
    return Stream(reference.name)
