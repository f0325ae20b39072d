"""What feeds the sources that a topology declares, and whether a run can do with its sources, operators and sinks."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from penstock.engine.options import RunOptions
from penstock.engine.run_folder import RunFolder
from penstock.errors import AwayError, InputError
from penstock.grouping.names import SIMULATED_ONLY
from penstock.sinks.base import Checks
from penstock.sinks.waiting import PATIENCE_S, Waiting
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


def check_operators(topology: Topology, options: RunOptions) -> None:
    """Raise an InputError if an operator is not for a run of that mode."""
    for operator in topology.operators.values():
        if operator.grouping in SIMULATED_ONLY:
            raise InputError(f"{operator}: grouping {operator.grouping!r} is for the simulator only")
        if getattr(operator.run, "level", "") == "committed" and not options.realtime:
            raise InputError(f"{operator}: level committed is for real-time mode; take latest or at_least_once")


def check_ends(topology: Topology, sources: Mapping[str, AnySource], folder: RunFolder) -> None:
    """Raise an InputError if a source or a sink cannot be reached; if the run is carried on, one is waited for."""
    for operator in topology.operators.values() if folder.lasting is None else ():
        if getattr(operator.run, "level", None) == "committed":
            rule = "level committed needs a folder that lasts, RunOptions(folder=…), as events wait there"
            raise InputError(f"{operator}: {rule}; got none")
    for part in (*sources.values(), *(one.run for one in topology.operators.values())):
        if isinstance(part, Checks):
            _check(part, patient=folder.carried_on > 0)


def _check(part: Checks, *, patient: bool) -> None:
    waiting = Waiting("a source or sink", PATIENCE_S)
    while True:
        try:
            return part.check()
        except AwayError as away:
            if not patient:
                raise
            waiting.pause(away)
