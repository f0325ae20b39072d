"""What a run or a contest leaves for people to read: one self-contained HTML file with figures, plots and decisions."""

from penstock.report.arena_report import ArenaReport, write_arena_report
from penstock.report.arena_terminal import results_table
from penstock.report.data import RunReport
from penstock.report.run_report import write_run_report

__all__ = ["ArenaReport", "RunReport", "results_table", "write_arena_report", "write_run_report"]
