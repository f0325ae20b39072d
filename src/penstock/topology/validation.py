"""The rules a topology must keep, each with a message that names operator, rule, value and place."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

import cloudpickle
import msgspec

from penstock.common.checks import is_whole
from penstock.common.names import hint
from penstock.errors import InputError, TopologyError
from penstock.grouping.names import GROUPINGS, LATE, SIMULATED_ONLY
from penstock.grouping.spec import parse_grouping
from penstock.topology.event_type import event_type
from penstock.topology.on_error import DEAD_LETTERS, parse_on_error
from penstock.topology.operator import (
    DEFAULT_STREAM,
    KEY_GROUPS,
    Keyed,
    Operator,
    Process,
    SourceSpec,
    with_dead_letters,
)
from penstock.topology.state_type import check_state, keeps_state, state_type

if TYPE_CHECKING:
    from penstock.topology.topology import Topology

MOST_GROUPS = 32768
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def check_name(thing: str, name: str, declared: Iterable[Operator | SourceSpec]) -> None:
    """Names are words and are used once."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise TopologyError(f"{thing}: a name is a letter or _ followed by letters, digits, _ or -; got {name!r}")
    for other in declared:
        if other.name == name:
            raise TopologyError(f"{thing}: the name {name!r} is already taken by {other}")


def with_grouping(operator: Operator) -> Operator:
    """The operator with the name and the options that the text of its grouping gives."""
    try:
        name, options = parse_grouping(operator.grouping)
    except InputError as error:
        raise TopologyError(f"{operator}: {error}") from None
    return dataclasses.replace(operator, grouping=name, grouping_options=options)


def check_declared_streams(operator: Operator) -> None:
    """The stream of dead letters is none that can be declared."""
    if DEAD_LETTERS in operator.outputs:
        raise TopologyError(
            f"{operator}: the stream {DEAD_LETTERS!r} is for events that fail: it comes with on_error='dead_letter'"
        )


def check_on_error(thing: Operator | SourceSpec) -> None:
    """The rule for events that fail is one that there is."""
    try:
        parse_on_error(thing.on_error)
    except InputError as error:
        raise TopologyError(f"{thing}: {error}") from None


def with_letters(operator: Operator) -> Operator:
    """The operator with a stream for its dead letters, of which none are expected, if it is to have any."""
    check_on_error(operator)
    outputs = with_dead_letters(operator.outputs, operator.on_error)
    selectivity = {name: value for name, value in operator.selectivity.items() if name != DEAD_LETTERS}
    if DEAD_LETTERS in outputs:
        selectivity[DEAD_LETTERS] = 0.0
    return dataclasses.replace(operator, outputs=outputs, selectivity=selectivity)


def with_state(operator: Operator) -> Operator:
    """The operator with the type of its state, or without any state; options of state are for those that keep some."""
    given = operator.state or Keyed()
    if not keeps_state(operator.run):
        for option, default in (("key_groups", KEY_GROUPS), ("expire_after_s", None)):
            value = given.groups if option == "key_groups" else given.expire_after_s
            if value != default:
                raise TopologyError(
                    f"{operator}: {option} is for operators with state, process(event, state); this has none"
                )
        return dataclasses.replace(operator, state=None)
    try:
        kind = state_type(operator.run)
    except Exception as error:
        raise TopologyError(f"{operator}: the type of its state cannot be read: {error}") from error
    return dataclasses.replace(operator, state=dataclasses.replace(given, kind=kind))


