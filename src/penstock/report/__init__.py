"""What a run leaves for people to read: one self-contained HTML file with figures, plots and decisions."""

from penstock.report.data import RunReport
from penstock.report.run_report import write_run_report

__all__ = ["RunReport", "write_run_report"]
