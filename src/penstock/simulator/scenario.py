"""A scenario: everything about a simulation but its policy, as one value.

A field carries its meaning, unit and bounds once: they are checked here, and the command line makes its options of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from penstock.apps import APPS, App, find_app
from penstock.apps.inputs import paper_input
from penstock.common.checks import is_number, is_whole
from penstock.common.names import one_of
from penstock.control.managers.application_manager import ApplicationRules
from penstock.control.managers.infrastructure_manager import InfrastructureRules
from penstock.control.managers.region_manager import RegionRules
from penstock.errors import InputError
from penstock.grouping.names import GROUPINGS, SIMULATED_ONLY
from penstock.grouping.spec import parse_grouping
from penstock.infra.simulated import START_S, Region
from penstock.infra.worker import WorkerSize
from penstock.metrics.interval import DEFAULT_TD_S
from penstock.metrics.utilisation import MEASURES
from penstock.policy.guards.calendar import parse_calendar
from penstock.simulator.calibration import Calibration
from penstock.topology import Topology
from penstock.workload import DAY_S, Trace, played

ACTUATIONS = ("pool", "restart", "restart-lossy")
ARRIVALS = ("even", "poisson")
LEVELS = ("static", "application", "both")
HERE = (Region(name="here", sizes=(WorkerSize(name="one", capacity=1),), start_s=START_S),)


def option(default: Any, help: str = "", **rules: Any) -> Any:
    """A field with what it means and its rules.

    `least`, `above`, `whole`, `known`: what it may be (`infinite` allows that as well). `ms`: on the command line it is
    given in milliseconds. `option`: its name there, if it is another one. Without help it has no option.
    """
    metadata = {"help": help, **rules}
    if isinstance(default, dict):
        return field(default_factory=dict, hash=False, metadata=metadata)
    return field(default=default, metadata=metadata)


def check(part: Any) -> None:
    """Raise an InputError that names the first field that breaks its rules."""
    for one in fields(part):
        value = getattr(part, one.name)
        several = value.items() if isinstance(value, Mapping) else ((None, value),)
        for key, number in several:
            _check(one.name if key is None else f"{one.name} of '{key}'", number, one.metadata)


def _check(name: str, value: Any, rules: Mapping[str, Any]) -> None:
    if value is None:
        return
    if "known" in rules:
        one_of(name, value, rules["known"])
    if "whole" in rules and not is_whole(value, rules["whole"]):
        raise InputError(f"{name} must be whole and at least {rules['whole']}; got {value!r}")
    finite = (rules.get("infinite") and value == math.inf) or is_number(value)
    if "least" in rules and not (finite and value >= rules["least"]):
        raise InputError(f"{name} must be at least {rules['least']}; got {value!r}")
    if "above" in rules and not (finite and value > rules["above"]):
        raise InputError(f"{name} must be above {rules['above']}; got {value!r}")


@dataclass(frozen=True, kw_only=True)
class Plant:
    """How the topology works: what takes time beside the operators, and what is dropped.

    `actuation` says what a change of replicas costs. `pool`: nothing is restarted; a new replica works after
    `activation_delay_s`. `restart`: everything stands still for `restart_s`, then what had not finished is shared out
    anew. `restart-lossy`: the same, and what had not finished is lost.

    >>> Plant(hop_s=-1)
    Traceback (most recent call last):
    penstock.errors.InputError: hop_s must be at least 0; got -1
    """

    t_out_s: float | None = option(None, "Drop events older than this, seconds.", above=0)
    q_size: int | None = option(None, "Drop events that find this many waiting.", whole=1)
    actuation: str = option(
        "pool", "What a change of replicas costs: pool, restart or restart-lossy.", known=ACTUATIONS
    )
    restart_s: float = option(30.0, "How long a restart takes, seconds.", least=0)
    hop_s: float = option(0.0025, "From one operator to the next, ms.", least=0, ms=True)
    activation_delay_s: float = option(0.05, "Until an activated replica works, seconds.", least=0)
    state_bytes: Mapping[str, float] = option({}, "Bytes of state for each key, by operator: count=200.", least=0)
    move_bandwidth: float = option(10e6, "How fast state moves, bytes per second.", above=0, infinite=True)
    move_latency_s: float = option(0.1, "Until a replica hears that moved state is there, seconds.", least=0)
    times_s: Mapping[str, float] = option({}, least=0)  # execution times that were measured, by operator
    overhead_s: Mapping[str, float] = option({}, least=0)  # added to every event's time, by operator
    exponential: bool = False  # service times are drawn around their mean

    def __post_init__(self) -> None:
        check(self)

    def check_state(self, keeping: Sequence[str]) -> None:
        """Bytes of state must be those of operators that keep some."""
        if wrong := [name for name in self.state_bytes if name not in keeping]:
            known = ", ".join(keeping) or "none"
            raise InputError(f"state_bytes: must name operators that keep state ({known}); got {wrong[0]!r}")


@dataclass(frozen=True, kw_only=True)
class Contest:
    """What policies are made with and bounded by, and what they are measured by."""

    td_s: float = option(DEFAULT_TD_S, "Length of the control interval, seconds.", above=0)
    target_ms: float = option(2000.0, "An event that takes longer is late, ms.", above=0)
    late: float = option(0.01, "The promise: the share of events that may be late.", above=0)
    forecaster: str | None = option(
        None, "Size for its forecast: auto, holt_winters, drift:5, trained:folder=models, …"
    )
    slots: int | None = option(None, "Replicas that all operators may have together.", whole=1)
    cooldown_s: float = option(0.0, "Seconds an operator must wait to shrink after a change.", least=0)
    calendar: str | None = option(None, "Known events: 'freeze mon-fri 08:00-10:00 Europe/Zurich; least clean=4 …'.")
    shadow: str | None = option(None, "A policy that decides beside the first: kept and scored, never carried out.")
    canary: str | None = option(None, "A policy that takes over once it is better: psps:minutes=10; taken back if not.")
    begins: str | None = option(None, "When the trace begins, for --calendar: 2026-01-01T00:00+01:00.")
    balance_by: str = option(
        "booked", "What load_balancing looks at: booked, or used as in the paper.", known=tuple(MEASURES)
    )
    wake: bool = option(False, "A jump of what enters ends an interval early.")
    first_step_s: float = option(0.0, least=0)  # when the control loop starts to look
    day_s: float = option(DAY_S, above=0)  # the length of a day in the input, for forecasters

    def __post_init__(self) -> None:
        check(self)
        parse_calendar(self.calendar)
        _ = self.offset_s

    @property
    def target_s(self) -> float:
        """The target in seconds, as all times of a simulation are."""
        return self.target_ms / 1000

    @property
    def offset_s(self) -> float:
        """When the simulation begins, in seconds since 1970."""
        if self.begins is None:
            return 0.0
        wrong = InputError(f"begins must be a time with its zone, as 2026-01-01T00:00+01:00; got {self.begins!r}")
        try:
            begins = datetime.fromisoformat(self.begins)
        except ValueError:
            raise wrong from None
        if begins.tzinfo is None:
            raise wrong
        return begins.timestamp()


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Workers under the replicas, and how much of them is controlled; without `levels` there is room for every replica.

    `static`: replicas and workers stay as they are. `application`: replicas change, workers stay. `both`: workers come
    and go as well. Workers of several regions differ in size, price and start time, and events between them take
    longer; the first region is where a run begins. Every region keeps its own spare capacity.
    """

    levels: str | None = option(
        None, "Replicas on workers: static, application, or both come and go (e2df's default).", known=LEVELS
    )
    workers: int | None = option(None, "Workers, at most; as many as the peak needs, and 1.", whole=1)
    regions: tuple[Region, ...] = option(HERE, "Where workers are: near;far:capacity=4,price=0.6,start=30,delay_ms=20.")
    deployed: Mapping[str, int] | None = field(default=None, hash=False)  # with `static`; empty: what the peak needs
    application: ApplicationRules | None = None  # usual ones; with several regions a run begins with few workers
    region: RegionRules = field(default_factory=RegionRules)
    infrastructure: InfrastructureRules = field(default_factory=InfrastructureRules)
    every_s: float = option(60.0, above=0)

    def __post_init__(self) -> None:
        check(self)
        if self.levels is None and (self.workers is not None or self.regions != HERE):
            name = "regions" if self.workers is None else "workers"
            raise InputError(f"{name}: must come with levels {', '.join(LEVELS[:-1])} or {LEVELS[-1]}")
        if not self.regions or len({one.name for one in self.regions}) < len(self.regions):
            raise InputError(f"cluster: must have regions, each once; got {[one.name for one in self.regions]}")

    @property
    def delayed(self) -> bool:
        """Whether events between regions take longer."""
        return len(self.regions) > 1 and any(one.delay_s > 0 for one in self.regions)


