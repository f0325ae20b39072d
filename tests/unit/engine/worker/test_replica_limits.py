"""What a replica drops and counts: errors, events that are too old or too many, times."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.plan.program import Limits
from penstock.engine.worker.replica import OperatorReplica
from penstock.errors import EngineError
from penstock.topology import To
from tests.waiting import LONG_S

from ..made import InBulk, app, sink

Driver = Any
Tools = SimpleNamespace
Work = Any

gate = threading.Event()


# ── errors and limits ───────────────────────────────────────────────────────────────────────────────────────────────


def reciprocal(event: int) -> float:
    return 1 / event


def test_on_error_fail_names_operator_error_and_event(work: Work, tools: Tools) -> None:
    topology = app(reciprocal)
    with pytest.raises(EngineError) as caught:
        work(topology, tools.bundle([1, 0, 2], first=40))
    assert str(caught.value) == f"{topology['op']}: ZeroDivisionError: division by zero; on event 41: 0"


def test_on_error_drop_counts_the_event_and_goes_on(work: Work, tools: Tools) -> None:
    done = work(app(reciprocal, on_error="drop"), tools.bundle([1, 0, 2, 0]))
    assert done.left.ids == ["0", "2"]
    assert (done.counters.processed, done.counters.dropped) == (2, {"error": 2})


def test_a_generator_that_fails_half_way_emits_nothing(work: Work, tools: Tools) -> None:
    def half(event: int) -> Iterator[int]:
        yield event
        yield 1 // event

    done = work(app(half, on_error="drop"), tools.bundle([0, 1]))
    assert done.left.ids == ["1.0", "1.1"]
    assert done.counters.emitted == {"out": 2}


def test_an_unknown_stream_fails_the_run_even_where_errors_are_dropped(work: Work, tools: Tools) -> None:
    with pytest.raises(EngineError, match="emits to 'nowhere'; its streams are out"):
        work(app(lambda event: To("nowhere", event), on_error="drop"), tools.bundle([1]))


@pytest.mark.parametrize("run", [lambda event: event, InBulk()], ids=["one", "many"])
def test_events_older_than_t_out_are_dropped(work: Work, tools: Tools, run: Any) -> None:
    bundles = tools.bundle([2, 3], born=time.time() - 60), tools.bundle([4], first=2)
    done = work(app(run), *bundles, limits=Limits(t_out_s=30.0))
    assert done.left.ids == ["2"]
    assert (done.counters.processed, done.counters.dropped) == (1, {"t_out": 2})


def test_what_finds_the_replicas_part_of_q_size_full_is_dropped(work: Work, tools: Tools) -> None:
    """Two active replicas share a q_size of 5: each queues 3. It counts from the very first bundle on."""
    limits, active = Limits(q_size=5), {"op": (0, 2)}
    done = work(app(lambda event: event), tools.bundle(list(range(10))), limits=limits, active=active)
    assert done.left.ids == ["0", "1", "2"]
    assert (done.counters.processed, done.counters.dropped) == (3, {"q_size": 7})


def test_what_breaks_the_stream_breaks_the_batch(driver: Driver, tools: Tools) -> None:
    def batches() -> Iterator[Any]:
        yield tools.Batch([tools.bundle([1])])
        raise EOFError("Spark is gone")

    replica = OperatorReplica(driver.program(app(lambda event: event)), 1, "op", 0, 1)
    with pytest.raises(EOFError, match="Spark is gone"):
        list(replica.run(batches()))


# ── measures ────────────────────────────────────────────────────────────────────────────────────────────────────────


def wait_20_ms(event: Any) -> None:
    time.sleep(0.02)


class WaitTogether:
    def process(self, event: Any) -> None: ...

    def process_many(self, events: list[Any]) -> None:
        time.sleep(0.02 * len(events))


@pytest.mark.parametrize("run", [wait_20_ms, WaitTogether()], ids=["one", "many"])
def test_latency_is_measured_at_sinks_and_busy_time_everywhere(work: Work, tools: Tools, run: Any) -> None:
    began_s = time.time()
    done = work(sink(run), tools.bundle([1, 2, 3], born=began_s - 1.0))
    took_s = time.time() - began_s
    latency = done.counters.latency
    assert latency.count == 3
    assert 1000 + 20 <= latency.mean_ms <= 1000 + 1000 * took_s
    assert 0.06 <= done.counters.busy_s <= took_s
    assert done.counters.cpu_s < 0.06  # it waited, it did not compute


def test_latency_is_not_measured_before_the_sinks(work: Work, tools: Tools) -> None:
    done = work(app(lambda event: event), tools.bundle([1, 2]))
    assert done.counters.latency.count == 0
    assert done.counters.busy_s > 0


def test_waiting_for_events_is_not_busy_time(driver: Driver, tools: Tools) -> None:
    def batches() -> Iterator[Any]:
        for number in range(3):
            time.sleep(0.3)
            yield tools.Batch([tools.bundle([1], first=number)])

    replica = OperatorReplica(driver.program(app(lambda event: event)), 1, "op", 0, 1)
    list(replica.run(batches()))
    assert replica._counters.processed == 3
    assert replica._counters.busy_s < 0.3


def test_a_slow_replica_sends_each_event_on_when_it_is_done(driver: Driver, tools: Tools) -> None:
    def slow(event: int) -> int:
        time.sleep(0.01)
        return event

    replica = OperatorReplica(driver.program(app(slow)), 1, "op", 0, 1)
    parts = [tools.left(rows).ids for rows in replica.run([tools.Batch([tools.bundle([1, 2, 3])])])]
    assert parts == [["0"], ["1"], ["2"]]


def test_what_waits_is_reported_as_queued(driver: Driver, tools: Tools) -> None:
    gate.clear()
    replica = OperatorReplica(driver.program(sink(pass_gate)), 1, "op", 0, 1)
    worker = threading.Thread(target=lambda: list(replica.run([tools.Batch([tools.bundle([1, 2, 3])])])))
    worker.start()
    tools.until(lambda: replica._counters.received)
    replica._agent.wake()
    tools.until(lambda: (counters := driver.latest("op")) and counters.queued == 3)
    gate.set()
    worker.join(LONG_S)
    tools.until(lambda: (driver.latest("op").queued, driver.latest("op").processed) == (0, 3))


def pass_gate(event: Any) -> None:
    gate.wait(LONG_S)
