"""An application made ready to run: its topology with sinks that store or publish, and its events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.apps import APPS, AppOptions, PayloadOptions, SinkFactory, find_app, load_topology
from penstock.common.names import one_of
from penstock.errors import InputError
from penstock.grouping.names import GROUPINGS
from penstock.grouping.spec import parse_grouping
from penstock.sinks import DatabaseSink, QueueSink
from penstock.sources import FileSource, Source, TraceSource
from penstock.topology import Topology
from penstock.workload import Trace
from penstock.workload.data import data_folder


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A shipped application by its name, or a topology of the user's own as `module:attribute`."""

    app: str
    pools: Mapping[str, int] = field(default_factory=dict)  # by operator
    service_ms: Mapping[str, float] = field(default_factory=dict)  # by operator, of shipped applications
    grouping: str | None = None  # of operators without a key
    sink: str | None = None  # for the sinks of shipped applications: a database's URL, or a queue's
    events: Path | None = None  # a file of events, or a folder of real ones for a shipped application
    seed: int = 0

    def topology(self, folder: Path) -> Topology:
        """Checked; what its sinks store is in the folder, unless it goes elsewhere."""
        if self.grouping is not None:
            one_of("grouping", parse_grouping(self.grouping).name, GROUPINGS)
        built = self._own() if ":" in self.app else self._shipped(folder)
        built.check()
        return built

    def source(self, trace: Trace) -> Source:
        """The trace with the application's events, or with those of the user's file."""
        if self.events is not None and self.events.is_file():
            file = FileSource(self.events)
            return TraceSource(trace, file.read(range(file.total or 0)))
        if self.app not in APPS:
            raise InputError(f"app {self.app!r}: give its events with --events FILE (JSON lines or CSV)")
        if self.events is not None and not self.events.is_dir():
            raise InputError(f"events: no file or folder {str(self.events)!r}")
        folder = self.events or data_folder("events")
        return TraceSource(trace, find_app(self.app).payloads(PayloadOptions(folder, self.seed)))

    def _own(self) -> Topology:
        if self.service_ms:
            raise InputError("service_ms is for the shipped applications; your own operators take the time they take")
        return load_topology(self.app, grouping=self.grouping, pools=self.pools)

    def _shipped(self, folder: Path) -> Topology:
        options = AppOptions(
            sink=self._sinks(folder),
            service_ms=self.service_ms,
            pools=self.pools,
            grouping=self.grouping,
            seed=self.seed,
        )
        return find_app(self.app).build(options)

    def _sinks(self, folder: Path) -> SinkFactory:
        """A table or a queue for each sink, by its name; a broker that the user named is tried at once."""
        if not find_app(self.app).publishes and not (self.sink or "").startswith("amqp"):
            url = self.sink or f"sqlite:///{folder / 'events.db'}"
            return lambda name, service_ms: DatabaseSink(url, name, service_ms=service_ms)

        def queue(name: str, service_ms: float) -> QueueSink:
            sink = QueueSink(self.sink or f"sqlite:///{folder / 'queue.db'}", name, service_ms=service_ms)
            if self.sink is not None:
                sink.check()
            return sink

        return queue
