"""An operator: a vertex of the topology, a user's function run by replicas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from penstock.common.storage import Storage
from penstock.grouping.online_shuffle.options import OnlineShuffleOptions
from penstock.topology.on_error import DEAD_LETTERS, parse_on_error

Event = Any  # a mapping, a msgspec Struct or a dataclass
DEFAULT_STREAM = "out"


class To:
    """An event bound for a named output stream.

    >>> To("news", {"text": "flood"})
    To('news', {'text': 'flood'})
    """

    __slots__ = ("event", "stream")

    def __init__(self, stream: str, event: Event) -> None:
        self.stream = stream
        self.event = event

    def __repr__(self) -> str:
        return f"To({self.stream!r}, {self.event!r})"


Output = Event | To | Iterable[Event | To] | None
Function = Callable[[Any], Output]
StateFunction = Callable[[Any, Any], Output]  # of an event and the state of its key
KEY_GROUPS = 128


@runtime_checkable
class Process(Protocol):
    """An operator as a class. Each replica opens a copy of its own; `open`, `close` and `process_many` are optional.

    `open(context)` comes before the first event and `close()` after the last. `process_many(events)`, where there
    is one, is called instead of `process` and returns one output for each event.

    With two parameters, `process(event, state)`, the operator keeps state: `state` is the value of the event's key, to
    be changed in place. It begins as what `new_state()` gives, if there is one, or as an empty value of the type that
    `state` is annotated with, or as a dict.
    """

    @property
    def process(self) -> Function | StateFunction:
        """Give none, one or many events for one event."""


class Context(Protocol):
    """What a replica tells the operator it opens."""

    @property
    def run(self) -> str:
        """The run's name; event ids are unique within a run."""

    @property
    def operator(self) -> str:
        """The operator's name."""

    @property
    def replica(self) -> int:
        """The number of this replica in the pool."""

    @property
    def folder(self) -> Storage:
        """Where the operator may keep files that all workers and the driver see; of a local one, `path` is the path."""

    @property
    def checkpoint(self) -> int:
        """The checkpoint to which the events now being processed belong."""

    @property
    def attempt(self) -> int:
        """Grows with each start of the query; what an earlier attempt did after the last checkpoint is done again."""

    @property
    def parts(self) -> Mapping[int, Any]:
        """By replica: what a sink's `prepare` returned in the last checkpoint that was committed."""

    @property
    def event_ids(self) -> tuple[str, ...]:
        """Ids of the events now being processed, in order; the same event has the same id when it is repeated."""

    def repeated(self, count: int) -> None:
        """Say that `count` of the events had been stored before."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One output stream of an operator or source: `clean.out`, `dispatch.news`."""

    sender: str
    name: str = DEFAULT_STREAM

    def __str__(self) -> str:
        return f"{self.sender}.{self.name}"


def with_dead_letters(streams: tuple[str, ...], on_error: str) -> tuple[str, ...]:
    """These streams, and that of the dead letters behind them where events that fail become such."""
    plain = tuple(stream for stream in streams if stream != DEAD_LETTERS)
    return (*plain, DEAD_LETTERS) if parse_on_error(on_error).then == "dead_letter" else plain


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """Where events enter: declared in the topology, bound to a real source when it is run."""

    name: str
    place: str
    on_error: str = "fail"

    @property
    def outputs(self) -> tuple[str, ...]:
        """Its streams."""
        return with_dead_letters((DEFAULT_STREAM,), self.on_error)

    def __getitem__(self, stream: str) -> Stream:
        """The named output stream, to be given as an input of an operator."""
        return Stream(self.name, stream)

    def __str__(self) -> str:
        return f"source {self.name!r} ({self.place})"


@dataclass(frozen=True, slots=True)
class Keyed:
    """State by key: hashed into groups, which move from replica to replica as a whole."""

    groups: int = KEY_GROUPS
    expire_after_s: float | None = None  # a key that no event has touched for longer starts anew, by the events' time
    kind: Any = Any  # the type of a value: read where it is declared, as annotations need not travel


@dataclass(frozen=True, slots=True)
class Operator:
    """What the user declared of one operator."""

    name: str
    run: Function | StateFunction | Process
    inputs: tuple[Stream, ...]
    outputs: tuple[str, ...]
    pool: int
    grouping: str
    key: str | Callable[[Any], object] | None
    execution_time_ms: float | None
    selectivity: Mapping[str, float]
    on_error: str
    place: str
    cost_by: str | Callable[[Any], object] | None = None  # what the time of an event depends on
    grouping_options: OnlineShuffleOptions | None = None  # of `online_shuffle`
    state: Keyed | None = None  # if it takes an event and the state of its key

    @property
    def in_order(self) -> bool:
        """Whether events of one key are processed in order."""
        return self.grouping in ("fields", "key_groups")

    def __getitem__(self, stream: str) -> Stream:
        """The named output stream, to be given as an input of another operator."""
        return Stream(self.name, stream)

    def __str__(self) -> str:
        return f"operator {self.name!r} ({self.place})"
