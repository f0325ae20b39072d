"""The page as a whole: self-contained, escaped, and there even for a run that left nothing."""

from __future__ import annotations

import base64
import dataclasses
import math
import re
from contextlib import closing

import pytest

from penstock.errors import InputError
from penstock.metrics.rows import (
    CheckpointRow,
    DecisionRow,
    FaultRow,
    IntervalRecord,
    IntervalRow,
    OperatorRow,
    RunRow,
    WaitingRow,
)
from penstock.metrics.store import Store
from penstock.report.page import MOST_ROWS, write_page
from penstock.report.run import RunReport
from penstock.report.run_page import run_page

from .pages import Elements, words

RUN = RunRow(run="r1", topology="twitter", policy="psps", td_s=2.0, started_at="2026-01-01T12:00:00Z")
INTERVAL = IntervalRow(
    number=1,
    time_s=502.0,
    interval_s=2.0,
    source_input={"tweets": 100},
    entered=100,
    source_output=95.0,
    replicas=4,
    backlog=5,
    dropped=0,
    latency_count=95,
    latency_mean_ms=60.0,
    latency_p50_ms=55.0,
    latency_p99_ms=130.0,
)
OPERATOR = OperatorRow(
    number=1,
    operator="clean",
    received=100,
    received_by={"tweets": 100},
    processed=95,
    backlog=5,
    dropped=0,
    replicas=4,
    pool=8,
    busy_share=0.5,
    cpu_share=0.1,
    execution_time_s=0.01,
    incomplete=None,
)
CHANGE = DecisionRow(number=1, operator="clean", before=4, after=5, expected=120.0, reason="expects 120 events")


@pytest.fixture(scope="module")
def made_page(made_run, tmp_path_factory):
    path = tmp_path_factory.mktemp("reports") / "new" / "report.html"
    write_page(path, run_page(made_run))
    return path.read_text(encoding="utf-8")


def test_the_file_needs_nothing_else(made_page):
    found = Elements(made_page).found
    assert {tag for tag, _ in found}.isdisjoint({"script", "link", "iframe", "object", "a", "base"})
    sources = [attrs["src"] for _, attrs in found if "src" in attrs]
    assert len(sources) == 4
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not re.search(r"https?:|url\(|@import|href=|srcset=|\son\w+=", made_page)
    assert len(made_page) < 2_000_000


def test_its_pictures_are_png(made_page):
    pictures = re.findall(r'base64,([^"]+)"', made_page)
    assert all(base64.b64decode(one).startswith(b"\x89PNG\r\n\x1a\n") for one in pictures)
    assert len(set(pictures)) == 4


def test_it_shows_the_figures_beside_the_papers(made_page):
    shown = words(made_page)
    for figure in ("0.5528 0.5617", "0.1132 0.1831", "0.9991 0.9987", "412.60 2,098.91"):
        assert figure in shown
    assert "12 t_out" in shown
    assert "2 min 01 s" in shown


def test_the_papers_figures_stand_only_beside_its_own_applications():
    page = run_page(RunReport(run=dataclasses.replace(RUN, topology="wordcount")))
    assert "psps in the paper" not in page
    assert "2,098.91" not in page


def test_decisions_are_listed_with_reasons_and_only_where_something_changed():
    kept = dataclasses.replace(CHANGE, number=2, before=5, reason="keeps what it has")
    failed = dataclasses.replace(CHANGE, operator="store", before=5, after=2, failure="channel cut")
    shown = words(run_page(RunReport(run=RUN, intervals=[INTERVAL], decisions=[CHANGE, kept, failed])))
    assert "1 2.0 s clean 4 → 5 ▲ expects 120 events" in shown
    assert "5 → 2 ▼ expects 120 events not carried out: channel cut" in shown
    assert "keeps what it has" not in shown
    assert "2 changes: 1 scale-out, 1 scale-in;" in shown


def test_very_many_decisions_are_cut_and_it_says_so():
    changes = [dataclasses.replace(CHANGE, number=number) for number in range(MOST_ROWS + 123)]
    page = run_page(RunReport(run=RUN, decisions=changes))
    assert page.count("expects 120 events") == MOST_ROWS
    assert "123 more decisions are left out here" in page


def test_notes_say_once_what_went_on_for_intervals():
    rows = [dataclasses.replace(INTERVAL, number=n, time_s=500 + 2.0 * n, note="store gone") for n in range(3, 7)]
    unsure = dataclasses.replace(OPERATOR, number=9, incomplete="negative counts")
    shown = words(run_page(RunReport(run=RUN, intervals=rows, operators=[unsure])))
    assert "4 3–6 2.0 s store gone" in shown
    assert "operator 'clean' incomplete: negative counts" in shown


