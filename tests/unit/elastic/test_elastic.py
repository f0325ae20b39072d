"""What `Elastic` keeps of the loop's intervals, and what it refuses before anything starts."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from penstock import Elastic, InputError, Topology, TraceSource, constant
from penstock.engine.driver.faults import Fault
from penstock.metrics.counters import CheckpointStatus
from penstock.metrics.rows import CheckpointRow, DecisionRow, FaultRow, IntervalRecord, IntervalRow
from penstock.metrics.store import Store
from penstock.policy.base import inside
from tests.waiting import until


def run(sources: int = 1) -> Any:
    """A run that has not been started, as far as `Elastic` looks at it."""
    topology = Topology("mine", pool=4)
    inputs = [topology.source(f"in{number}") for number in range(sources)]
    topology.operator("work", len, inputs=inputs, execution_time_ms=10)
    bound = {name: TraceSource(constant(250, duration_s=4), [{"n": 1}]) for name in topology.sources}
    return SimpleNamespace(
        topology=topology,
        sources=bound,
        id="run",
        carried_on=0,
        active={"work": (0,)},
        started=False,
        faults=list,
        checkpoint_status=CheckpointStatus,
    )


def interval(number: int) -> IntervalRecord:
    row = IntervalRow(
        number=number,
        time_s=float(number),
        interval_s=1.0,
        source_input={"in0": 100},
        entered=100,
        source_output=90.0,
        replicas=2,
        backlog=10,
        dropped=0,
        latency_count=0,
        latency_mean_ms=None,
        latency_p50_ms=None,
        latency_p99_ms=None,
    )
    about_work = {"number": number, "operator": "work", "expected": None, "reason": "more came"}
    decided = [DecisionRow(**about_work, before=before, after=2) for before in (number, 2)]
    return IntervalRecord(interval=row, decisions=tuple(decided))


def test_intervals_count_once_though_the_store_needs_several_tries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were counted with every try to write them."""
    tries: list[str] = []

    def write(_: Store, name: str, record: IntervalRecord) -> None:
        tries.append(name)
        if len(tries) < 3:
            raise OperationalError("insert", {}, Exception("the disk is full"))

    monkeypatch.setattr(Store, "write", write)
    monkeypatch.setattr("penstock.elastic.recording.Recorder.__init__.__kwdefaults__", {"capacity": 9, "retry_s": 0.01})
    live = Elastic(run(), td_s=1.0, store=tmp_path / "metrics.db")
    live.recording.record(interval(1))
    until(lambda: tries == ["run"] * 3)
    assert live.recording._recorder is not None
    assert live.recording._recorder.close().written == 1
    played = live.recording.played
    assert (played.entered, played.left, played.replicas) == (
        [100],
        [90.0],
        [2],
    )
    assert [(one.before, one.after, one.reason) for one in live.decisions] == [(1, 2, "more came")]


def test_a_fault_is_recorded_once_when_it_is_over_or_with_the_run(tmp_path: Path) -> None:
    over, lasting = Fault(1, 12.0, "a worker was killed", 2.5, deaths=2), Fault(2, 40.0, "another was")
    found: list[Fault] = []
    watched = run()
    watched.faults = lambda: found
    live = Elastic(watched, td_s=1.0, store=tmp_path / "metrics.db")
    assert live.store is not None
    live.store.start_run(live._row())
    live.recording.record(replace(interval(1), decisions=()))
    found += [over, lasting]
    live.recording.record(replace(interval(2), decisions=()))
    live.recording.record(replace(interval(3), decisions=()))
    live._close()
    store = Store(str(tmp_path / "metrics.db"))
    first = FaultRow(number=1, time_s=12.0, cause="a worker was killed", deaths=2, seconds=2.5)
    last = FaultRow(number=2, time_s=40.0, cause="another was", deaths=1, seconds=None)
    assert store.faults("run") == [first, last]
    store.close()


def test_checkpoints_are_recorded_with_every_interval_where_there_are_any(tmp_path: Path) -> None:
    """The run knew how its checkpoints went, and nobody else did."""
    watched, live_status = run(), CheckpointStatus(age_s=4.0, every_s=10.0, given_up=1)
    said = [CheckpointStatus(), live_status, replace(live_status, number=9, took_s=0.5, committed=1, size_bytes=70)]
    watched.checkpoint_status = lambda: said.pop(0)
    live = Elastic(watched, td_s=1.0, store=tmp_path / "metrics.db")
    assert live.store is not None
    live.store.start_run(live._row())
    for number in (1, 2, 3):
        live.recording.record(replace(interval(number), decisions=()))
    live._close()
    none = CheckpointRow(
        number=2, checkpoint=None, age_s=4.0, took_s=None, size_bytes=None, committed=0, given_up=1, every_s=10.0
    )
    first = replace(none, number=3, checkpoint=9, took_s=0.5, size_bytes=70, committed=1)
    assert live.store.checkpoints("run") == [none, first]
    live.store.close()


