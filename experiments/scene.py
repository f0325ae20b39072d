"""A scene: all that a simulation needs beside its policy and its seed, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from experiments.inputs import trace_for
from penstock.apps import AppOptions, PayloadOptions, find_app
from penstock.control.analyze import DAY_S
from penstock.grouping import GROUPINGS
from penstock.grouping.names import SIMULATED_ONLY
from penstock.simulator.options import SimulationOptions
from penstock.simulator.plant.cluster import Cluster
from penstock.simulator.run import Setup
from penstock.simulator.scenario import app_scenario, no_sink
from penstock.workload import Trace


@dataclass(frozen=True, kw_only=True)
class Scene:
    """An application under an input. Equal scenes give equal results: what several tables share is played once.

    `settle_s`: for so long after a change nothing is measured and nothing decided.

    >>> Scene(app="dns", input="dns").td_s
    30.0
    """

    app: str
    input: str  # a name of experiments.inputs
    td_s: float = 30.0
    t_out_s: float | None = None
    q_size: int | None = None
    grouping: str = "load_balancing"
    measure: str = "booked"  # of how used replicas are, for load balancing
    pool: int | None = None
    fixed: tuple[int, ...] = ()  # what the policy `static` runs with, by operator in order
    service_ms: tuple[float, ...] = ()  # of the operators in order; one for all of them; the application's own if empty
    actuation: str = "pool"
    restart_s: float = 30.0
    settle_s: float = 0.0
    skew: float | None = None
    target_s: float = 30.0
    r_over: int | None = None  # where the paper sets more than the peak needs
    forecaster: str | None = None
    day_s: float = DAY_S  # the length of a day as it is played, for forecasters
    levels: str | None = None  # of control over workers that host a replica each; None: there is room for all
    workers: int = 16

    @property
    def missing(self) -> str | None:
        """What it needs that is not there, if anything."""
        known = self.grouping in (*GROUPINGS, *SIMULATED_ONLY)
        return None if known else f"grouping {self.grouping!r} is not there yet"

    def setup(self, seed: int, data: Path | None) -> tuple[Setup, Trace]:
        """The scene ready to be simulated, and its trace; `data` is the folder with real traces and events."""
        app = find_app(self.app)
        names = app.build(AppOptions(sink=no_sink)).operators
        times = dict(zip(names, cycle(self.service_ms), strict=False))
        trace = trace_for(self.input, seed, data)
        tuning = AppOptions(sink=no_sink, service_ms=times, pool=self.pool, grouping=self.grouping, seed=seed)
        events = data / "events" if data is not None and (data / "events").is_dir() else None
        scenario = app_scenario(
            self.app,
            trace,
            options=self._options(seed),
            tuning=tuning,
            payloads=PayloadOptions(events, seed, self.skew),
            arrivals="poisson",
            day_s=self.day_s,
            cluster=Cluster(workers=self.workers, levels=self.levels) if self.levels else None,
        )
        return scenario.setup(), trace

    def _options(self, seed: int) -> SimulationOptions:
        return SimulationOptions(
            td_s=self.td_s,
            t_out_s=self.t_out_s,
            q_size=self.q_size,
            actuation=self.actuation,
            restart_s=self.restart_s,
            target_s=self.target_s,
            seed=seed,
        )
