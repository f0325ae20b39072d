"""The arena's report: the right winner in words, a table in the ranking's order, a page whatever the results."""

from __future__ import annotations

import base64
import dataclasses
import io
import itertools
import math
import re

import pytest
from rich.console import Console

from penstock.errors import InputError
from penstock.report.arena import ArenaReport
from penstock.report.arena_page import arena_page
from penstock.report.page import write_page
from penstock.report.terminal import WIDEST, results_table, verdict_text
from penstock.report.verdict import forecasts, verdict
from penstock.simulator import Scenario, compare, ranked
from penstock.topology import Topology
from penstock.workload import constant

from .contests import (
    ALL,
    CONTESTS,
    KEDA,
    ORACLE,
    PEAK,
    PSPS,
    TD_S,
    TRACE,
    UNKNOWN,
    history,
    nothing_known,
    report,
    result,
)
from .pages import Elements, words


def said_of(*results):
    return "".join(verdict(results))


# The verdict


def test_the_cheapest_that_meets_the_target_wins_and_is_compared_with_oracle_and_peak():
    assert said_of(KEDA, PEAK, ORACLE, PSPS) == (
        "psps is the cheapest policy that meets the target (99 % of events within 2 s): 0.50 % of its events are late. "
        "It takes 210 replica-seconds, 5.0 % more than the oracle and 65.0 % fewer than static:peak. "
        "Next is static:peak, which meets it too: it takes 600 replica-seconds, 2.9 times as many as psps."
    )


def test_the_oracle_never_wins():
    assert said_of(ORACLE, PEAK, KEDA).startswith("static:peak is the cheapest policy that meets the target")
    assert "3.0 times as many as the oracle. Next is keda, which misses it: 20.0 %" in said_of(ORACLE, PEAK, KEDA)


def test_where_only_the_oracle_meets_the_target_the_nearest_is_named():
    nearer = result("ds2", late=0.0101, cost=200.0)
    assert said_of(KEDA, ORACLE, nearer) == (
        "Only the oracle, which knows the next interval, meets the target (99 % of events within 2 s). "
        "ds2 comes nearest: 1.01 % of its events are late. It takes 200 replica-seconds, as many as the oracle."
    )


def test_where_nobody_meets_the_target_it_says_so_plainly():
    assert said_of(KEDA).startswith(
        "No policy meets the target (99 % of events within 2 s). keda comes nearest: 20.0 %"
    )
    assert ", not even the oracle. keda comes" in said_of(KEDA, dataclasses.replace(ORACLE, late_ratio=0.5))


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ([], "No policies were compared."),
        ([PSPS], "psps meets the target (99 % of events within 2 s): 0.50 % of its events are late."),
        ([ORACLE], "Of the oracle alone there are results: it meets the target (99 % of events within 2 s)."),
        ([dataclasses.replace(UNKNOWN, events=0)], "No events entered: nothing to compare."),
        ([UNKNOWN], "Of no policy it is known how late it was."),
    ],
)
def test_few_or_empty_results_have_a_verdict_of_their_own(results, said):
    assert said_of(*results).startswith(said)


def test_the_terminal_and_the_page_say_the_same_with_names_in_bold():
    said = verdict_text(ALL)
    assert said.plain == said_of(*ALL)
    assert [said.plain[span.start : span.end] for span in said.spans if span.style == "bold"] == ["psps", "static:peak"]
    page = arena_page(report())
    assert said.plain in words(page)
    assert re.findall("<b>(psps|static:peak)</b>", page) == ["psps", "static:peak"]


def test_the_verdict_takes_odd_names_as_they_are():
    odd = dataclasses.replace(PSPS, policy="[bold]x[/bold]<i>")
    assert verdict_text([odd]).plain.startswith("[bold]x[/bold]<i> meets the target")
    assert "<b>[bold]x[/bold]&lt;i&gt;</b> meets" in arena_page(report([odd]))


# The ranking


def test_what_is_not_known_comes_last_in_the_ranking():
    for order in itertools.permutations(ALL):
        assert [one.policy for one in ranked(order)] == ["oracle", "psps", "static:peak", "keda", "lost"]


def test_the_table_has_every_figure_of_a_policy():
    dropped, changes = {"t_out": 1200, "q_size": 0, "error": 3}, {"clean": 1.5, "store": 4.5}
    dropping = dataclasses.replace(PSPS, dropped=dropped, changes_per_minute=changes, replica_seconds=78230.4)
    shown = words(arena_page(report([dropping])))
    assert (
        "psps ✓ yes 78,230 1.05× 1.31× 56.0 % 18.0 % 99.87 % "
        "250 ms 70.0 ms 2.10 s 0.50 % 12 4.5 345 1,200 t_out, 3 error"
    ) in shown
    assert "reconfigurations" in shown


def test_page_and_terminal_say_who_had_which_forecast():
    planner = dataclasses.replace(KEDA, policy="cba", forecaster="auto")
    said = "Forecasts: auto for cba; none for psps."
    assert forecasts([planner, PSPS]) == said
    assert said in words(arena_page(report([planner, PSPS])))
    assert forecasts([PSPS]) == ""
    assert "Forecasts" not in words(arena_page(report([PSPS])))