def check_operator(operator: Operator) -> None:
    """Rules that need to know nothing but the operator itself."""
    if not is_whole(operator.pool, 1):
        raise TopologyError(f"{operator}: pool must be at least 1; got {operator.pool!r}")
    if operator.grouping not in (*GROUPINGS, *SIMULATED_ONLY):
        near = hint(operator.grouping, GROUPINGS)
        raise TopologyError(
            f"{operator}: grouping must be one of {', '.join(GROUPINGS)}; got {operator.grouping!r}{near}"
        )
    if operator.grouping == "fields" and operator.key is None:
        raise TopologyError(f"{operator}: grouping 'fields' needs a key; got none")
    if operator.grouping in LATE and operator.key is not None:
        raise TopologyError(
            f"{operator}: grouping {operator.grouping!r} gives events to whichever replica has room, and a key wants "
            "the same one for all its events: leave out the key, or use 'fields'"
        )
    if not operator.inputs:
        raise TopologyError(f"{operator}: an operator needs at least one input; got none")
    for stream in operator.inputs:
        if operator.inputs.count(stream) > 1:
            raise TopologyError(f"{operator}: reads '{stream}' twice")
    if not operator.outputs or len(set(operator.outputs)) < len(operator.outputs):
        raise TopologyError(f"{operator}: output streams must be named, each once; got {operator.outputs!r}")
    _check_numbers(operator)
    _check_run(operator)
    if operator.state is not None:
        _check_state(operator, operator.state)


def _check_numbers(operator: Operator) -> None:
    time_ms = operator.execution_time_ms
    if time_ms is not None and not (math.isfinite(time_ms) and time_ms > 0):
        raise TopologyError(f"{operator}: execution_time_ms must be above 0; got {time_ms!r}")
    for stream, value in operator.selectivity.items():
        if stream not in operator.outputs:
            raise TopologyError(
                f"{operator}: selectivity names the stream {stream!r}; its streams are {', '.join(operator.outputs)}"
            )
        if not (math.isfinite(value) and value >= 0):
            raise TopologyError(f"{operator}: selectivity must not be negative; got {value!r} for {stream!r}")


def _check_run(operator: Operator) -> None:
    run = operator.run
    if isinstance(run, type):
        raise TopologyError(f"{operator}: give an instance of {run.__name__}, not the class itself")
    if not callable(run) and not isinstance(run, Process):
        raise TopologyError(f"{operator}: needs a function or an object with process(event); got {run!r}")
    try:
        event_type(run)
    except Exception as error:
        raise TopologyError(f"{operator}: the type of its events cannot be read: {error}") from error


def _check_state(operator: Operator, state: Keyed) -> None:
    if operator.key is None:
        raise TopologyError(f"{operator}: process(event, state) keeps state by key, and needs a key; got none")
    if operator.grouping != "fields":
        raise TopologyError(
            f"{operator}: with state, events go to the replica that has their key: grouping must be 'fields'; "
            f"got {operator.grouping!r}"
        )
    if hasattr(operator.run, "process_many"):
        raise TopologyError(f"{operator}: process_many knows no state; leave it out, or process(event, state)")
    groups = state.groups
    if not is_whole(groups, operator.pool, MOST_GROUPS):
        raise TopologyError(
            f"{operator}: key_groups must be from its pool, {operator.pool}, to {MOST_GROUPS}; got {groups!r}"
        )
    expire_s = state.expire_after_s
    if expire_s is not None and not (math.isfinite(expire_s) and expire_s > 0):
        raise TopologyError(f"{operator}: expire_after_s must be above 0; got {expire_s!r}")
    try:
        check_state(operator.run, state.kind)
    except Exception as error:
        raise TopologyError(
            f"{operator}: the state of a new key cannot be made: {error}; annotate `state` with a type that msgspec "
            "knows, or give the class new_state()"
        ) from error


def check_graph(topology: Topology) -> None:
    """Rules over the whole: sources, references, cycles, reach, and what can be shipped to a worker."""
    if not topology.operators:
        raise TopologyError(f"topology {topology.name!r}: needs at least one operator; got none")
    if not topology.sources:
        raise TopologyError(f"topology {topology.name!r}: needs at least one source; got none")
    for operator in topology.operators.values():
        _check_references(topology, operator)
    _check_reach(topology)
    topological_order(topology)
    for source in topology.sources.values():
        _check_streams_read(topology, source)
    for operator in topology.operators.values():
        _check_streams_read(topology, operator)
        _check_shippable(operator)


