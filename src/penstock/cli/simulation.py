"""What the user asked of `penstock simulate` and `penstock compare`, checked and built before anything runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from penstock.apps import APPS, AppOptions, PayloadOptions, find_app, load_topology
from penstock.apps.inputs import paper_input
from penstock.cli.regions import parse_regions
from penstock.cli.run import DEFAULT_DURATION_S
from penstock.common.names import one_of
from penstock.control.analyze import DAY_S
from penstock.control.managers.application_manager import ApplicationRules
from penstock.errors import InputError
from penstock.forecast.registry import check_for_loop
from penstock.grouping.names import GROUPINGS, SIMULATED_ONLY
from penstock.grouping.spec import parse_grouping
from penstock.metrics.utilisation import MEASURES
from penstock.simulator.arena import Contest
from penstock.simulator.calibration import Calibration, calibration_of
from penstock.simulator.cluster import DEFAULT_REGIONS, LEVELS, Cluster
from penstock.simulator.options import SimulationOptions
from penstock.simulator.result import r_over_of
from penstock.simulator.run import Setup
from penstock.simulator.scenario import Scenario, no_sink
from penstock.sources import FileSource
from penstock.topology import Topology
from penstock.workload import Trace, constant, data_folder, load_trace, played


@dataclass(frozen=True, kw_only=True)
class SimulationRequest:
    """The options of `penstock simulate`, as given."""

    app: str
    trace: Path | None = None
    rate: float | None = None
    duration_s: float | None = None
    mean_rate: float | None = None
    speedup: float = 1.0
    replicas: Mapping[str, int] = field(default_factory=dict)
    pools: Mapping[str, int] = field(default_factory=dict)
    service_ms: Mapping[str, float] = field(default_factory=dict)
    grouping: str | None = None
    balance_by: str = "booked"
    forecaster: str | None = None
    slots: int | None = None
    cooldown_s: float = 0.0
    arrivals: str = "even"
    skew: float | None = None
    events: Path | None = None
    calibrate: str | None = None
    levels: str | None = None  # of control, over workers; None: there is room for every replica
    workers: int | None = None
    regions: str | None = None
    store: str | None = None  # where the intervals go; None: nowhere
    options: SimulationOptions = field(default_factory=SimulationOptions)

    def setup(self) -> Setup:
        """Everything that a policy needs to be simulated."""
        if self.grouping is not None:
            one_of("--grouping", parse_grouping(self.grouping).name, (*GROUPINGS, *SIMULATED_ONLY))
        scenario = Scenario(
            topology=self.build_topology(),
            trace=self.input,
            options=self.options,
            payloads=self._payloads(),
            run_functions=self.app in APPS,
            arrivals=self.arrivals,
            calibration=calibration_of(self.calibrate) if self.calibrate else Calibration(),
            replicas=self.replicas,
            day_s=DAY_S / self.speedup,
        )
        setup = scenario.setup()
        return replace(setup, cluster=self._cluster(setup))

    def _cluster(self, setup: Setup) -> Cluster | None:
        """By default workers for what is deployed, every source, and one more, that host a replica each, as in E2DF."""
        if self.levels is None:
            if self.workers is not None or self.regions is not None:
                option = "--regions" if self.workers is None else "--workers"
                raise InputError(f"{option} needs --levels static, application or both")
            return None
        one_of("--levels", self.levels, LEVELS)
        regions = DEFAULT_REGIONS if self.regions is None else parse_regions(self.regions)
        deployed = self._deployed()
        needed = r_over_of(setup.workload, deployed) + len(setup.topology.sources)
        most = math.ceil(needed / min(one.sizes[0].capacity for one in regions)) + 1
        workers = most if self.workers is None else self.workers
        chosen = Cluster(workers=workers, levels=self.levels, regions=regions, deployed=deployed)
        if len(regions) == 1:
            return chosen
        return replace(chosen, application=ApplicationRules(first_workers=1))  # the cheapest region gets what comes

    def _deployed(self) -> Mapping[str, int]:
        """The static deployment of the application's paper, for its own input and times; otherwise it says nothing."""
        changed = self.trace or self.rate or self.mean_rate or self.pools or self.service_ms or self.replicas
        return APPS[self.app].deployed if self.app in APPS and not changed else {}

    def contest(self, setup: Setup) -> Contest:
        """What the policies are made with and bounded by."""
        if self.forecaster is not None:
            check_for_loop(self.forecaster)
        operators = len(setup.model.operators)
        if self.slots is not None and self.slots < operators:
            raise InputError(f"--slots must be at least 1 for each of {operators} operators; got {self.slots}")
        one_of("--balance-by", self.balance_by, MEASURES)
        return Contest(
            forecaster=self.forecaster,
            slots=self.slots,
            cooldown_s=self.cooldown_s,
            measure=MEASURES[self.balance_by],
        )

    @cached_property
    def input(self) -> Trace:
        """The trace as it is played; a shipped application has one of its own."""
        if self.trace is not None and self.rate is not None:
            raise InputError("give either --trace FILE or --rate R, not both")
        if self.rate is not None:
            if self.mean_rate is not None or self.speedup != 1.0:
                raise InputError("--mean-rate and --speedup change a trace; with --rate there is none")
            return constant(self.rate, DEFAULT_DURATION_S if self.duration_s is None else self.duration_s)
        trace = load_trace(self.trace) if self.trace is not None else paper_input(self.app, self.options.seed)
        if trace is None:
            raise InputError(f"app {self.app!r}: give its input with --trace FILE or --rate R")
        return played(trace, self.mean_rate, self.speedup, self.duration_s)

    def build_topology(self) -> Topology:
        """The application's topology with the user's pools, times and grouping; nothing is stored."""
        if ":" not in self.app:
            tuning = AppOptions(
                sink=no_sink,
                service_ms=self.service_ms,
                pools=self.pools,
                grouping=self.grouping,
                seed=self.options.seed,
            )
            return find_app(self.app).build(tuning)
        topology = load_topology(self.app, grouping=self.grouping, pools=self.pools)
        for name, time_ms in self.service_ms.items():
            topology.replaced(name, execution_time_ms=time_ms)
        return topology

    def _payloads(self) -> list[object]:
        if self.events is not None and self.events.is_file():
            file = FileSource(self.events)
            return list(file.read(range(file.total or 0)))
        if self.events is not None and not self.events.is_dir():
            raise InputError(f"--events: no file or folder {str(self.events)!r}")
        if self.app not in APPS:
            return []
        folder = self.events or data_folder("events")
        return list(find_app(self.app).payloads(PayloadOptions(folder, self.options.seed, self.skew)))