def test_the_header_says_what_was_played():
    chosen = {"td_s": 30, "t_out_s": 30, "q_size": 100_000, "actuation": "restart", "restart_s": 20, "seed": 7}
    shown = words(arena_page(report(**chosen, grouping="shuffle")))
    for chip in ("trace steady", "length 2 min 00 s", "mean 20.0 events/s", "peak 20.0 events/s", "events 2,400"):
        assert chip in shown
    for chip in ("td_s 30", "t_out_s 30", "q_size 100000", "actuation restart restart_s 20", "seed 7"):
        assert chip in shown
    assert "grouping shuffle" in shown
    assert "activation_delay_s" not in shown
    assert "state_bytes" not in shown
    assert "forecaster" not in shown


# The page


@pytest.fixture(scope="module")
def made_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("reports") / "new" / "arena.html"
    write_page(path, arena_page(report()))
    return path.read_text(encoding="utf-8")


def test_the_file_needs_nothing_else(made_page):
    found = Elements(made_page).found
    assert {tag for tag, _ in found}.isdisjoint({"script", "link", "iframe", "object", "a", "base"})
    pictures = [base64.b64decode(attrs["src"].partition("base64,")[2]) for tag, attrs in found if tag == "img"]
    assert len(set(pictures)) == 3
    assert all(one.startswith(b"\x89PNG\r\n\x1a\n") for one in pictures)
    assert not re.search(r"https?:|url\(|@import|href=|srcset=|\son\w+=", made_page)
    assert len(made_page) < 2_000_000


def test_odd_names_are_escaped_and_drawn():
    evil = "<script>alert('1')</script>&\n$x_1$[bold]\N{ROCKET}"
    odd = [dataclasses.replace(one, policy=evil) for one in (PSPS, PEAK)]
    page = arena_page(report([*odd, ORACLE], topology=Topology(evil), forecaster=evil))
    found = Elements(page).found
    assert "script" not in {tag for tag, _ in found}
    assert "&lt;script&gt;" in page
    assert len([tag for tag, _ in found if tag == "img"]) == 3


@pytest.mark.parametrize("results", CONTESTS.values(), ids=CONTESTS)
def test_whatever_the_results_there_is_a_page(results):
    page = arena_page(report(results))
    Elements(page)
    assert not re.search(r"\b(nan|inf|None)\b", words(page))


def test_a_trace_without_events_has_a_page():
    silent = dataclasses.replace(UNKNOWN, events=0, replica_seconds=30.0, history=history(latency_s=[math.nan] * 24))
    page = arena_page(report([silent], trace=constant(0.0, duration_s=120.0)))
    assert "No events entered" in page
    assert page.count("<img") == 2  # nothing to draw cost against


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(InputError, match="cannot be written; Is a directory"):
        write_page(tmp_path, arena_page(report([])))


def test_it_takes_what_the_simulator_gives(tmp_path):
    scenario = Scenario("dns", TRACE).changed(td_s=TD_S)
    found = compare(scenario, ["static:mean", "psps", "oracle"])
    write_page(tmp_path / "arena.html", arena_page(ArenaReport(scenario=scenario, results=found)))
    shown = words((tmp_path / "arena.html").read_text(encoding="utf-8"))
    assert f"events {found[0].events:,}" in shown
    assert all(one.policy in shown for one in found)


# The terminal


def printed(results, width=200):
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(results_table(results))
    return console.file.getvalue().splitlines()


def test_the_terminal_has_the_same_ranking_with_marks():
    head, _, *rows = printed(ALL)
    assert head.split() == [
        *("policy", "ok", "replica-s", "×oracle", "×bound", "saved", "proc."),
        *("mean", "p99", "late", "changes", "a", "min.", "backlog", "dropped"),
    ]
    assert [row.split()[:2] for row in rows] == [
        ["oracle", "✓"],
        ["psps", "✓"],
        ["static:peak", "✓"],
        ["keda", "–"],
        ["lost", "–"],
    ]
    shown = "psps ✓ 210 1.05 1.31 56.0 % 99.87 % 250 ms 2.10 s 0.50 % 12 0.0 345 0"
    assert " ".join(rows[1].split()) == shown


def test_the_terminals_table_is_never_wider_than_promised():
    huge = {"saved_resources": -12.345, "reconfigurations": 123_456, "max_backlog": 98_765_432, "oracle_ratio": 1234.5}
    latency = {"latency_ms": {"mean": 5e7, "p99": 5e7}, "dropped": {"t_out": 98_765_432}}
    name = "psps:predecessor_backlog,use_forecast"
    lines = printed([result(name, cost=9.8e7, late=0.00001, **huge, **latency), nothing_known(ORACLE)])
    assert max(map(len, lines)) <= WIDEST
    assert "…" not in "".join(lines)  # all numbers are there in full
    assert "".join(line.split(" ")[0] for line in lines[2:]).startswith(name)


def test_the_terminal_shows_odd_names_as_they_are():
    lines = printed([result("[bold]x[/bold]:smile:\n")])
    assert lines[2].startswith("[bold]x[/bold]:smile:□")


def test_an_empty_contest_has_an_empty_table():
    assert len(printed([])) == 2
