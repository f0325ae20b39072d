"""`Elastic` before anything starts: what it is called, and what it tells of its decisions."""

from __future__ import annotations

from penstock import Elastic, Plan, Run, Topology, TraceSource, constant
from penstock.metrics.rows import DecisionRow, IntervalRecord, IntervalRow


class Idle:
    def plan(self, snapshot: object, forecast: object = None) -> Plan:
        return Plan({})


def around(policy: object) -> Elastic:
    topology = Topology("one", pool=4)
    topology.operator("work", len, inputs=topology.source("numbers"))
    return Elastic(Run(topology, TraceSource(constant(10, duration_s=1), [{"n": 1}])), policy)  # type: ignore[arg-type]


def ended(number: int, before: int, after: int) -> IntervalRecord:
    interval = IntervalRow(
        number=number,
        time_s=5.0 * number,
        interval_s=5.0,
        source_input={"numbers": 50},
        entered=50,
        source_output=50.0,
        replicas=after,
        backlog=0,
        dropped=0,
        latency_count=0,
        latency_mean_ms=None,
        latency_p50_ms=None,
        latency_p99_ms=None,
    )
    decision = DecisionRow(number=number, operator="work", before=before, after=after, expected=None, reason="enough")
    return IntervalRecord(interval=interval, decisions=(decision,))


def test_a_policy_of_ones_own_has_the_name_of_its_class() -> None:
    """It was told as `<Idle object at 0x…>`, in the summary and in the store."""
    assert around(Idle()).summary()["policy"] == "Idle"
    assert around("static:2").summary()["policy"] == "static:2"


def test_decisions_that_changed_something_are_told() -> None:
    live = around(Idle())
    for number, (before, after) in enumerate([(1, 3), (3, 3), (3, 2)]):
        live._record(ended(number, before, after))
    assert [str(one) for one in live.decisions] == ["work 1 → 3: enough", "work 3 → 2: enough"]