def test_faults_are_listed_with_how_long_events_stood_still():
    first = FaultRow(number=1, time_s=501.0, cause="a worker was killed", deaths=2, seconds=2.25)
    last = dataclasses.replace(first, number=2, time_s=502.0, cause="<b>another</b>", deaths=1, seconds=None)
    shown = words(run_page(RunReport(run=RUN, intervals=[INTERVAL], faults=[first, last])))
    assert "1.0 s 2.2 s 2 a worker was killed" in shown
    assert "2.0 s to the end 1 <b>another</b>" in shown
    assert "Faults" not in words(run_page(RunReport(run=RUN, intervals=[INTERVAL])))


def test_totals_of_operators_come_from_the_summary_where_it_has_them():
    rows = [OPERATOR, dataclasses.replace(OPERATOR, number=2, backlog=0, replicas=2)]
    waiting = [WaitingRow(number=n, operator="clean", held=3 - n, booked=n, outside=0) for n in (1, 2)]
    summary = {"operators": {"clean": {"received": 240, "dropped": {"q": 7}}}}
    report = RunReport(run=RUN, operators=rows, waiting=waiting, summary=summary)
    assert "clean 240 190 7 5 2, 2, 0 0 3.0 2–4 of 8 – 50.0 % 10.0 ms" in words(run_page(report))


def test_names_are_escaped():
    evil = '<script>alert("1")</script>&'
    report = RunReport(
        run=dataclasses.replace(RUN, run=evil, topology=evil, policy=evil, settings={evil: [evil, {evil: 1.0}]}),
        intervals=[dataclasses.replace(INTERVAL, note=evil)],
        operators=[dataclasses.replace(OPERATOR, operator=evil, incomplete=evil)],
        decisions=[dataclasses.replace(CHANGE, operator=evil, reason=evil, failure=evil)],
        summary={"dropped": {evil: 3}, "operators": {evil: {}}},
    )
    page = run_page(report)
    assert "script" not in {tag for tag, _ in Elements(page).found}
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    "summary",
    [
        {},
        dict.fromkeys(("events", "processed", "dropped", "latency_ms", "duration_s", "operators", "r_over")),
        {
            "events": math.nan,
            "saved_resources": math.inf,
            "latency_ms": {"mean": math.nan},
            "operators": {"clean": None},
        },
    ],
)
def test_a_run_that_left_nothing_still_has_a_report(summary):
    page = run_page(RunReport(run=RUN, summary=summary))
    Elements(page)
    assert "No intervals were recorded" in page
    assert "nan" not in words(page).lower()


def test_numbers_that_are_missing_leave_dashes():
    lost = {"latency_mean_ms": None, "latency_p50_ms": math.nan, "latency_p99_ms": None, "source_output": math.nan}
    unknown = dataclasses.replace(OPERATOR, busy_share=math.nan, execution_time_s=None)
    shown = words(run_page(RunReport(run=RUN, intervals=[dataclasses.replace(INTERVAL, **lost)], operators=[unknown])))
    assert "Processed ratio –" in shown
    assert "4–4 of 8 0.0 – –" in shown


def test_without_a_summary_the_metrics_come_from_the_intervals():
    report = RunReport(run=RUN, intervals=[INTERVAL], summary={"r_over": 16})
    assert dataclasses.astuple(report.metrics) == (0.75, 0.05, 0.95, 60.0)
    assert "Duration 2.0 s" in words(run_page(report))


def test_it_reads_a_run_from_the_store(tmp_path):
    with closing(Store(str(tmp_path / "metrics.sqlite"))) as store:
        store.start_run(RUN)
        store.write("r1", IntervalRecord(interval=INTERVAL, operators=(OPERATOR,), decisions=(CHANGE,)))
        report = RunReport.from_store(store, "r1", {"events": 100})
        with pytest.raises(InputError, match="run: no such name 'r2'; known: r1"):
            RunReport.from_store(store, "r2")
    assert (report.run, *report.intervals, *report.operators, *report.changes) == (RUN, INTERVAL, OPERATOR, CHANGE)
    assert report.figure("events") == 100


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(InputError, match="cannot be written; Is a directory"):
        write_page(tmp_path, run_page(RunReport(run=RUN)))


def test_checkpoints_are_shown_where_there_were_any():
    first = CheckpointRow(
        number=1, checkpoint=None, age_s=2.0, took_s=None, size_bytes=None, committed=0, given_up=0, every_s=10.0
    )
    second = dataclasses.replace(first, number=2, checkpoint=7, age_s=1.5, took_s=0.25, committed=6, given_up=1)
    intervals = [INTERVAL, dataclasses.replace(INTERVAL, number=2, time_s=504.0)]
    shown = run_page(RunReport(run=RUN, intervals=intervals, checkpoints=[first, second]))
    assert "One every 10.0 s: 6 committed, 1 given up by the end of the last interval." in words(shown)
    assert "the longest took 250 ms" in words(shown)
    assert "longest took" not in words(run_page(RunReport(run=RUN, intervals=intervals, checkpoints=[first])))
    assert "Checkpoints" not in words(run_page(RunReport(run=RUN, intervals=intervals)))
