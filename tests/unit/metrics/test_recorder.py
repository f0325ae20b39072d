from __future__ import annotations

import logging
import threading
import time
from contextlib import closing

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from penstock.errors import InputError
from penstock.metrics.recorder import Recorder
from penstock.metrics.rows import IntervalRecord, IntervalRow, RunRow
from penstock.metrics.store import Store
from tests.waiting import LONG_S, until

FULL = OperationalError("INSERT", {}, Exception("database or disk is full"))


class Flaky:
    """A store that fails for as long as it has an error."""

    def __init__(self, error=None):
        self.error = error
        self.written = []

    def __call__(self, record):
        if self.error:
            raise self.error
        self.written.append(record)


def test_records_are_written_in_order():
    store = Flaky()
    recorder = Recorder(store)
    for number in range(100):
        recorder.record(number)
    state = recorder.close()
    assert store.written == list(range(100))
    assert (state.written, state.waiting, state.lost, state.failing) == (100, 0, 0, None)


def test_a_store_that_fails_for_a_while_loses_nothing(caplog):
    caplog.set_level(logging.WARNING)
    store = Flaky(FULL)
    recorder = Recorder(store, retry_s=0.005)
    for number in range(5):
        recorder.record(number)
    until(lambda: recorder.state.failing == "database or disk is full")
    time.sleep(0.05)
    store.error = None
    until(lambda: recorder.state.written == 5)
    recorder.close()
    assert store.written == list(range(5))
    assert [one.message for one in caplog.records] == [
        "the store cannot be written: database or disk is full; the run goes on and intervals wait",
        "the store can be written again; 0 intervals were lost",
    ]


def test_beyond_the_capacity_the_oldest_are_lost_and_counted(caplog):
    caplog.set_level(logging.WARNING)
    store = Flaky(OSError("gone"))
    recorder = Recorder(store, capacity=3, retry_s=0.005)
    for number in range(10):
        recorder.record(number)
    until(lambda: recorder.state.failing)
    assert (recorder.state.waiting, recorder.state.lost) == (3, 7)
    store.error = None
    until(lambda: recorder.state.written == 3)
    assert recorder.close().lost == 7
    assert store.written == [7, 8, 9]
    assert "the store can be written again; 7 intervals were lost" in caplog.messages
    assert caplog.messages[-1] == "the store lost 7 intervals of this run"


def test_a_record_that_is_refused_for_good_does_not_block_the_others(caplog):
    written = []

    def write(record):
        if record == 1:
            raise ValueError("no such column")
        written.append(record)

    recorder = Recorder(write)
    for number in range(3):
        recorder.record(number)
    state = recorder.close()
    assert written == [0, 2]
    assert (state.written, state.lost) == (2, 1)
    assert "the store refused an interval, which is lost" in caplog.messages


def test_handing_over_does_not_wait_for_a_store_that_hangs():
    release = threading.Event()
    written = []

    def hang(record):
        release.wait(LONG_S)
        written.append(record)

    recorder = Recorder(hang, capacity=2)
    for number in range(50):
        recorder.record(number)
    assert written == []
    release.set()
    recorder.close()


def test_a_record_pushed_out_while_it_is_being_written_counts_once():
    started, release = threading.Event(), threading.Event()
    written = []

    def write(record):
        started.set()
        release.wait(LONG_S)
        written.append(record)

    recorder = Recorder(write, capacity=1)
    recorder.record(0)
    started.wait(LONG_S)
    recorder.record(1)
    assert recorder.state.lost == 1
    release.set()
    state = recorder.close()
    assert written == [0, 1]
    assert (state.written, state.lost) == (2, 0)


def test_closing_a_failing_store_tries_once_more_and_says_what_is_lost():
    recorder = Recorder(Flaky(FULL), retry_s=10 * LONG_S)
    recorder.record(0)
    until(lambda: recorder.state.failing)
    start = time.monotonic()
    assert recorder.close().lost == 1
    assert time.monotonic() - start < LONG_S  # it does not wait for the next try


def test_capacity_is_at_least_one():
    with pytest.raises(InputError, match="capacity must be whole and at least 1; got 0"):
        Recorder(Flaky(), capacity=0)


def test_a_full_disk_under_a_real_store(tmp_path):
    """SQLite's own error for a full disk, brought about by a limit on the file's pages and then lifted."""
    limit = {"pages": 40}

    def taken(connection, *_):
        connection.execute(f"PRAGMA max_page_count={limit['pages']}")

    with closing(Store(str(tmp_path / "metrics.sqlite"))) as store:
        store.start_run(RunRow(run="r", topology="t", policy="p", td_s=1, started_at="now"))
        sa.event.listen(store._engine, "checkout", taken)
        recorder = Recorder(lambda record: store.write("r", record), retry_s=0.01)
        for number in range(60):
            recorder.record(long_record(number))
        until(lambda: recorder.state.failing)
        assert recorder.state.failing == "database or disk is full"
        limit["pages"] = 10_000
        until(lambda: recorder.state.written == 60)
        assert recorder.close().lost == 0
        assert [row.number for row in store.intervals("r")] == list(range(60))


def long_record(number):
    interval = IntervalRow(
        number=number,
        time_s=0.0,
        interval_s=1.0,
        source_input={},
        entered=0,
        source_output=0.0,
        replicas=0,
        backlog=0,
        dropped=0,
        latency_count=0,
        latency_mean_ms=None,
        latency_p50_ms=None,
        latency_p99_ms=None,
        note="x" * 3000,
    )
    return IntervalRecord(interval=interval)
