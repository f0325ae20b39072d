"""Beyond the papers: OSG against shuffle under every policy, on the topologies whose times depend on the value."""

from __future__ import annotations

from experiments.dabs import COMPLEX, SENSITIVE
from experiments.experiment import Case, Claim, Direction, Experiment

POLICIES = (
    "static:mean",
    "static:peak",
    "oracle",
    "psps",
    "psps:predecessor_backlog",
    "autoscale_plus",
    "incremental",
    "learning",
    "ds2",
    "flink:short",
    "keda",
    "dstream",
    "srea",
    "spea",
    "cba",
    "optimal",
)
APPS = {"sensitive": SENSITIVE, "complex": COMPLEX}
NOTE = (
    "Every policy twice, a change of replicas costs nothing; late is over 30 s. Streams from 30 to 250 events/s, half "
    "an hour, values Zipf 1.5, 64 distinct times from 1 to 64 ms."
)
NO_QUEUES = (
    "with more replicas than it needs hardly an event waits, and nothing is left to balance; while it has fewer, all "
    "queues grow whoever gets the events"
)


def _pair(policy: str, of: Case) -> tuple[Case, Case]:
    free = of.changed(policy=policy, actuation="pool", settle_s=0.0)
    return (
        free.changed(label=f"{policy}, OSG", grouping="online_shuffle"),
        free.changed(label=f"{policy}, shuffle", grouping="shuffle"),
    )


def _experiment(name: str, stream: str) -> Experiment:
    of = APPS[name].changed(input=stream)
    return Experiment(
        name=f"osg-{name}-{stream}",
        title=f"OSG against shuffle under every policy: {name} topology, {stream} stream",
        paper="beyond DABS-Storm, TLDKS 40, 2019",
        cases=tuple(case for policy in POLICIES for case in _pair(policy, of)),
        note=NOTE,
        metrics=("latency_ms", "late", "replicas", "changes"),
        directions=tuple(
            Direction(
                f"under {policy}, OSG beats shuffle on latency",
                (Claim("latency_ms", f"{policy}, OSG", f"{policy}, shuffle"),),
                NO_QUEUES,
            )
            for policy in POLICIES
        ),
        seeds=5,
    )


EXPERIMENTS = tuple(_experiment(name, stream) for name in APPS for stream in ("progressive", "erratic"))
