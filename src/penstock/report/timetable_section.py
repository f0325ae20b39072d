"""The part of a run's page that shows what was planned ahead."""

from __future__ import annotations

from penstock.report.data import RunReport
from penstock.report.markup import Markup, element, image, section, several
from penstock.report.series import run_series
from penstock.report.timetable_plot import timetable_plot
from penstock.report.timetable_series import timetables_of


def timetable_section(report: RunReport) -> Markup:
    """Plan against execution; nothing where no policy planned more than the next interval."""
    if max((row.step for row in report.timetables), default=0) < 2:
        return Markup("")
    series = run_series(report)
    found = timetables_of(report, series)
    if not found.operators:
        return Markup("")
    planned = {row.operator for row in report.timetables}
    far = several(found.longest, "interval")
    words = [
        f"At the end of every interval the policy planned each operator's replicas for {far} ahead, and carried out "
        "the first step.",
        "Where the dark line leaves the coloured area, what ran had not been planned before.",
    ]
    if len(planned) > len(found.operators):
        words.append(f"Shown are the {len(found.operators)} of {len(planned)} operators with most replicas.")
    caption = (
        "Dark line: replicas that ran. Coloured area: from the lowest to the highest number that the plans made before "
        "had for that interval. Coloured lines: single plans, from the moment (dot) when they were made."
    )
    picture = image(timetable_plot(series, found), "Planned and active replicas of each operator over time", caption)
    return section("Timetables", element("p", " ".join(words), class_="note"), picture)
