"""The words and the table of the arena's page: what was compared, who wins, and the ranking."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.report import markup
from penstock.report.arena_data import ArenaReport, is_known, meets, ranking
from penstock.report.arena_series import policy_colours
from penstock.report.data import finite
from penstock.report.markup import ABSENT, Markup, count, decimal, duration, element, milliseconds, percent, swatch
from penstock.report.page import chips
from penstock.simulator.result import ON_TIME, SimulationResult
from penstock.simulator.scenario import Scenario

DAY_S = 86400.0
NO_BREAK = "\N{NO-BREAK SPACE}"
_HEAD = (
    "policy",
    "meets target",
    "replica-seconds",
    "to the oracle",
    "saved",
    Markup("degra&shy;dation"),
    "processed",
    "latency mean",
    "p50",
    "p99",
    "late",
    Markup("reconfigu&shy;rations"),
    "largest backlog",
    "dropped",
)
_WORKERS_HEAD = ("worker-seconds", "workers saved")


def header(report: ArenaReport) -> Markup:
    """What was played, how, and with which settings."""
    trace = report.trace
    facts = {
        "trace": trace.name,
        "length": length(trace.duration_s),
        "mean": f"{rate(trace.mean)} events/s",
        "peak": f"{rate(trace.peak)} events/s",
        "events": count(round(trace.events)),
        **_options(report.scenario),
    }
    return element(
        "header",
        element("p", "Penstock arena report", class_="kind"),
        element("h1", report.app, element("span", " under "), trace.name),
        chips(facts),
    )


def ranking_table(report: ArenaReport) -> Markup:
    """All policies, the best first."""
    title = "Ranking"
    if not report.results:
        return markup.section(title, element("p", "No policies were compared.", class_="note"))
    colours = policy_colours(report)
    on_workers = any(one.worker_seconds is not None for one in report.results)
    head = (*_HEAD, *_WORKERS_HEAD) if on_workers else _HEAD
    rows = [
        [*_row(one, colours.get(id(one), "transparent")), *(_workers(one) if on_workers else ())]
        for one in ranking(report.results)
    ]
    return markup.section(
        title,
        element("div", markup.table(head, rows, numbers=range(2, len(head))), class_="ranking"),
        *(element("p", words, class_="note") for words in _notes(report)),
    )


def length(seconds: float) -> str:
    """How long something is; in days where there are many.

    >>> length(7200), length(5270400), length(400000)
    ('2 h 00 min', '61 days', '4.6 days')
    """
    if seconds < 2 * DAY_S:
        return duration(seconds)
    return f"{seconds / DAY_S:,.1f}".removesuffix(".0") + " days"


def rate(value: float) -> str:
    """Events per second.

    >>> rate(118.04), rate(2.345), rate(1234.5)
    ('118', '2.35', '1,234')
    """
    return decimal(value, 0 if value >= 100 else 1 if value >= 10 else 2)


def late_share(value: object) -> str:
    """A share of late events: exact about zero, and fine around the target.

    >>> late_share(0.0), late_share(0.00001), late_share(0.00997), late_share(0.81836), late_share(None)
    ('0 %', '<0.01 %', '1.00 %', '81.8 %', '–')
    """
    number = finite(value)
    if number is None:
        return ABSENT
    if number == 0:
        return "0 %"
    return "<0.01 %" if number < 0.0001 else f"{decimal(100 * number, 2 if number < 0.1 else 1)} %"


def causes(dropped: Mapping[str, int] | None) -> str:
    r"""Events dropped, by cause.

    >>> causes({"t_out": 1200, "q_size": 0}), causes({})
    ('1,200\xa0t_out', '0')
    """
    return ", ".join(f"{count(number)}{NO_BREAK}{cause}" for cause, number in (dropped or {}).items() if number) or "0"


def _row(result: SimulationResult, colour: str) -> list[object]:
    latency = result.latency_ms or {}
    return [
        swatch(colour, result.policy),
        _mark(result),
        count(_whole(result.replica_seconds)),
        _times(result.oracle_ratio),
        percent(result.saved_resources),
        percent(result.throughput_degradation),
        percent(result.processed_ratio),
        *(milliseconds(latency.get(name)) for name in ("mean", "p50", "p99")),
        late_share(result.late_ratio),
        count(result.reconfigurations),
        count(result.max_backlog),
        causes(result.dropped),
    ]


def _workers(result: SimulationResult) -> list[object]:
    return [count(_whole(result.worker_seconds)), percent(result.workers_saved)]


def _mark(result: SimulationResult) -> object:
    if not is_known(result):
        return ABSENT
    if meets(result):
        return element("span", "✓ yes", class_="met")
    return element("span", "no", class_="missed")


def _times(value: object) -> str:
    shown = decimal(value, 2)
    return shown if shown == ABSENT else f"{shown}×"


def _whole(value: object) -> float | None:
    number = finite(value)
    return None if number is None else round(number)


def _options(scenario: Scenario) -> dict[str, object]:
    """The options that say something: what is off is left out."""
    plant, contest = scenario.plant, scenario.contest
    restarts = plant.actuation != "pool"
    return {
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


def _notes(report: ArenaReport) -> list[str]:
    notes = [
        "Those that meet the target come first, the cheapest of them at the top; then the others, the least late "
        f"first. Late: took longer than {report.scenario.contest.target_s:g} s, or was dropped. Replica-seconds: "
        "active replicas over time, until the last event has left. Saved: 1 − r / r_over, compared with sizing for the "
        "peak, or with the static deployment of the application's paper where that is given. "
        "Degradation: |in − out| / in, mean over the intervals.",
    ]
    if any(one.worker_seconds is not None for one in report.results):
        notes.append("Workers saved: 1 − worker-seconds / those of a fixed number of workers, over the same time.")
    if report.oracle is not None:
        notes.append(
            "The oracle knows what enters in the next interval. No policy can be that: it is what the others are "
            "measured against. The one in the ratio pays nothing for changes of replicas and drops nothing."
        )
    return notes
