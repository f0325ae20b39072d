"""What the user asked for on the command line, checked and built before Spark starts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.apps import APPS, App, AppOptions, PayloadOptions, SinkFactory, find_app, load_topology
from penstock.engine.options import RunOptions
from penstock.errors import InputError
from penstock.grouping.names import GROUPINGS
from penstock.grouping.spec import parse_grouping
from penstock.names import one_of
from penstock.sinks import DatabaseSink, QueueSink
from penstock.sources import FileSource, Source, TraceSource
from penstock.topology import Topology
from penstock.workload import Trace, constant, load_trace

DEFAULT_DURATION_S = 60.0


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """The options of `penstock run`, as given."""

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
    t_out_s: float | None = None
    q_size: int | None = None
    seed: int = 0
    events: Path | None = None
    sink: str | None = None
    policy: str | None = None
    td_s: float = 5.0
    forecaster: str | None = None
    slots: int | None = None
    cooldown_s: float = 0.0
    warm_up_s: float = 2.0
    checkpoint_every_s: float = 300.0
    cluster: str | None = None  # local: Spark workers of the run's own; None: all in one process
    workers: str | None = None  # 2..8

    def build_trace(self) -> Trace:
        """The trace as it will be played: rescaled, compressed, cut."""
        if (self.trace is None) == (self.rate is None):
            raise InputError("give either --trace FILE or --rate R")
        if self.rate is not None:
            if self.mean_rate is not None or self.speedup != 1.0:
                raise InputError("--mean-rate and --speedup change a trace; with --rate there is none")
            return constant(self.rate, DEFAULT_DURATION_S if self.duration_s is None else self.duration_s)
        assert self.trace is not None
        return played(load_trace(self.trace), self.mean_rate, self.speedup, self.duration_s)

    def build_topology(self, folder: Path) -> Topology:
        """The application's topology with the user's pools, times and grouping; its sinks store or publish."""
        if self.grouping is not None:
            one_of("--grouping", parse_grouping(self.grouping).name, GROUPINGS)
        if ":" in self.app:
            if self.service_ms:
                raise InputError(
                    "--service-ms is for the shipped applications; your own operators take the time they take"
                )
            return own_topology(self.app, self.grouping, self.pools)
        app = find_app(self.app)
        options = AppOptions(
            sink=self._sinks(app, folder),
            service_ms=self.service_ms,
            pools=self.pools,
            grouping=self.grouping,
            seed=self.seed,
        )
        return app.build(options)

    def _sinks(self, app: App, folder: Path) -> SinkFactory:
        """A table or a queue for each sink, by its name; one that the user named is tried at once."""
        if not app.publishes and not (self.sink or "").startswith("amqp"):
            url = self.sink or f"sqlite:///{folder / 'events.db'}"
            return lambda name, service_ms: DatabaseSink(url, name, service_ms=service_ms)

        def queue(name: str, service_ms: float) -> QueueSink:
            sink = QueueSink(self.sink or f"sqlite:///{folder / 'queue.db'}", name, service_ms=service_ms)
            if self.sink is not None:
                sink.check()
            return sink

        return queue

    def build_source(self, trace: Trace) -> Source:
        """The trace with the application's events, or with those of the user's file."""
        if self.events is not None and self.events.is_file():
            file = FileSource(self.events)
            return TraceSource(trace, file.read(range(file.total or 0)))
        if self.app not in APPS:
            raise InputError(f"app {self.app!r}: give its events with --events FILE (JSON lines or CSV)")
        if self.events is not None and not self.events.is_dir():
            raise InputError(f"--events: no file or folder {str(self.events)!r}")
        folder = self.events or data_folder("events")
        return TraceSource(trace, find_app(self.app).payloads(PayloadOptions(folder, self.seed)))

    def run_options(self, folder: Path) -> RunOptions:
        """How the engine is to run it."""
        return RunOptions(
            t_out_s=self.t_out_s,
            q_size=self.q_size,
            checkpoint_every_s=self.checkpoint_every_s,
            report_every_s=min(0.5, self.td_s / 8),
            folder=folder,
        )


def parse_pairs(option: str, text: str | None, kind: Callable[[str], Any]) -> dict[str, Any]:
    """`clean=2,store=4` as a mapping.

    >>> parse_pairs("--replicas", "clean=2,store=4", int)
    {'clean': 2, 'store': 4}
    """
    pairs: dict[str, Any] = {}
    for part in (text or "").split(","):
        if not part:
            continue
        name, sign, value = part.partition("=")
        try:
            pairs[name.strip()] = kind(value)
        except ValueError:
            sign = ""
        if not sign:
            raise InputError(f"{option}: must be operator={kind.__name__},…; got {part!r}")
    return pairs


def data_folder(name: str) -> Path | None:
    """Real data where the user has it: a folder of that name in $PENSTOCK_DATA, or in `../shared`."""
    root = os.environ.get("PENSTOCK_DATA")
    folder = (Path(root) if root else Path("..") / "shared") / name
    return folder if folder.is_dir() else None


def new_folder(app: str) -> Path:
    """A folder for what a run leaves behind, under `out/`."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    base = Path("out") / f"{app.replace(':', '-')}-{stamp}"
    folder, number = base, 1
    while folder.exists():
        number += 1
        folder = base.with_name(f"{base.name}-{number}")
    folder.mkdir(parents=True)
    return folder.resolve()


def held_folder(folder: Path) -> Path:
    """The folder of a run that can be carried on."""
    if not (folder / "run.json").is_file():
        raise InputError(f"--resume: no run in {str(folder)!r}, as there is no file run.json")
    return folder.resolve()


def played(trace: Trace, mean_rate: float | None, speedup: float, duration_s: float | None) -> Trace:
    """The trace as it is played: rescaled, compressed, cut."""
    if mean_rate is not None:
        trace = trace.scaled(mean_rate)
    if speedup != 1.0:
        trace = trace.compressed(speedup)
    return trace if duration_s is None else trace.limited(min(duration_s, trace.duration_s))


def own_topology(reference: str, grouping: str | None, pools: Mapping[str, int]) -> Topology:
    """The user's topology, with other pools and another grouping for operators without a key."""
    topology = load_topology(reference)
    for name, operator in topology.operators.items():
        if grouping is not None and operator.key is None:
            topology.replaced(name, grouping=grouping)
    for name, pool in pools.items():
        topology.replaced(name, pool=pool)
    return topology
