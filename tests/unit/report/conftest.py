"""A made run: four operators in a line under a spiky input, sized by PSPS, for the tests of the report."""

from __future__ import annotations

import math

import pytest
from matplotlib.figure import Figure

from penstock.metrics.rows import DecisionRow, ForecastRow, IntervalRow, OperatorRow, RunRow
from penstock.metrics.snapshot import Snapshot
from penstock.policy.base import decisions
from penstock.policy.psps import Psps
from penstock.report.run import RunReport
from penstock.testing.loads import load

TD_S = 2.0
POOL = 8
TIMES_S = {"clean": 0.010, "classify_content": 0.020, "classify_author": 0.015, "store": 0.010}


def run_row(**more):
    given = {
        "run": "twitter-20260101-120000",
        "topology": "twitter",
        "policy": "psps",
        "td_s": TD_S,
        "started_at": "2026-01-01T12:00:00Z",
        "finished_at": "2026-01-01T12:02:00Z",
        "settings": {"pool": POOL, "grouping": "load_balancing", "mode": "real-time"},
    }
    return RunRow(**{**given, **more})


def interval_row(number, **more):
    given = {
        "number": number,
        "time_s": 1000.0 + TD_S * number,
        "interval_s": TD_S,
        "source_input": {"tweets": 100},
        "entered": 100,
        "source_output": 95.0,
        "replicas": 4,
        "backlog": 5,
        "dropped": 0,
        "latency_count": 95,
        "latency_mean_ms": 60.0,
        "latency_p50_ms": 55.0,
        "latency_p99_ms": 130.0,
    }
    return IntervalRow(**{**given, **more})


def operator_row(number, operator, **more):
    given = {
        "received": 100,
        "received_by": {"tweets": 100},
        "processed": 95,
        "backlog": 5,
        "dropped": 0,
        "replicas": 1,
        "pool": POOL,
        "busy_share": 0.5,
        "cpu_share": 0.1,
        "execution_time_s": 0.01,
        "incomplete": None,
    }
    return OperatorRow(number=number, operator=operator, **{**given, **more})


def input_rate(number):
    """Two spikes over a slow wave, per second."""
    wave = 70 + 25 * math.sin(number / 9) + 9 * math.sin(number * 2.3)
    spikes = ((18, 260), (41, 170))
    return wave + sum(height * math.exp(-(number - at) / 5) for at, height in spikes if number >= at)


class MadeRun:
    """Operators as queues: an interval's capacity is replicas · td / et."""

    def __init__(self):
        self.policy = Psps()
        self.replicas = dict.fromkeys(TIMES_S, 1)
        self.backlog = dict.fromkeys(TIMES_S, 0)
        self.rows = {"intervals": [], "operators": [], "forecasts": [], "decisions": []}

    def step(self, number):
        entered = round(input_rate(number) * TD_S)
        loads, sender, arriving = {}, "tweets", entered
        for name, time_s in TIMES_S.items():
            waiting = self.backlog[name] + arriving
            processed = min(waiting, int(self.replicas[name] * TD_S / time_s))
            self.backlog[name] = waiting - processed
            more = {"backlog": self.backlog[name], "replicas": self.replicas[name], "execution_time_s": time_s}
            loads[name] = load(name, {sender: arriving}, processed, pool=POOL, **more)
            sender, arriving = name, processed
        seen = Snapshot(
            time_s=1000 + TD_S * number, interval_s=TD_S, td_s=TD_S, source_input={"tweets": entered}, operators=loads
        )
        self.keep(number, seen, arriving)

    def keep(self, number, seen, left):
        waited_ms = sum(load.backlog * TIMES_S[name] / load.replicas for name, load in seen.operators.items()) * 1000
        latency = {"latency_mean_ms": 60 + waited_ms / 2, "latency_p50_ms": 55 + waited_ms / 3}
        self.rows["intervals"].append(
            interval_row(
                number,
                source_input=dict(seen.source_input),
                entered=seen.entered,
                source_output=float(left),
                replicas=seen.replicas,
                backlog=seen.backlog,
                latency_p99_ms=110 + 1.6 * waited_ms,
                **latency,
            )
        )
        for name, one in seen.operators.items():
            busy = one.processed * TIMES_S[name] / TD_S / one.replicas
            more = {"received_by": dict(one.received_by), "processed": one.processed, "backlog": one.backlog}
            more |= {"execution_time_s": TIMES_S[name], "busy_share": busy, "replicas": one.replicas}
            self.rows["operators"].append(operator_row(number, name, received=one.received, **more))
        expected = ForecastRow(number=number, series="tweets", step=1, rate=seen.entered / TD_S, forecaster="last")
        self.rows["forecasts"].append(expected)
        for one in decisions(seen, self.policy.plan(seen)):
            after = min(POOL, one.after)
            self.replicas[one.operator] = after
            given = {"operator": one.operator, "before": one.before, "after": after, "expected": one.expected}
            self.rows["decisions"].append(DecisionRow(number=number, reason=one.reason, **given))


@pytest.fixture(scope="session")
def made_run():
    """The rows of 60 intervals, and a summary."""
    made = MadeRun()
    for number in range(1, 61):
        made.step(number)
    events = sum(row.entered for row in made.rows["intervals"])
    summary = {
        "events": events,
        "processed": events - 12,
        "repeated": 0,
        "dropped": {"t_out": 12, "q_size": 0},
        "latency_ms": {"mean": 412.6, "p50": 71.2, "p90": 1180.0, "p99": 3920.5},
        "duration_s": 121.4,
        "restarts": 0,
        "r_over": 20,
        "saved_resources": 0.5528,
        "throughput_degradation": 0.1132,
        "processed_ratio": 0.9991,
        "operators": {name: {"received": events} for name in TIMES_S},
    }
    return RunReport(run=run_row(), **made.rows, summary=summary)


@pytest.fixture
def rendered():
    """Asked for by tests that look at pictures; for all others plots are not rendered."""


@pytest.fixture(autouse=True)
def undrawn(request, monkeypatch):
    """Plots that are never rendered, where only words count: it takes a second."""
    if "rendered" not in request.fixturenames:
        monkeypatch.setattr(Figure, "savefig", lambda *given, **more: None)
