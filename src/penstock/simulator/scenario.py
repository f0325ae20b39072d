"""A scenario: an application or topology under a trace, set up to be simulated under any policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.apps import AppOptions, PayloadOptions, find_app
from penstock.apps.waiting import Waiting
from penstock.common.names import one_of
from penstock.control.analyze import DAY_S
from penstock.control.declare import workload_of
from penstock.simulator.arrivals import Arrivals, Even, Poisson
from penstock.simulator.calibration import Calibration
from penstock.simulator.cluster import Cluster
from penstock.simulator.model import Facts, OperatorModel, build_model
from penstock.simulator.options import SimulationOptions
from penstock.simulator.run import Setup
from penstock.topology import Topology
from penstock.workload import Trace

ARRIVALS = ("even", "poisson")


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What to play, and how; without `payloads` all events are alike."""

    topology: Topology
    trace: Trace
    options: SimulationOptions = field(default_factory=SimulationOptions)
    payloads: Sequence[Any] = ()
    run_functions: bool = False  # learn from the payloads what the operators' functions give
    arrivals: str = "even"
    calibration: Calibration = field(default_factory=Calibration)
    replicas: Mapping[str, int] = field(default_factory=dict)
    day_s: float = DAY_S  # the length of a day in the trace, for forecasters
    cluster: Cluster | None = None

    def setup(self) -> Setup:
        """Check everything, and build the tables."""
        one_of("arrivals", self.arrivals, ARRIVALS)
        options = self.calibration.applied(self.options)
        facts = Facts(
            payloads=dict.fromkeys(self.topology.sources, self.payloads) if self.payloads else {},
            times_s=self.calibration.times_s,
            overhead_s=options.overhead_s,
            run_functions=self.run_functions,
            exponential=options.exponential,
            seed=options.seed,
        )
        model = build_model(self.topology, facts)
        options.check_state(model.stateful)
        times_s = {name: _usual_time_s(one) for name, one in model.operators.items()}
        return Setup(
            topology=self.topology,
            model=model,
            arrivals=self._arrivals(options.seed),
            workload=replace(workload_of(self.topology, self.trace, times_s), entering=Entering(self.trace)),
            options=options,
            replicas=self.replicas,
            day_s=self.day_s,
            cluster=self.cluster,
        )

    def _arrivals(self, seed: int) -> Callable[[], Mapping[str, Arrivals]]:
        """Each of several sources gets its part of the trace."""
        sources, trace = self.topology.sources, self.trace
        part = replace(trace, rates=trace.rates / len(sources)) if len(sources) > 1 else trace
        if self.arrivals == "poisson":
            return lambda: {name: Poisson(part, seed + place) for place, name in enumerate(sources)}
        return lambda: {name: Even(part) for name in sources}


def _usual_time_s(one: OperatorModel) -> float:
    """The declared time, as a run on Spark takes it for its static sizes; else what is simulated."""
    declared_ms = one.operator.execution_time_ms
    return one.mean_s if declared_ms is None else declared_ms / 1000


def app_scenario(
    app: str,
    trace: Trace,
    *,
    options: SimulationOptions | None = None,
    tuning: AppOptions | None = None,
    payloads: PayloadOptions | None = None,
    **more: Any,
) -> Scenario:
    """A shipped application: its functions are run on its events, so that these take the way they take in a real run.

    >>> from penstock.workload import constant
    >>> app_scenario("dns", constant(20.0, duration_s=10.0)).setup().workload.execution_times_s["features"]
    0.015
    """
    found = find_app(app)
    chosen = options or SimulationOptions()
    return Scenario(
        topology=found.build(tuning or AppOptions(sink=no_sink, seed=chosen.seed)),
        trace=trace,
        options=chosen,
        payloads=found.payloads(payloads or PayloadOptions(seed=chosen.seed)),
        run_functions=True,
        **more,
    )


def no_sink(name: str, service_ms: float) -> Waiting:  # noqa: ARG001 - all sinks are alike
    """A sink that stores nothing: what a simulated application ends in."""
    return Waiting(_nothing, service_ms)


def _nothing(event: Any) -> None:  # noqa: ARG001
    return None


class Entering:
    """How many events a trace brings between two times."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __call__(self, start_s: float, end_s: float) -> float:
        """Events from `start_s` to `end_s`."""
        before, after = self._trace.cumulated([start_s, end_s])
        return float(after - before)
