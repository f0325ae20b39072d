"""How quick the dashboard is with a large run: first view, a point in time, an operator, an update.

    python benchmarks/dashboard.py [--intervals 10000] [--operators 50] [--store large.db]
    python benchmarks/dashboard.py --viewers 5 [--seconds 60]
    python benchmarks/dashboard.py --browser [--seconds 60]

The run is made, and kept where `--store` says. Times are of the whole request on loopback, the median of five after the
first. With `--viewers`, an interval ends every second instead: what the serving process takes of a core with nobody,
with so many viewers, and with one more that never reads; and when the others have an interval. With `--browser`, a
Chromium opens the page and watches it: until it is ready, and what an update takes of its main thread.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median

from dashboard_browser import browser_cost
from dashboard_viewers import viewers_cost

from penstock.metrics.rows import (
    CheckpointRow,
    DecisionRow,
    ForecastRow,
    IntervalRecord,
    IntervalRow,
    LateRow,
    LimitRow,
    OperatorRow,
    PromiseRow,
    RunRow,
    ScoreRow,
    WaitingRow,
)
from penstock.metrics.store import Store
from penstock.ui.listen import Listen
from penstock.ui.server import serving

TD_S = 5.0
LEVELS = 10
AHEAD = 6


def main() -> None:
    """Make the run, ask for it, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--intervals", type=int, default=10_000)
    parser.add_argument("--operators", type=int, default=50)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--viewers", type=int, default=0)
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--seconds", type=int, default=60)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = str(given.store or Path(folder) / "large.db")
        if not Path(place).exists():
            made = make(place, given.intervals, given.operators)
            print(f"made {given.intervals:,} intervals × {given.operators} operators in {made:.0f} s")
        if given.viewers:
            viewers_cost(place, lambda one: next(records(one, one, given.operators)), given.viewers, given.seconds)
        elif given.browser:
            browser_cost(place, lambda one: next(records(one, one, given.operators)), given.seconds)
        else:
            measure(place, given.intervals, given.operators)


def make(place: str, intervals: int, operators: int) -> float:
    """A run with a day's ups and downs; the seconds that it took."""
    began_s = time.perf_counter()
    with closing(Store(place)) as store:
        started_at = "2026-01-01T00:00:00+00:00"
        run = RunRow(run="large", topology="made", policy="psps", td_s=TD_S, started_at=started_at)
        store.start_run(run, PromiseRow(late=0.01, target_ms=2000.0))
        for record in records(1, intervals, operators):
            store.write("large", record)
    return time.perf_counter() - began_s


def records(first: int, last: int, operators: int) -> Iterator[IntervalRecord]:
    """The intervals of these numbers."""
    for number in range(first, last + 1):
        rate = 1000 + 800 * abs((number % 2000) - 1000) / 1000
        entered = round(rate * TD_S)
        names = [f"operator-{one:02d}" for one in range(operators)]
        rows = [_operator(number, place, name, names, entered) for place, name in enumerate(names)]
        yield IntervalRecord(
            interval=_interval(number, entered, rows),
            operators=tuple(rows),
            forecasts=tuple(_forecast(number, step, rate) for step in range(1, AHEAD + 1)),
            decisions=tuple(_decision(number, one) for one in rows),
            waiting=tuple(
                WaitingRow(number=number, operator=one.operator, held=0, booked=one.backlog, outside=0) for one in rows
            ),
            limits=tuple(_limit(number, one) for one in rows[::10]),
            lateness=(LateRow(number=number, late=number % 3),),
            scores=(_score(number - 1, entered, rows),),
            checkpoints=(_checkpoint(number),),
        )


def _operator(number: int, place: int, name: str, names: list[str], entered: int) -> OperatorRow:
    sender = "events" if place < len(names) // LEVELS else names[place - len(names) // LEVELS]
    return OperatorRow(
        number=number,
        operator=name,
        received=entered,
        received_by={sender: entered},
        processed=entered - number % 7,
        backlog=number % 700,
        dropped=0,
        replicas=1 + entered // 2000,
        pool=16,
        busy_share=0.5 + 0.4 * (number % 100) / 100,
        cpu_share=0.4,
        execution_time_s=0.002,
        incomplete=None,
    )


