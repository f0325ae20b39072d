"""An application made ready to run: its topology with sinks that store or publish, and its events."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from penstock.apps import APPS, AppOptions, PayloadOptions, SinkFactory, find_app, load_topology
from penstock.common.names import one_of
from penstock.errors import InputError
from penstock.grouping.names import GROUPINGS
from penstock.grouping.spec import parse_grouping
from penstock.sinks import DatabaseSink, KafkaSink, QueueSink
from penstock.sources import FileSource, KafkaSource, Source, TraceSource
from penstock.topology import Topology
from penstock.topology.operator import Process
from penstock.workload import Trace
from penstock.workload.data import data_folder

_NAMED = re.compile(r"([\w-]+)=(?=\w+:)")  # before a URL


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A shipped application by its name, or a topology of the user's own as `module:attribute`."""

    app: str
    pools: Mapping[str, int] = field(default_factory=dict)  # by operator
    service_ms: Mapping[str, float] = field(default_factory=dict)  # by operator, of shipped applications
    grouping: str | None = None  # of operators without a key
    sink: str | None = field(default=None, repr=False)  # URL of a database, a queue or a topic; may have a password
    events: Path | None = None  # a file of events, or a folder of real ones for a shipped application
    seed: int = 0

    def topology(self, folder: Path) -> Topology:
        """Checked; what its sinks store is in the folder, unless it goes elsewhere."""
        if self.grouping is not None:
            one_of("grouping", parse_grouping(self.grouping).name, GROUPINGS)
        built = self._own() if ":" in self.app else self._shipped(folder)
        built.check()
        return built

    def sources(self, urls: Sequence[str]) -> dict[str, Source]:
        """What feeds each source, from `URL`, or `name=URL` where there are several."""
        names = tuple(self.topology(Path()).sources)
        found: dict[str, Source] = {}
        for given in urls:
            named = _NAMED.match(given)
            name = named[1] if named else names[0]
            if (named is None and len(names) > 1) or name not in names:
                told = f"must be NAME=URL, with NAME one of {', '.join(names)}"
                raise InputError(f"source: {told}; got {shown_url(given)!r}")
            if name in found:
                raise InputError(f"source {name!r}: must be given once; got {shown_url(given)!r} besides")
            found[name] = source_at(given[named.end() :] if named else given)
        return found

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
        built = load_topology(self.app, grouping=self.grouping, pools=self.pools)
        if self.sink is not None:
            ends = [built[name][stream] for name in built.sinks for stream in built[name].outputs]
            built.operator("sink", sink_at(self.sink, "events", 0.0), inputs=ends)
        return built

    def _shipped(self, folder: Path) -> Topology:
        return find_app(self.app).build(self._options(folder))

    def _options(self, folder: Path) -> AppOptions:
        return AppOptions(
            sink=self._sinks(folder),
            service_ms=self.service_ms,
            pools=self.pools,
            grouping=self.grouping,
            seed=self.seed,
        )

    def _sinks(self, folder: Path) -> SinkFactory:
        """A table, a queue or a topic for each sink, by its name."""
        if find_app(self.app).publishes and not (self.sink or "").startswith("kafka:"):
            queue = self.sink or f"sqlite:///{folder / 'queue.db'}"
            return lambda name, service_ms: QueueSink(queue, name, service_ms=service_ms)
        url = self.sink or f"sqlite:///{folder / 'events.db'}"
        return lambda name, service_ms: sink_at(url, name, service_ms)


def shown_url(url: str) -> str:
    """A URL as messages may have it: without login and options, in which there may be a password.

    >>> shown_url("kafka://ann:hush@host:9092/topic?sasl.password=hush")
    'kafka://host:9092/topic'
    """
    before, sign, rest = url.partition("?")[0].partition("://")
    return f"{before}{sign}{rest.rpartition('@')[2]}"


def source_at(url: str) -> Source:
    """What a URL stands for: `kafka://host:9092/topic?group=…`."""
    if urlsplit(url).scheme != "kafka":
        raise InputError(f"source: must be a URL such as kafka://host:9092/topic; got {shown_url(url)!r}")
    return KafkaSource.from_url(url)


def sink_at(url: str, name: str, service_ms: float) -> Process:
    """What a URL stands for: a topic of Kafka, a queue of RabbitMQ, or the table of that name in a database."""
    scheme = urlsplit(url).scheme
    if scheme == "kafka":
        return KafkaSink.from_url(url)
    if scheme.startswith("amqp"):
        return QueueSink(url, name, service_ms=service_ms)
    if "://" in url and not scheme.startswith(("sqlite", "postgres")):
        told = "must be a URL of kafka, amqp, amqps, sqlite or postgresql"
        raise InputError(f"sink: {told}; got {shown_url(url)!r}")
    return DatabaseSink(url, name, service_ms=service_ms)
