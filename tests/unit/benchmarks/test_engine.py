"""What the benchmark of the engine plays, and what it tells of events that are bound late."""

from __future__ import annotations

import io

from engine import bindings, plan
from rich.console import Console


def test_pull_is_played_beside_shuffle_where_asked_for() -> None:
    plain, both = plan(2), plan(2, pull=True)
    assert not [one for one in plain if "pull" in one]
    found = [one for one in both if "pull" in one]
    assert (
        found
        == [
            ("latency", "penstock", "5", "pull"),
            ("latency", "penstock", "200", "pull"),
            ("latency", "penstock", "2000", "pull"),
            ("rate", "penstock", "600000", "pull"),
        ]
        * 2
    )
    assert len(both) - len(plain) == 2 * len(found)


def test_the_table_has_a_row_for_each() -> None:
    figures = {" ".join(one): {"p50": 10.0, "p99": 30.0, "rate": 50_000.0} for one in plan(1, pull=True)}
    figures["rate penstock 600000 pull"]["rate"] = 45_000.0
    console = Console(width=140, file=io.StringIO(), record=True)
    console.print(bindings(figures))
    text = console.export_text()
    assert [line.split("│")[-2].strip() for line in text.splitlines() if "pull" in line] == ["0.90×"]
    assert text.count("10, 30") == 6
