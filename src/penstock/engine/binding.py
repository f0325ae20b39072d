"""What feeds the sources that a topology declares."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from penstock.engine.options import RunOptions
from penstock.errors import InputError
from penstock.sources.base import Source
from penstock.topology import Topology

AnySource = Source | DataFrame


def bind_sources(
    topology: Topology, sources: Mapping[str, AnySource] | AnySource, options: RunOptions
) -> dict[str, AnySource]:
    """Every declared source with what feeds it."""
    given = dict(sources) if isinstance(sources, Mapping) else dict.fromkeys(topology.sources, sources)
    if not isinstance(sources, Mapping) and len(topology.sources) > 1:
        raise InputError(f"topology {topology.name!r} has the sources {', '.join(topology.sources)}: give a mapping")
    if set(given) != set(topology.sources):
        raise InputError(
            f"topology {topology.name!r}: its sources are {', '.join(topology.sources)}; "
            f"got {', '.join(given) or 'none'}"
        )
    for name, source in given.items():
        is_frame, kind = isinstance(source, DataFrame), type(source).__name__
        if is_frame and (options.realtime or len(given) > 1):
            raise InputError(f"source {name!r}: a DataFrame must be the only source, in mode 'microbatch'")
        if not is_frame and not options.realtime:
            raise InputError(f"source {name!r}: mode 'microbatch' is for a DataFrame only; got a {kind}")
    return given