def test_without_a_store_the_summary_has_what_it_needs() -> None:
    live = Elastic(run(), "static:peak", td_s=1.0)
    for number in (1, 2):
        live.recording.record(interval(number))
    assert live.recording.played.entered == [100, 100]
    workload = live.workload({})
    assert workload is not None
    assert (workload.peak_rate, workload.execution_times_s) == (250.0, {"work": 0.01})
    assert live._thread.initial() == {"work": 3}  # ⌈250 · 0.01⌉


def test_what_was_in_flight_when_a_stream_is_stopped_is_in_its_summary() -> None:
    """A run on Kafka that was ended after its time said that hundreds of its events were not processed: it had not
    counted what it finished after that."""
    one = run()
    processed = [7]

    def stop(_: float) -> bool:
        processed[0] = 10
        return True

    def start() -> None:
        one.started = True

    one.start, one.stop, one.stopped = start, stop, lambda: False
    one.clock = SimpleNamespace(now=lambda: 0.0, sleep_until=lambda _: None)
    one.counters = one.fresh_counters = lambda *_: list(processed)
    with Elastic(one, None, td_s=1.0) as live:
        pass
    assert live.counters() == [10]


def test_a_policy_that_must_know_the_load_needs_one_source_that_tells_it() -> None:
    with pytest.raises(InputError, match="policy 'static:peak': needs the workload's rates"):
        Elastic(run(sources=2), "static:peak", td_s=1.0)
    assert Elastic(run(sources=2), "static:peak", td_s=1.0, expected=constant(250, duration_s=4)).expected is not None


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"td_s": 0.1}, "interval: td must be at least 0.2 s; got 0.1 s"),
        ({"policy": "hope"}, "policy: no such name 'hope'"),
        ({"policy": "oracle"}, "policy 'oracle': knows the future"),
        ({"slots": 0}, "slots must be at least 1 for each of 1 operators; got 0"),
        ({"forecaster": "prophecy"}, "forecaster: no such name 'prophecy'"),
    ],
)
def test_mistakes_show_before_anything_starts(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told.replace("(", r"\(")):
        Elastic(run(), **options)


def test_what_is_shown_must_be_kept(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="dashboard: it shows what is in the store; the run needs one"):
        Elastic(run(), ui="8470")
    with pytest.raises(InputError, match=r"ui: must be \[HOST:\]PORT; got 'here'"):
        Elastic(run(), ui="here", store=tmp_path / "metrics.db")


def test_what_is_not_started_leaves_no_thread(tmp_path: Path) -> None:
    """One that was refused for its address had started to record, and its thread stayed for ever."""
    before = threading.active_count()
    Elastic(run(), store=tmp_path / "metrics.db")
    assert threading.active_count() == before


def test_a_run_that_the_store_refuses_leaves_no_connection(tmp_path: Path) -> None:
    """It had not begun, and so nobody ended it and closed its store."""
    live = Elastic(run(), store=tmp_path / "metrics.db")
    assert live.store is not None
    live.store.start_run(live._row())
    with pytest.raises(InputError, match="a run's name must be new; got 'run'"):
        live.start()
    assert live.store._engine.pool.checkedin() == 0  # type: ignore[attr-defined]


def test_a_store_that_cannot_be_told_of_the_end_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live = Elastic(run(), store=tmp_path / "metrics.db")
    assert live.store is not None
    live.store.start_run(live._row())
    monkeypatch.setattr(live.store, "finish_run", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        live._close()
    assert live.store._engine.pool.checkedin() == 0  # type: ignore[attr-defined]


def test_unless_told_otherwise_it_keeps_a_promise() -> None:
    policy = list(inside(Elastic(run(), late=0.05, target_ms=300, td_s=1.0)._thread._guarded))[-1]
    assert repr(policy) == "Penstock(late=0.05, target_ms=300)"
    policy = list(inside(Elastic(run(), "penstock:late=0.2", td_s=1.0)._thread._guarded))[-1]
    assert repr(policy) == "Penstock(late=0.2, target_ms=2000)"
    with pytest.raises(InputError, match="policy 'penstock': late must be above 0 and at most 1; got 0"):
        Elastic(run(), late=0, td_s=1.0)