def _interval(number: int, entered: int, rows: list[OperatorRow]) -> IntervalRow:
    return IntervalRow(
        number=number,
        time_s=number * TD_S,
        interval_s=TD_S,
        source_input={"events": entered},
        entered=entered,
        source_output=entered - 1.0,
        replicas=sum(one.replicas for one in rows),
        backlog=sum(one.backlog for one in rows),
        dropped=0,
        latency_count=entered,
        latency_mean_ms=40.0,
        latency_p50_ms=35.0,
        latency_p99_ms=90.0 + number % 50,
    )


def _forecast(number: int, step: int, rate: float) -> ForecastRow:
    return ForecastRow(number=number, series="events", step=step, rate=rate + step, forecaster="made")


def _decision(number: int, row: OperatorRow) -> DecisionRow:
    after = row.replicas + (number % 500 == 0)
    why = "expects 7,000 events of 2 ms each: 2.8 replicas"
    return DecisionRow(
        number=number, operator=row.operator, before=row.replicas, after=after, expected=7000.0, reason=why
    )


def _limit(number: int, row: OperatorRow) -> LimitRow:
    return LimitRow(number=number, operator=row.operator, wanted=row.replicas + 1, told="scale-out waits for 30 s")


def _score(number: int, entered: int, rows: list[OperatorRow]) -> ScoreRow:
    replicas = {one.operator: one.replicas for one in rows}
    return ScoreRow(
        number=number,
        policy="psps",
        role="decides",
        seconds=TD_S,
        events=entered,
        too_many=number % 3,
        too_few=0,
        late=0.0,
        nothing_late=float(number % 5),
        nothing_replicas=sum(replicas.values()),
        runner_up=None,
        runner_up_late=None,
        runner_up_replicas=None,
        forecast_error=0.05,
        naive_error=0.08,
        replicas=replicas,
        needed=replicas,
    )


def _checkpoint(number: int) -> CheckpointRow:
    return CheckpointRow(
        number=number,
        checkpoint=number // 2 + 1,
        age_s=TD_S * (number % 2),
        took_s=0.02,
        size_bytes=4000,
        committed=number // 2 + 1,
        given_up=0,
        every_s=2 * TD_S,
    )


def measure(place: str, intervals: int, operators: int) -> None:
    """Ask for each part, as a browser does, and for an update."""
    with closing(Store(place)) as store, serving(store, Listen(port=0)) as url:
        api = f"{url}api/runs/large"
        first, size = ask(api)
        print(f"{'first view, the store unread':32} {1000 * first:8.0f} ms {size / 1000:8.1f} kB")
        parts = {
            "the same again": api,
            "all runs": f"{url}api/runs",
            "a point in time": f"{api}/at/{intervals // 2}",
            "an operator over time": f"{api}/operators/operator-07",
            "replicas of all over time": f"{api}/replicas",
        }
        for name, where in parts.items():
            asked = [ask(where) for _ in range(5)]
            took = median(took for took, _ in asked)
            print(f"{name:32} {1000 * took:8.0f} ms {asked[0][1] / 1000:8.1f} kB")
        took, size = update(place, api, operators)
        print(f"{'an interval ends, until it is read':32} {1000 * took:8.0f} ms {size / 1000:8.1f} kB")


def ask(url: str) -> tuple[float, int]:
    """The seconds that an answer took, and its bytes."""
    began_s = time.perf_counter()
    with urllib.request.urlopen(url) as answer:
        size = len(answer.read())
    return time.perf_counter() - began_s, size


def update(place: str, api: str, operators: int) -> tuple[float, int]:
    """Write an interval while somebody watches: how long until it is there, and the bytes that were sent."""
    with closing(Store(place)) as store:
        last = store.intervals("large")[-1].number
        with urllib.request.urlopen(f"{api}/live?after={last}") as feed:
            time.sleep(1.0)
            store.write("large", next(records(last + 1, last + 1, operators)))
            began_s, size = time.perf_counter(), 0
            while line := feed.readline().strip():
                size += len(line)
            return time.perf_counter() - began_s, size


if __name__ == "__main__":
    main()
