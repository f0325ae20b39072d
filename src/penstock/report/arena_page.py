"""The page of the arena: who wins, the ranking, cost against lateness, and the best policies over time."""

from __future__ import annotations

from pathlib import Path

from penstock.report import arena_plots, plots
from penstock.report.arena import ArenaReport, arena_series
from penstock.report.arena_plots import arena_spots, scatter_plot
from penstock.report.page import MOST_ROWS, render, write_page
from penstock.report.text import count, decimal, duration, milliseconds
from penstock.report.verdict import is_known, meets, verdict
from penstock.report.workers import simulated_workers
from penstock.simulator.result import ON_TIME
from penstock.simulator.scenario import Scenario


def write_arena_report(path: Path, report: ArenaReport) -> None:
    """Write the report to a file; folders above it are made."""
    write_page(path, arena_page(report))


def arena_page(report: ArenaReport) -> str:
    """The report as HTML."""
    series, named, spots = arena_series(report), report.named, arena_spots(report)
    workers = {name: simulated_workers(named[name]) for name in report.drawn}
    return render(
        "arena.html",
        report=report,
        facts=_facts(report.scenario),
        verdict=verdict(report.results),
        is_known=is_known,
        meets=meets,
        on_workers=any(one.worker_seconds is not None for one in report.results),
        scatter=None if spots.empty else scatter_plot(spots),
        series=series,
        plots=plots,
        arena_plots=arena_plots,
        workers={name: one for name, one in workers.items() if one is not None},
        most=MOST_ROWS,
    )


def _facts(scenario: Scenario) -> dict[str, object]:
    """What was played and how; what is off is left out."""
    trace, plant, contest = scenario.input, scenario.plant, scenario.contest
    restarts = plant.actuation != "pool"
    return {
        "trace": trace.name,
        "length": duration(trace.duration_s),
        "mean": f"{decimal(trace.mean, 1)} events/s",
        "peak": f"{decimal(trace.peak, 1)} events/s",
        "events": count(round(trace.events)),
        "td": f"{contest.td_s:g} s",
        "target": f"{100 * ON_TIME:g} % within {contest.target_s:g} s",
        "actuation": plant.actuation,
        "restart": f"{plant.restart_s:g} s" if restarts else None,
        "activation delay": None if restarts else milliseconds(1000 * plant.activation_delay_s),
        "t_out": None if plant.t_out_s is None else f"{plant.t_out_s:g} s",
        "q_size": None if plant.q_size is None else count(plant.q_size),
        "hop": milliseconds(1000 * plant.hop_s),
        "service times": "exponential" if plant.exponential else None,
        "seed": scenario.seed,
        "grouping": scenario.grouping,
        "forecaster": contest.forecaster,
    }
