"""What the store holds, as plain values: one class for each table, the same for writing and reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run. `settings` is whatever else the user gave, as JSON values."""

    run: str
    topology: str
    policy: str
    td_s: float
    started_at: str  # ISO 8601
    finished_at: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalRow:
    """One interval over the whole topology."""

    number: int
    time_s: float
    interval_s: float
    source_input: Mapping[str, int]  # by source, without those whose number cannot be trusted
    entered: int
    source_output: float
    replicas: int
    backlog: int
    dropped: int
    latency_count: int
    latency_mean_ms: float | None
    latency_p50_ms: float | None
    latency_p99_ms: float | None
    note: str = ""  # what went wrong, or what the plan says of the whole


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """One operator in one interval."""

    number: int
    operator: str
    received: int
    received_by: Mapping[str, int]
    processed: int
    backlog: int
    dropped: int
    replicas: int
    pool: int
    busy_share: float  # mean over the active replicas
    cpu_share: float
    execution_time_s: float | None
    incomplete: str | None  # why the numbers are not to be trusted


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRow:
    """Where an operator's backlog waited at the end of an interval; there is none where nothing waited.

    The rest of the backlog was on its way.
    """

    number: int
    operator: str
    held: int  # by senders, until a replica has room
    booked: int  # in the replicas' own queues
    outside: int  # in front of the sources that it reads


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastRow:
    """The rate per second expected of one series (a source, or an operator's input) `step` intervals ahead."""

    number: int
    series: str
    step: int
    rate: float
    forecaster: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRow:
    """What was decided for one operator at the end of an interval, and why."""

    number: int
    operator: str
    before: int
    after: int
    expected: float | None
    reason: str
    failure: str | None = None  # why it could not be carried out


@dataclass(frozen=True, slots=True, kw_only=True)
class TimetableRow:
    """How many replicas one operator was planned to have `step` intervals ahead, at the end of an interval."""

    number: int
    operator: str
    step: int
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    """One worker at the end of an interval: C_n, A_n and U_n."""

    number: int
    time_s: float
    worker: str
    region: str
    state: str  # starting, available or draining
    capacity: int  # replicas that it can host
    hosted: int  # active replicas and sources that it hosts
    utilisation: float | None  # busy shares of what it hosts, by its capacity; None until that is known
    price: float  # per second


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerRow:
    """One word of one manager, by its place in all that was said in the run; what is missing was not kept."""

    sequence: int
    time_s: float
    who: str
    word: str  # proposed, granted, refused, done, cancelled, lost
    subject: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRow:
    """A change of workers, for which the next shift took over: how long no source could send."""

    time_s: float
    why: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """A query that died: when, of what, how often before it came back, and how long no new event reached a sink."""

    number: int
    time_s: float
    cause: str
    deaths: int
    seconds: float | None  # None if the run ended first


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRow:
    """How checkpoints went at the end of an interval; there is none where a run makes none, as a simulation.

    Of the last: its number, how long it took and what it wrote, all None before the first; counts are of the driver.
    """

    number: int
    checkpoint: int | None
    age_s: float  # since it was committed; before the first, since they began
    took_s: float | None
    size_bytes: int | None  # of its record and its segments of state
    committed: int
    given_up: int
    every_s: float  # as set


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseRow:
    """What a run was to keep to: at most this share of events takes longer than the target."""

    late: float
    target_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRow:
    """Of the events that left in an interval (its `latency_count`): how many had taken longer than the target."""

    number: int
    late: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeringRow:
    """An order that a person gave the run while it went on: when, who, and what, as `control.orders` has it."""

    sequence: int
    time_s: float  # by the run's clock
    given_at: str  # ISO 8601
    who: str
    order: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """How all decisions at the end of an interval turned out, once the next was over; what cannot be said is None.

    Late events are those of a fluid from the state at hand; errors are of all sources, by what came.
    """

    number: int  # the interval at whose end it was decided
    policy: str
    role: str  # decides, or shadow
    seconds: float  # how long the next interval was
    events: int  # that entered in it
    too_many: int  # replicas, beyond what came needed
    too_few: int
    late: float | None  # events
    nothing_late: float | None  # had nothing been changed
    nothing_replicas: int
    runner_up: str | None  # an operator, and how many replicas of it
    runner_up_late: float | None
    runner_up_replicas: int | None  # of all operators
    forecast_error: float | None
    naive_error: float | None  # had the last rate been the forecast
    replicas: Mapping[str, int]  # decided, by operator
    needed: Mapping[str, int]  # by what came; where the execution time is known


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRow:
    """What a policy wanted for one operator and was not let have, at the end of an interval; of limits the last."""

    number: int
    operator: str
    wanted: int
    told: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowRow:
    """What a policy would have decided for one operator at the end of an interval; nobody carried it out."""

    number: int
    policy: str
    operator: str
    replicas: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeciderRow:
    """From the end of this interval on another policy decides, and why; of the first, that it begins."""

    number: int
    time_s: float
    policy: str
    before: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class LevelRows:
    """What an interval shows of the workers: how they are, and what is new of managers and pauses."""

    workers: tuple[WorkerRow, ...] = ()
    managers: tuple[ManagerRow, ...] = ()
    pauses: tuple[PauseRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalRecord:
    """All rows of one interval; written together or not at all."""

    interval: IntervalRow
    operators: tuple[OperatorRow, ...] = ()
    forecasts: tuple[ForecastRow, ...] = ()
    decisions: tuple[DecisionRow, ...] = ()
    timetables: tuple[TimetableRow, ...] = ()
    levels: LevelRows = LevelRows()
    waiting: tuple[WaitingRow, ...] = ()
    lateness: tuple[LateRow, ...] = ()
    faults: tuple[FaultRow, ...] = ()  # that are over since the interval before
    checkpoints: tuple[CheckpointRow, ...] = ()  # one, where there are any
    limits: tuple[LimitRow, ...] = ()
    shadows: tuple[ShadowRow, ...] = ()
    deciders: tuple[DeciderRow, ...] = ()
    scores: tuple[ScoreRow, ...] = ()  # of what was decided at the end of the interval before
    decided_by: str = ""  # the run's policy, where nothing is said
