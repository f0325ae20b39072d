"""The workers on a page: of a run from its rows, of a simulation from its history, and nothing where there are none."""

from __future__ import annotations

import dataclasses
import math
import re
from contextlib import closing

import pytest

from penstock.control.managers.region_manager import RegionRules
from penstock.infra.worker import WorkerState
from penstock.metrics.rows import IntervalRecord, LevelRows, ManagerRow, PauseRow, RunRow, WorkerRow
from penstock.metrics.store import Store
from penstock.report.arena import ArenaReport
from penstock.report.arena_page import arena_page
from penstock.report.draw import mean
from penstock.report.run import RunReport
from penstock.report.run_page import run_page
from penstock.report.workers import STATES, simulated_workers, workers_of, workers_plot
from penstock.simulator import Cluster, Scenario, simulate
from penstock.topology import Topology
from penstock.workload import ramp

from .pages import drawn, section, words

SAID = ManagerRow(
    sequence=0,
    time_s=1010.0,
    who="region local",
    word="proposed",
    subject="start a worker of local",
    reason="1 slots are free, 2 should be",
)


def worker_row(number, name, state="available", **more):
    given = {"region": "local", "capacity": 2, "hosted": 1, "utilisation": 0.5, "price": 1.0}
    return WorkerRow(number=number, time_s=1000.0 + 2 * number, worker=name, state=state, **{**given, **more})


def on_workers(report, most=60):
    """The made run on two workers, and a third that starts, is there, drains and goes; two pauses."""
    rows = []
    for number in range(1, most + 1):
        rows += [worker_row(number, "w1"), worker_row(number, "w2")]
        if 10 <= number < 40:
            state = "starting" if number < 13 else "available" if number < 35 else "draining"
            rows.append(worker_row(number, "w3", state, hosted=0, utilisation=None))
    granted = dataclasses.replace(SAID, sequence=1, who="infrastructure", word="granted")
    return dataclasses.replace(
        report,
        workers=rows,
        managers=[SAID, granted, dataclasses.replace(SAID, sequence=2, time_s=1040.0)],
        pauses=[
            PauseRow(time_s=1026.0, why="w3 joined", seconds=2.5),
            PauseRow(time_s=1080.0, why="w3 is stopped", seconds=3.25),
        ],
    )


class Kept(list):
    def record(self, record):
        self.append(record)


def passed(event):
    return event


@pytest.fixture(scope="module")
def played():
    """A simulation of half an hour on up to ten workers."""
    topology = Topology("chain", pool=8)
    topology.operator("a", passed, inputs=topology.source("in"), execution_time_ms=10.0)
    trace = ramp(low=10, high=400, duration_s=1800, step_s=10.0)
    cluster = Cluster(levels="both", workers=10, region=RegionRules(spare=2))
    scenario = Scenario(topology, trace, cluster=cluster).changed(td_s=30.0)
    kept = Kept()
    result = simulate(scenario, "e2df", recorder=kept)
    return scenario, dataclasses.replace(result, oracle_ratio=1.1), kept


def test_workers_by_state_and_slots_over_time(made_run):
    """What was seen at the end of an interval holds from then on: the first ends after 2 s."""
    series = workers_of(on_workers(made_run))
    levels = series.levels
    assert levels.start_s[:3].tolist() == [2.0, 4.0, 6.0]
    assert levels.start_s[1:].tolist() == levels.end_s[:-1].tolist()
    assert levels.end_s.iloc[-1] == 122.0
    assert levels.starting.tolist() == [0.0] * 9 + [1.0] * 3 + [0.0] * 48
    assert levels.draining.sum() == 5
    assert levels.offered[[0, 9, 12, 34, 40]].tolist() == [4, 4, 6, 4, 4]
    assert set(levels.used) == {2.0}
    assert levels.workers.max() == 3
    assert set(STATES) == {state.value for state in WorkerState}
    assert series.worker_seconds == 2.0 * (2 * 60 + 30)
    assert [(one.time_s, one.seconds) for one in series.pauses] == [(26.0, 2.5), (80.0, 3.25)]
    assert series.counts == {("region local", "proposed"): 2, ("infrastructure", "granted"): 1}


def test_worker_seconds_are_those_of_the_summary_where_it_has_them(made_run):
    report = dataclasses.replace(on_workers(made_run), summary={"workers": {"worker_seconds": 271.5}})
    assert workers_of(report).worker_seconds == 271.5


def test_a_simulation_and_its_recorded_rows_show_the_same(played):
    _, result, kept = played
    report = RunReport(
        run=RunRow(run="r", topology="chain", policy="e2df", td_s=30.0, started_at="now"),
        intervals=[one.interval for one in kept],
        workers=[row for one in kept for row in one.levels.workers],
        managers=[row for one in kept for row in one.levels.managers],
    )
    drawn, recorded = simulated_workers(result), workers_of(report)
    for column in (*STATES, "used", "offered"):
        assert drawn.levels[column].tolist() == recorded.levels[column].tolist()
    assert drawn.counts == recorded.counts
    assert drawn.worker_seconds == result.worker_seconds == pytest.approx(recorded.worker_seconds, rel=0.05)


