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
from penstock.simulator.options import SimulationOptions
from penstock.simulator.result import ON_TIME


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
        facts=_facts(report),
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


def _facts(report: ArenaReport) -> dict[str, object]:
    trace = report.trace
    return {
        "trace": trace.name,
        "length": duration(trace.duration_s),
        "mean": f"{decimal(trace.mean, 1)} events/s",
        "peak": f"{decimal(trace.peak, 1)} events/s",
        "events": count(round(trace.events)),
        **_options(report.options),
        **report.settings,
    }


def _options(options: SimulationOptions) -> dict[str, object]:
    """The options that say something: what is off is left out."""
    restarts = options.actuation != "pool"
    return {
        "td": f"{options.td_s:g} s",
        "target": f"{100 * ON_TIME:g} % within {options.target_s:g} s",
        "actuation": options.actuation,
        "restart": f"{options.restart_s:g} s" if restarts else None,
        "activation delay": None if restarts else milliseconds(1000 * options.activation_delay_s),
        "t_out": None if options.t_out_s is None else f"{options.t_out_s:g} s",
        "q_size": None if options.q_size is None else count(options.q_size),
        "hop": milliseconds(1000 * options.hop_s),
        "service times": "exponential" if options.exponential else None,
        "seed": options.seed,
    }