def _check_references(topology: Topology, operator: Operator) -> None:
    for stream in operator.inputs:
        if stream.sender in topology.sources:
            outputs = topology.sources[stream.sender].outputs
        elif stream.sender in topology.operators:
            outputs = topology.operators[stream.sender].outputs
        else:
            known = ", ".join([*topology.sources, *topology.operators])
            raise TopologyError(f"{operator}: reads {stream.sender!r}, which does not exist; known: {known}")
        if stream.name not in outputs:
            raise TopologyError(
                f"{operator}: reads '{stream}', but {stream.sender!r} has no stream {stream.name!r}; "
                f"its streams: {', '.join(outputs)}"
            )


def topological_order(topology: Topology) -> list[str]:
    """Operators so that each comes after all it reads from."""
    graph = {o: [s for s in topology.predecessors(o) if s in topology.operators] for o in topology.operators}
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        round_trip = error.args[1]
        first = topology.operators[round_trip[0]]
        raise TopologyError(f"{first}: a topology has no cycles; got {' → '.join(round_trip)}") from None


def _check_reach(topology: Topology) -> None:
    reached, frontier = set(topology.sources), list(topology.sources)
    while frontier:
        new = [o for o in topology.successors(frontier.pop()) if o not in reached]
        reached.update(new)
        frontier.extend(new)
    for operator in topology.operators.values():
        if operator.name not in reached:
            raise TopologyError(f"{operator}: cannot be reached from any source")
    for source in topology.sources.values():
        if not topology.receivers(source[DEFAULT_STREAM]):
            raise TopologyError(f"{source}: is read by no operator")


def _check_streams_read(topology: Topology, sender: Operator | SourceSpec) -> None:
    for name in sender.outputs:
        if name == DEFAULT_STREAM or topology.receivers(sender[name]):
            continue
        if name == DEAD_LETTERS:
            raise TopologyError(
                f"{sender}: on_error is {sender.on_error!r}, but nobody reads its dead letters; add "
                f"topology.dead_letters(sink), or an operator with inputs='{sender.name}.{name}'"
            )
        raise TopologyError(f"{sender}: nobody reads its stream {name!r}")


def _check_shippable(operator: Operator) -> None:
    wanted = [event_type(operator.run), *([] if operator.state is None else [operator.state.kind])]
    for kind in wanted:
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and _is_local(kind):
            raise TopologyError(
                f"{operator}: a msgspec Struct must be defined at the top of a module that workers can import; "
                f"got {kind.__qualname__!r} of module {kind.__module__!r}"
            )
    for part, value in (("run", operator.run), ("key", operator.key), ("cost_by", operator.cost_by)):
        try:
            cloudpickle.dumps(value)
        except Exception as error:
            held = _unshippable_part(value)
            raise TopologyError(
                f"{operator}: {part} cannot be shipped to a worker{held}: {error}; open such things in open(), "
                "which runs in the worker"
            ) from error


def _is_local(kind: type) -> bool:
    """Whether a class would travel by value, on which a Struct loses its fields."""
    return kind.__module__ == "__main__" or "<locals>" in kind.__qualname__


def _unshippable_part(value: object) -> str:
    """Which captured variable or attribute is to blame, as ' because of …', or nothing."""
    held: dict[str, object] = dict(getattr(value, "__dict__", {}))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        held |= {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    code, cells = getattr(value, "__code__", None), getattr(value, "__closure__", None)
    if code is not None:
        held |= {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells or (), strict=True)}
        known = getattr(value, "__globals__", {})
        held |= {name: known[name] for name in code.co_names if name in known}
    for name, part in held.items():
        try:
            cloudpickle.dumps(part)
        except Exception:
            return f" because of {name!r} ({type(part).__name__})"
    return ""