def test_a_long_simulation_has_few_points(played):
    result = played[1]
    history = result.history
    times = 40
    long = dataclasses.replace(result)
    many = type(history.levels)()
    for name in ("offered", "used"):
        setattr(many, name, getattr(history.levels, name) * times)
    many.by_state = {state: column * times for state, column in history.levels.by_state.items()}
    copied = type(history).__new__(type(history))
    copied.__dict__ |= history.__dict__
    copied.levels, copied.lengths_s = many, history.lengths_s * times
    copied.times_s = [30.0 * (n + 1) for n in range(len(copied.lengths_s))]
    series = simulated_workers(dataclasses.replace(long, history=copied))
    assert len(series.levels) <= 600
    assert series.levels.end_s.iloc[-1] == copied.times_s[-1] + 30.0
    whole = simulated_workers(result)
    assert mean(series.levels.workers, series.levels) == pytest.approx(
        mean(whole.levels.workers, whole.levels), rel=0.01
    )


RUNS = {
    "a run": on_workers,
    "without pauses": lambda report: dataclasses.replace(on_workers(report), pauses=[]),
    "one interval": lambda report: on_workers(report, most=1),
    "empty workers": lambda report: dataclasses.replace(
        on_workers(report), workers=[worker_row(n, "w1", "starting", hosted=0) for n in range(1, 61)]
    ),
}


@pytest.mark.parametrize("change", RUNS.values(), ids=RUNS)
@pytest.mark.usefixtures("rendered")
def test_the_plot_is_a_picture_of_sane_size(change, made_run):
    assert drawn(workers_plot({"psps": workers_of(change(made_run))})) == round(4.6 * 200)


@pytest.mark.usefixtures("rendered")
def test_policies_are_drawn_below_one_another(played):
    series = simulated_workers(played[1])
    assert drawn(workers_plot({str(n): series for n in range(3)})) == 4.0 * 200


def shown(report):
    """The workers on the page of a run, of which the rest is short."""
    return section(run_page(dataclasses.replace(report, operators=[], decisions=[])), "Workers")


def test_the_section_of_a_run(made_run):
    part = shown(on_workers(made_run))
    assert len(re.findall("base64,", part)) == 1
    for said in ("Worker-seconds", "w3 joined", "3.25 s", "2 pauses, 5.8 s in all", "the longest: 3.2 s"):
        assert said in words(part)
    assert re.search(r"<td class=\"n\">2</td><td>region local</td><td><span class=\"said\">proposed", part)


def test_without_pauses_none_are_spoken_of(made_run):
    assert "Pauses" not in shown(dataclasses.replace(on_workers(made_run), pauses=[]))


def test_nothing_where_there_are_no_workers(made_run):
    assert shown(made_run) is None
    lost = dataclasses.replace(made_run, workers=[worker_row(99, "w1")])  # of an interval that was not kept
    assert shown(lost) is None
    never = [dataclasses.replace(row, time_s=math.nan) for row in made_run.intervals]
    assert shown(dataclasses.replace(on_workers(made_run), intervals=never)) is None


def test_managers_who_said_nothing(made_run):
    part = shown(dataclasses.replace(on_workers(made_run), managers=[]))
    assert "The managers had nothing to propose." in part


def test_the_same_words_stand_once(made_run):
    again = [dataclasses.replace(SAID, sequence=n, time_s=1000.0 + n) for n in range(700)]
    same = workers_of(dataclasses.replace(on_workers(made_run), managers=again)).once
    assert [(first.sequence, times) for first, times in same] == [(0, 700)]
    other = [dataclasses.replace(one, reason=f"{one.sequence} slots") for one in again]
    part = shown(dataclasses.replace(on_workers(made_run), managers=other))
    assert "200 more are left out here." in words(part)


def test_long_reasons_are_folded_and_escaped(made_run):
    said = [dataclasses.replace(SAID, reason=reason) for reason in ("<b>because</b> " * 30, "short")]
    part = shown(dataclasses.replace(on_workers(made_run), managers=said))
    assert "<details><summary>&lt;b&gt;because" in part
    assert "<b>because" not in part
    assert "<td>short</td>" in part
    assert words(part).count("because") == 30


def test_the_page_of_one_policy_has_its_workers_and_that_of_several_compares_them(played):
    scenario, result, _ = played
    alone = ArenaReport(scenario=scenario, results=[result])
    assert "Managers" in section(arena_page(alone), "Workers")
    other = dataclasses.replace(result, policy="psps")
    both = arena_page(dataclasses.replace(alone, results=[result, other]))
    assert "Managers" not in section(both, "Workers")
    assert len(re.findall("base64,", both)) == 4
    plain = dataclasses.replace(result, worker_seconds=None, workers_saved=None, history=bare(result.history))
    none = arena_page(dataclasses.replace(alone, results=[plain]))
    assert section(none, "Workers") is None
    assert "worker-seconds" not in section(none, "Ranking")
    mixed = dataclasses.replace(alone, results=[result, dataclasses.replace(plain, policy="oracle")])
    table = section(arena_page(mixed), "Ranking")
    assert "workers saved" in table
    assert f"{round(result.worker_seconds):,}" in table


def bare(history):
    copied = type(history).__new__(type(history))
    copied.__dict__ |= history.__dict__ | {"levels": None}
    return copied


def test_workers_come_from_the_store(made_run, tmp_path):
    report = on_workers(made_run)
    with closing(Store(str(tmp_path / "metrics.sqlite"))) as store:
        store.start_run(RunRow(run="r", topology="t", policy="p", td_s=2, started_at="now"))
        rows = tuple(row for row in report.workers if row.number == 1)
        levels = LevelRows(rows, tuple(report.managers), tuple(report.pauses))
        store.write("r", IntervalRecord(interval=made_run.intervals[0], levels=levels))
        read = RunReport.from_store(store, "r")
    assert (list(read.workers), list(read.managers), list(read.pauses)) == (list(rows), report.managers, report.pauses)