@dataclass(frozen=True)
class Scenario:
    """A topology under a trace. Equal scenarios give equal results.

    The topology is one of your own, with execution times declared, or the name of a shipped application, which has an
    input and events of its own: its functions are run on these, so that events take the way they take in a real run.

    >>> from penstock.workload import constant
    >>> Scenario("dns", constant(20.0, duration_s=10.0)).changed(td_s=2.0, hop_s=0.001).contest.td_s
    2.0
    """

    topology: Topology | str  # or module:topology
    trace: Trace | None = None  # None: the application's own
    _: KW_ONLY
    before: Trace | None = None  # what came until then: nothing of it is played, but those who learn know it
    grouping: str | None = option(None, "shuffle, load_balancing, online_shuffle or pull, for operators without a key.")
    pool: int | Mapping[str, int] = option({}, "Pools: clean=8,store=4.")  # a number is for every operator
    service_ms: float | Mapping[str, float] = option({}, "Service times: clean=10,store=5.", least=0)  # likewise
    replicas: Mapping[str, int] = option({}, "Replicas to start with: clean=2,store=4.")
    arrivals: str = option("even", "even (as a run on Spark plays a trace) or poisson.", known=ARRIVALS)
    events: Path | tuple[Any, ...] | None = field(  # or the events themselves
        default=None, hash=False, metadata={"help": "A file of events, or a folder of real ones."}
    )
    skew: float | None = option(None, "Of the events' values: 0 is uniform, 1.5 is Zipf 1.5.", least=0)
    calibration: Calibration | None = field(
        default=None,
        metadata={"help": "Store of a live run: take hop delay and times from it.", "option": "calibrate"},
    )
    plant: Plant = field(default_factory=Plant)
    contest: Contest = field(default_factory=Contest)
    cluster: Cluster = field(default_factory=Cluster)
    seed: int = option(0, "Of everything that is drawn at random.")

    def __post_init__(self) -> None:
        check(self)
        if self.grouping is not None:
            one_of("grouping", parse_grouping(self.grouping).name, (*GROUPINGS, *SIMULATED_ONLY))
        if isinstance(self.topology, str) and ":" not in self.topology:
            find_app(self.topology)

    @property
    def name(self) -> str:
        """The topology's name."""
        return self.topology if isinstance(self.topology, str) else self.topology.name

    @property
    def app(self) -> App | None:
        """The shipped application, if it is one."""
        return APPS.get(self.topology) if isinstance(self.topology, str) else None

    @property
    def input(self) -> Trace:
        """The trace that is played; a shipped application has one of its own."""
        trace = paper_input(self.name, self.seed) if self.trace is None and self.app else self.trace
        if trace is None:
            raise InputError(f"topology '{self.name}': needs a trace; only shipped applications have an input")
        return trace

    @property
    def deployed(self) -> Mapping[str, int]:
        """The static deployment of the application's paper, for its own input and times; otherwise it says nothing."""
        if self.cluster.deployed is not None:
            return self.cluster.deployed
        changed = self.trace is not None or self.pool or self.service_ms or self.replicas
        return self.app.deployed if self.app and not changed else {}

    def played(
        self, *, mean_rate: float | None = None, speedup: float = 1.0, duration_s: float | None = None
    ) -> Scenario:
        """The same with its input rescaled, compressed and cut; days get shorter with it.

        >>> fast = Scenario("dns").played(speedup=60.0, mean_rate=50.0)
        >>> fast.input.duration_s, fast.contest.day_s
        (20.0, 1440.0)
        """
        if mean_rate is None and speedup == 1.0 and duration_s is None:
            return self
        trace = played(self.input, mean_rate, speedup, duration_s)
        deployed = self.deployed if mean_rate is None else {}
        return self.changed(trace=trace, day_s=self.contest.day_s / speedup, deployed=deployed)

    def changed(self, **values: Any) -> Scenario:
        """The same with these fields changed, whichever part has them.

        >>> Scenario("dns").changed(tick=3)
        Traceback (most recent call last):
        TypeError: a scenario has no field 'tick'
        """
        changes: dict[str, Any] = {}
        for part in ("plant", "contest", "cluster"):
            whole = values.pop(part, getattr(self, part))
            own = {one.name for one in fields(whole)} & values.keys()
            changes[part] = replace(whole, **{name: values.pop(name) for name in own})
        known = {one.name for one in fields(self)}
        for name in values:
            if name not in known:
                raise TypeError(f"a scenario has no field {name!r}")
        return replace(self, **changes, **values)
